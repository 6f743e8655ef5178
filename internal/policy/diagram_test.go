package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// drawnRoom finds an arrow between two boxes of a diagram.
var drawnRoom = regexp.MustCompile(`(?m)^ +(\w+)(?:\[.*?\])? --> (\w+)`)

// TestDrawnRoomsAreTheRooms holds the first diagram of ARCHITECTURE.md to the table of which
// package may import which.
func TestDrawnRoomsAreTheRooms(t *testing.T) {
	boxes := map[string]string{
		"root": "", "instance": "internal/instance", "session": "session", "raftlog": "raftlog", "cluster": "cluster",
		"transport": "transport", "lockfsm": "lockfsm",
		"storage": "raftlog/storage", "discovery": "cluster/discovery", "founding": "cluster/founding",
		"gossip": "cluster/gossip", "voters": "cluster/voters",
		"client": "session/client", "keeper": "session/keeper",
	}
	_, diagram, found := strings.Cut(readPage(t, "ARCHITECTURE.md"), "```mermaid\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	if !found || !strings.HasPrefix(diagram, "flowchart") {
		t.Fatal("ARCHITECTURE.md does not begin with the diagram of the rooms")
	}
	drawn := map[string]bool{}
	for _, match := range drawnRoom.FindAllStringSubmatch(diagram, -1) {
		drawn[match[1]+" "+match[2]] = true
	}
	for from, room := range boxes {
		for to, other := range boxes {
			if may := slices.Contains(allowed[room], other) && from != to && to != "root"; may != drawn[from+" "+to] {
				t.Errorf("%s may import %s: %v; it is drawn so: %v", from, to, may, drawn[from+" "+to])
			}
		}
	}
}
