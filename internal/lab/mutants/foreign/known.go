package main

import (
	"fmt"
	"strings"
)

// known returns the reasons of known.txt by ID. That file has one line for each survivor that was
// judged and needs no test: its ID, its place, and after a colon the reason. The ID of a mutation
// changes with the mutated code, so a judgement does not outlive it.
func known(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, rest, _ := strings.Cut(line, " ")
		where, reason, found := strings.Cut(rest, ": ")
		if len(id) != 8 || !found || where == "" || reason == "" {
			return nil, fmt.Errorf("known.txt: %q is not an ID, a place, a colon and a reason", line)
		}
		reasons[id] = reason
	}
	return reasons, nil
}
