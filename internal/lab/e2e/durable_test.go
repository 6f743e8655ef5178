package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func inDir(root string) func(*mortise.Config) {
	return func(c *mortise.Config) { c.Dir = filepath.Join(root, c.Name) }
}

// durableConfig returns the Config of node i in a group of three nodes with directories. The node
// binds address(at).
func durableConfig(f *fleet, root string, i, at int) mortise.Config {
	c := f.config(i, 3)
	c.SessionTTL = 10 * time.Second
	c.Bind = address(at)
	for j := 3; j < 6; j++ { // a test may restart the nodes at these addresses
		c.Join = append(c.Join, address(j))
	}
	inDir(root)(&c)
	return c
}

func TestDurableGroupSurvivesTheLossOfAll(t *testing.T) {
	slow.UnderRace(t)
	for _, c := range []struct {
		name string
		at   [3]int // index of the address at which each node restarts
	}{
		{"same addresses", [3]int{0, 1, 2}},
		{"new addresses", [3]int{3, 4, 5}},
		{"swapped addresses", [3]int{1, 2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root := t.TempDir()
				f := newFleet(t)
				for i := range 3 {
					f.start(i, durableConfig(f, root, i, i))
				}
				f.ready()
				group := f.nodes[0].Status().Group
				before := f.lock(0, "k")
				dead := f.lock(1, "of a session that dies")
				unlock(t, before)
				for i := range 3 {
					f.crash(i)
				}
				f.nodes = make([]*node, 6)
				for i, at := range c.at {
					n, err := start(t.Context(), durableConfig(f, root, i, at), f.world(at))
					if err != nil {
						t.Fatal(err)
					}
					f.nodes[at] = n
				}
				began := time.Now()
				f.ready()
				after := f.lock(c.at[1], "k")
				t.Logf("from the restart of all to the next grant: %v", time.Since(began))
				if s := f.nodes[c.at[0]].Status(); s.Group != group || !s.Votes {
					t.Errorf("the group did not go on:\n%v", s)
				}
				if after.Token() <= before.Token() {
					t.Errorf("token %d after %d", after.Token(), before.Token())
				}
				next := f.lock(c.at[2], "of a session that dies")
				if took := time.Since(began); took > 10*time.Second+2*failoverLimit {
					t.Errorf("the lock of a dead session was free after %v", took)
				}
				if next.Token() <= dead.Token() {
					t.Errorf("token %d after %d", next.Token(), dead.Token())
				}
				unlock(t, after)
				unlock(t, next)
				f.nothingLeft()
			})
		})
	}
}

func TestLocksOutliveTheRestartOfAllVoters(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		f.start(3, durableConfig(f, root, 3, 3))
		f.ready()
		mine := f.lock(3, "k")
		for i := range 3 {
			f.crash(i)
		}
		time.Sleep(time.Second)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		time.Sleep(time.Minute)
		if err := mine.Err(); err != nil {
			t.Errorf("the lock was lost with the restart of the voters: %v", err)
		}
		if _, err := f.nodes[0].TryLock(t.Context(), "k"); err == nil {
			t.Error("the restarted group granted a lock that is held")
		}
		unlock(t, mine)
		unlock(t, f.lock(0, "k"))
		f.nothingLeft()
	})
}

func TestDurableVoterVotesAgain(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		var last mortise.Token
		// Each voter is killed twice. Without directories, two kills would lose the group.
		for round := range 6 {
			victim := round % 3
			f.crash(victim)
			l := f.lock((victim+1)%3, "k")
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			unlock(t, l)
			f.start(victim, durableConfig(f, root, victim, victim))
			f.ready()
			if s := f.nodes[victim].Status(); !s.Votes {
				t.Errorf("round %d: a voter with its directory does not vote again:\n%v", round, s)
			}
		}
		f.nothingLeft()
	})
}

func TestDirectoryMistakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		root := t.TempDir()
		alone := func(i int) mortise.Config {
			c := f.config(i, 1)
			c.Join, c.Replicas = nil, 0
			c.Dir = filepath.Join(root, "one")
			return c
		}
		f.start(0, alone(0))
		f.ready()
		for what, c := range map[string]mortise.Config{
			"is open in another process": alone(1),
			"Config.Dir":                 func() mortise.Config { c := alone(1); c.Dir = "/dev/null/x"; return c }(),
		} {
			if _, err := start(t.Context(), c, f.world(1)); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("got %v, want an error that says %q", err, what)
			}
		}
		before := f.lock(0, "k")
		f.crash(0)
		other := alone(0)
		other.Cluster = "other"
		if _, err := start(t.Context(), other, f.world(0)); err == nil {
			t.Error("a directory of another cluster was taken")
			f.nodes[0] = nil
		} else {
			t.Logf("the error says: %v", err)
		}
		f.start(0, alone(0))
		after := f.lock(0, "k")
		if after.Token() <= before.Token() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
	})
}

// TestWipedDirectoryIsANewInstance checks that a voter that returns without its directory is a
// new instance. It has no vote until an ordinary change gives it one in place of the old instance.
func TestWipedDirectoryIsANewInstance(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		old := f.nodes[0].Status().Instance
		f.crash(0)
		c := durableConfig(f, root, 0, 0)
		c.Dir = filepath.Join(root, fmt.Sprint("a new disk"))
		f.start(0, c)
		f.ready()
		s := f.nodes[0].Status()
		if s.Instance == old || slices.ContainsFunc(s.Voters, func(v mortise.Member) bool { return v.Instance == old }) {
			t.Errorf("an instance without its disk must be a new one, in place of %s:\n%v", old, s)
		}
		f.wantVotes(3)
		unlock(t, f.lock(0, "k"))
		f.nothingLeft()
	})
}
