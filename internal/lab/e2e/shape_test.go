package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestFoundersWithDirectoriesAndPodsWithout tests the layout for an autoscaler in
// docs/OPERATION.md: founders have directories, and other instances have none and never vote.
func TestFoundersWithDirectoriesAndPodsWithout(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		config := func(i int) mortise.Config {
			c := f.config(i, 3)
			c.Replicas, c.Founders = 0, []string{"node-0", "node-1", "node-2"}
			if i < 3 {
				inDir(root)(&c)
			}
			return c
		}
		for i := range 5 {
			f.start(i, config(i))
		}
		f.ready()
		group := f.nodes[3].Status().Group
		held := f.lock(3, "held while the founders are away")
		for i := range 3 {
			f.crash(i)
		}
		time.Sleep(time.Minute)
		if err := held.Err(); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("no renewal was confirmed for a minute, and the lock is %v", err)
		}
		for i := range 3 {
			f.start(i, config(i))
		}
		f.ready()
		f.crash(4)
		f.start(5, config(5))
		f.ready()
		for i, n := range f.nodes {
			if n == nil {
				continue
			}
			if s := n.Status(); s.Votes != (i < 3) || s.Group != group {
				t.Errorf("node %d votes: %v, in group %s, before it was %s", i, s.Votes, s.Group, group)
			}
			unlock(t, f.lock(i, "k"))
		}
		f.nothingLeft()
	})
}
