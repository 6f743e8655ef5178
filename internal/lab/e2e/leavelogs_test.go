package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestWhatOrderlyLeavesLog tests that a whole group that leaves in good order warns of nothing, and
// speaks of no session that could not be closed: with the last voters the group has ended.
func TestWhatOrderlyLeavesLog(t *testing.T) {
	slow.UnderRace(t)
	for _, disk := range slow.Sized([]string{"dir"}, []string{"memory", "dir"}) {
		for kind, list := range map[string]func(*mortise.Config){
			"replicas": func(*mortise.Config) {},
			"founders": func(c *mortise.Config) { c.Replicas, c.Founders = 0, []string{"node-0", "node-1", "node-2"} },
		} {
			for way, pause := range leaves() {
				t.Run(fmt.Sprint(disk, ", ", kind, ", ", way), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						logs, into := logged(slog.LevelInfo)
						store := func(*mortise.Config) {}
						if disk == "dir" {
							store = inDir(t.TempDir())
						}
						f := startFleet(t, 3, store, list, into)
						for i := range 3 {
							unlock(t, f.lock(i, "k"))
						}
						for _, l := range logs {
							l.take()
						}
						var left []<-chan error
						for _, n := range f.nodes {
							done := make(chan error, 1)
							left = append(left, done)
							go func() { done <- n.Leave(context.Background()) }()
							if time.Sleep(pause); pause == inTurn {
								done <- <-done
							}
						}
						for i, done := range left {
							if err := <-done; err != nil {
								t.Errorf("node %d: Leave: %v", i, err)
							}
							f.nodes[i] = nil
						}
						for name, l := range logs {
							for _, line := range l.take() {
								if !strings.Contains(line, "level=INFO") || strings.Contains(line, "could not be closed") {
									t.Errorf("%s wrote %s", name, line)
								}
							}
						}
					})
				})
			}
		}
	}
}

// inTurn is longer than any leave of the test takes.
const inTurn = time.Minute

// leaves returns the pauses between the leaves of two instances.
func leaves() map[string]time.Duration {
	return map[string]time.Duration{"at once": 0, "50 ms apart": 50 * time.Millisecond,
		"a second apart": time.Second, "one after another": inTurn}
}
