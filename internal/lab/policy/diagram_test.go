package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// drawnPackage finds an arrow between two boxes of a diagram.
var drawnPackage = regexp.MustCompile(`(?m)^ +(\w+)(?:\[.*?\])? --> (\w+)`)

// The first diagram of ARCHITECTURE.md must agree with the table of permitted imports.
func TestDrawnPackagesAreThePackages(t *testing.T) {
	boxes := map[string]string{
		"root": "", "instance": "internal/instance", "session": "session", "raftlog": "raftlog", "cluster": "cluster",
		"transport": "transport", "lockfsm": "lockfsm",
		"storage": "raftlog/storage", "discovery": "cluster/discovery", "founding": "cluster/founding",
		"gossip": "cluster/gossip", "swim": "cluster/gossip/swim", "voters": "cluster/voters",
		"client": "session/client", "keeper": "session/keeper", "stay": "session/stay",
	}
	_, diagram, found := strings.Cut(readPage(t, "ARCHITECTURE.md"), "```mermaid\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	if !found || !strings.HasPrefix(diagram, "flowchart") {
		t.Fatal("ARCHITECTURE.md does not begin with the diagram of the packages")
	}
	drawn := map[string]bool{}
	for _, match := range drawnPackage.FindAllStringSubmatch(diagram, -1) {
		drawn[match[1]+" "+match[2]] = true
	}
	for from, pkg := range boxes {
		for to, other := range boxes {
			if may := slices.Contains(allowed[pkg], other) && from != to && to != "root"; may != drawn[from+" "+to] {
				t.Errorf("%s may import %s: %v; it is drawn so: %v", from, to, may, drawn[from+" "+to])
			}
		}
	}
}
