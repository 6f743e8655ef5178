package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// durableFleet starts three ready nodes with directories below root.
func durableFleet(t *testing.T, root string) *fleet {
	t.Helper()
	f := newFleet(t)
	for i := range 3 {
		f.start(i, durableConfig(f, root, i, i))
	}
	f.ready()
	f.wantVotes(3)
	return f
}

// redeploy starts node i and waits until it is ready. It returns how long that took.
func (f *fleet) redeploy(c mortise.Config, i int) time.Duration {
	f.t.Helper()
	began := time.Now()
	n := f.start(i, c)
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		f.t.Fatal(err)
	}
	return time.Since(began)
}

// TestARollingDeployThatLosesEachDirectory kills one node after the other and deletes its
// directory. It only waits for Ready of the new node. The group and its data must survive.
func TestARollingDeployThatLosesEachDirectory(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := durableFleet(t, root)
		group, last := f.nodes[0].Status().Group, mortise.Token(0)
		first := f.lock(0, "k")
		if _, err := f.nodes[0].Put(t.Context(), "data", []byte("kept"), 0); err != nil {
			t.Fatal(err)
		}
		last = first.Token()
		unlock(t, first)
		for round := range 2 {
			for i := range 3 {
				c := durableConfig(f, root, i, i)
				f.crash(i)
				if err := os.RemoveAll(c.Dir); err != nil {
					t.Fatal(err)
				}
				took := f.redeploy(c, i)
				t.Logf("round %d: node %d was ready after %v", round, i, took)
				if took > 15*time.Second {
					t.Errorf("node %d was ready only after %v", i, took)
				}
				if s := f.nodes[i].Status(); s.Group != group || !s.Votes {
					t.Fatalf("Ready ended before the voter was replaced:\n%v", s)
				}
				l := f.lock(i, "k")
				if data, _, err := f.nodes[i].Get(t.Context(), "data"); err != nil || string(data) != "kept" {
					t.Errorf("node %d reads %q, %v", i, data, err)
				}
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				unlock(t, l)
			}
		}
		f.wantVotes(3)
	})
}

// TestTheOldDirectoryIsOut puts the directory of a replaced voter back. Its replica must not vote
// again: the instance gets a new one, like any other instance without a vote.
func TestTheOldDirectoryIsOut(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := durableFleet(t, root)
		c := durableConfig(f, root, 1, 1)
		old, oldID, away := f.nodes[1].Replica().ID, f.nodes[1].ID(), filepath.Join(root, "away")
		f.crash(1)
		if err := os.Rename(c.Dir, away); err != nil {
			t.Fatal(err)
		}
		f.redeploy(c, 1)
		heir := f.nodes[1].Replica().ID
		f.crash(1)
		if err := os.RemoveAll(c.Dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(away, c.Dir); err != nil {
			t.Fatal(err)
		}
		took := f.redeploy(c, 1)
		n := f.nodes[1]
		if n.ID() != oldID {
			t.Fatalf("%s is not the old instance %s", n.ID(), oldID)
		}
		if s := n.Status(); !s.Votes || n.Replica().ID == old || n.Replica().ID == heir {
			t.Errorf("ready after %v as replica %x; the old one was %x, its heir %x:\n%v", took, n.Replica().ID, old, heir, s)
		}
		f.wantVotes(3)
		unlock(t, f.lock(1, "k"))
		f.nothingLeft()
	})
}

// TestASecondProcessOfALivingVoter starts a process with the name of a voter that lives, with
// another address or with the voter's own. The voter keeps its vote, also while it is cut off.
func TestASecondProcessOfALivingVoter(t *testing.T) {
	slow.UnderRace(t)
	for _, claims := range []bool{false, true} {
		t.Run(fmt.Sprintf("claims the address %v", claims), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				root := t.TempDir()
				f := durableFleet(t, root)
				victim := f.follower()
				before := f.nodes[victim].Replica().ID
				c := durableConfig(f, root, 3, 3)
				c.Name = f.nodes[victim].config.Name
				if claims {
					c.Advertise = address(victim)
				}
				second := f.start(3, c)
				votes := func(when string) {
					t.Helper()
					n := f.nodes[victim]
					if s := n.Status(); !s.Votes || n.Replica().ID != before || second.Status().Votes {
						t.Fatalf("%s the second process has the vote:\n%v\n%v", when, s, second.Status())
					}
				}
				time.Sleep(20 * time.Second)
				votes("beside the first")
				f.isolate(victim)
				time.Sleep(40 * time.Second)
				f.rejoin(victim)
				time.Sleep(10 * time.Second)
				votes("after a cut")
			})
		})
	}
}

// slowSync is the duration of a sync of a slow disk. It is longer than a question waits for its
// answer.
const slowSync = 1300 * time.Millisecond

type slowRecords struct{ cluster.Records }

func (r slowRecords) Save(changes map[string][]byte) error {
	time.Sleep(slowSync)
	return r.Records.Save(changes)
}

func slowDisk(e *outside.World) {
	d := &disk{FS: storage.OSFS()}
	d.delay.Store(int64(slowSync))
	e.Files, e.Records = d, func(r cluster.Records) cluster.Records { return slowRecords{r} }
}

// TestASlowDiskCostsNoVote runs three nodes, one of them on a slow disk. Its answers to the leader
// are late, and it gets its vote all the same. Meanwhile three votes do not become one.
func TestASlowDiskCostsNoVote(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			if f.alter = nil; i == 2 {
				f.alter = slowDisk
			}
			f.start(i, durableConfig(f, root, i, i))
		}
		began := time.Now()
		f.ready()
		t.Logf("three votes after %v", time.Since(began))
		fewest := 3
		others := slices.Clone(f.nodes[:2])
		stop := f.sample(func() { fewest = min(fewest, configured(others)) })
		c := durableConfig(f, root, 2, 2)
		f.crash(2)
		if err := os.RemoveAll(c.Dir); err != nil {
			t.Fatal(err)
		}
		took := f.redeploy(c, 2)
		stop()
		t.Logf("replaced after %v", took)
		time.Sleep(10 * slowSync) // until then the node itself has applied the change
		f.wantVotes(3)
		if fewest < 3 || took > 40*time.Second {
			t.Errorf("ready after %v, and meanwhile only %d of the group voted", took, fewest)
		}
	})
}

// sample calls look every 50 ms until the result is called.
func (f *fleet) sample(look func()) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			look()
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

// configured returns how many replicas vote according to the leader, or three without a leader.
func configured(nodes []*node) int {
	for _, n := range nodes {
		if s := n.Status(); s.Leading {
			return len(slices.DeleteFunc(s.Voters, func(m mortise.Member) bool { return !m.Votes }))
		}
	}
	return 3
}
