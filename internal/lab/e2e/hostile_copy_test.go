package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// In TestHostileCopies a process with a copied directory dials the other instances with the key of
// a running instance. The original must keep its links, its vote and its lock.
func TestHostileCopies(t *testing.T) {
	slow.UnderRace(t)
	assaulted(t, []string{"secret"}, func(a *assault) {
		victim := a.follower()
		n := a.nodes[victim]
		mine := a.lock(victim, "k")
		a.unmoved(7*time.Second, func() {
			for at := range a.nodes {
				for range 20 {
					if a.nodes[at].Port.Linked(n.ID()) {
						a.twin(n, at)
					}
				}
			}
		})
		if err := mine.Err(); err != nil {
			a.t.Error(err)
		}
		unlock(a.t, mine)
		a.nothingLeft()
	})
}

func (a *assault) twin(n *node, at int) {
	a.t.Helper()
	c, err := a.speaker.Open(a.t.Context(), address(at))
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.Close()
	hello := a.speaker.Hello(n.Key(), wire.Hello_LINK, func(h *wire.Hello) {
		h.Group, h.Raft, h.Addr, h.Number = n.Replica().Group, raftOf(n), "10.0.0.66:7947", 1<<40
	})
	answer, err := c.Greet(attack.Sign(n.Key(), c.Binding, hello))
	if err != nil || answer.Refusal.GetReason() != wire.Refusal_COPY ||
		!strings.Contains(answer.Refusal.Text, "10.0.0.") {
		a.t.Errorf("node %d answers a copy with %v, %v", at, answer, err)
	}
	if !a.warned("a second process with the identity", "instance="+n.ID().String(), "10.0.0.66:") {
		a.t.Errorf("node %d has not logged the copy", at)
	}
}

// TestACopiedDirectoryWhileTheOriginalRuns starts an instance on a copied directory. The copy must
// not start.
func TestACopiedDirectoryWhileTheOriginalRuns(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		configure := func(i, at int) mortise.Config {
			c := durableConfig(f, root, i, at)
			withSecret(secretA)(&c)
			return c
		}
		for i := range 3 {
			f.start(i, configure(i, i))
		}
		f.ready()
		mine := f.lock(1, "k")
		raft := raftOf(f.nodes[1])
		c := configure(1, 3)
		c.Dir = filepath.Join(root, "copied")
		if err := os.CopyFS(c.Dir, os.DirFS(filepath.Join(root, f.nodes[1].config.Name))); err != nil {
			t.Fatal(err)
		}
		twin, err := start(t.Context(), c, f.world(3))
		if err == nil {
			f.nodes = append(f.nodes, twin)
		}
		time.Sleep(time.Minute) // six leases
		if err == nil {
			err = twin.Err()
		}
		t.Logf("the copy says: %v", err)
		if err == nil || !strings.Contains(err.Error(), "the directory is a copy") {
			t.Errorf("the copy takes part: %v", err)
		}
		if err := mine.Err(); err != nil {
			t.Errorf("the copy cost the original its lock: %v", err)
		}
		if now := raftOf(f.nodes[1]); now != raft {
			t.Errorf("the original had raft ID %x and has %x", raft, now)
		}
		unlock(t, mine)
	})
}
