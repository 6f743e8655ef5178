package console

import (
	"fmt"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file makes the lines for a shell that the page offers to copy. They call the command
// mortise, which finds the cluster by its variables or its file of contexts.

// command returns a call of the command mortise in a cluster.
func command(cluster string, words ...string) string {
	line := "mortise"
	for _, word := range words {
		line += " " + plain.Shell(word)
	}
	if cluster != defaultCluster {
		line += " -cluster " + plain.Shell(cluster)
	}
	return line
}

// commandsFor returns what can be done about a key from a shell. The function earlier reports
// whether a hold belongs to an earlier incarnation, so that it ends by itself. A key that begins
// with a minus sign would be read as a flag, so it has no commands.
func commandsFor(cluster string, k mortise.KeyInfo, earlier func(mortise.Standing) bool) []string {
	if strings.HasPrefix(k.Key, "-") {
		return nil
	}
	lines := []string{command(cluster, "get", k.Key)}
	for _, st := range k.Queue {
		if st.Token != 0 && !earlier(st) && k.Waiting > 0 && len(lines) < maxCommands {
			end := command(cluster, "unlock", "--force", k.Key, "--token", fmt.Sprint(uint64(st.Token)))
			lines = append(lines, end+` --reason "..."`)
		}
	}
	return lines
}

const maxCommands = 4
