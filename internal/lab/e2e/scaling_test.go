package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// scaled is a fleet whose number of founders changes by rolling updates. It measures the cost of
// the changes.
type scaled struct {
	*fleet
	dir   string
	group string
}

// founded returns the Config of node i in a fleet with the given number of founders. Join names all
// nodes that run at any time.
func (s *scaled) founded(i, founders int) mortise.Config {
	c := s.config(i, 5)
	c.Replicas, c.Founders, c.Voters = 0, nil, max(3, founders-1+founders%2)
	for j := range founders {
		c.Founders = append(c.Founders, fmt.Sprintf("node-%d", j))
	}
	if s.dir != "" {
		c.Dir = filepath.Join(s.dir, c.Name)
	}
	return c
}

func (s *scaled) enter(i, founders int) {
	s.t.Helper()
	s.start(i, s.founded(i, founders))
	s.ready()
}

// leave makes node i leave while every other node holds a lock. No lock may be lost, and the grant
// of a free lock may take no longer than gapLeaving.
func (s *scaled) leave(i int, again func()) {
	s.t.Helper()
	held, probes := map[int]*mortise.Lock{}, map[int]*prober{}
	for j, n := range s.nodes {
		if n != nil && j != i {
			held[j], probes[j] = s.lock(j, fmt.Sprintf("own/%d", j)), s.probe(j, 5*time.Millisecond)
		}
	}
	time.Sleep(100 * time.Millisecond)
	s.depart(i, true)
	time.Sleep(500 * time.Millisecond)
	again()
	for j, l := range held {
		gap := probes[j].gap()
		s.t.Logf("node %d went: node %d was granted no free lock for at most %v", i, j, gap)
		if gap > gapLeaving {
			s.t.Errorf("node %d went: node %d was granted no free lock for %v", i, j, gap)
		}
		if err := l.Err(); err != nil {
			s.t.Errorf("node %d lost its lock when node %d went: %v", j, i, err)
		}
		_ = l.Unlock(s.t.Context())
	}
	for j, n := range s.nodes {
		if n != nil && n.Status().Group != s.group {
			s.t.Errorf("node %d belongs to group %s after node %d went, and the group was %s", j, n.Status().Group, i,
				s.group)
		}
	}
}

func (s *scaled) restart(i, founders int) {
	s.t.Helper()
	s.leave(i, func() { s.enter(i, founders) })
}

// grow starts the new nodes with the new founders, and then restarts the old nodes.
func (s *scaled) grow(from, to int) {
	s.t.Helper()
	for i := from; i < to; i++ {
		s.enter(i, to)
	}
	if from == 1 {
		s.advises(0, "node-0, which has the only vote, last")
	}
	for i := from - 1; i >= 0; i-- {
		s.restart(i, to)
	}
	s.rests(to)
}

func (s *scaled) advises(i int, want string) {
	s.t.Helper()
	h, err := s.nodes[i].Health(s.t.Context())
	if err != nil || !strings.Contains(h.Advice, want) {
		s.t.Errorf("node %d advises %q, want %q in it: %v", i, h.Advice, want, err)
	}
}

func (s *scaled) shrink(from, to int) {
	s.t.Helper()
	for i := to - 1; i >= 0; i-- {
		s.restart(i, to)
	}
	for i := from - 1; i >= to; i-- {
		s.leave(i, func() {})
	}
	s.rests(to)
}

// rests waits until no change of the voters is due. It then checks that all founders vote and that
// their settings do not differ.
func (s *scaled) rests(founders int) {
	s.t.Helper()
	h := s.settle()
	s.wantVotes(founders)
	if len(h.Differs) > 0 || h.Eligible != founders {
		s.t.Errorf("with %d founders: %v", founders, h)
	}
}

// TestShrinkingFromTheLast restarts the nodes from the last to the first, as a StatefulSet does.
// One of the four nodes does not vote, so the vote of a leaving node is handed over in several
// steps.
func TestShrinkingFromTheLast(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		s := &scaled{fleet: newFleet(t)}
		for i := range 4 {
			s.start(i, s.founded(i, 4))
		}
		s.ready()
		s.group = s.nodes[0].Status().Group
		for i := 3; i >= 0; i-- {
			s.restart(i, 1)
		}
		for i := 3; i > 0; i-- {
			s.leave(i, func() {})
		}
		s.rests(1)
	})
}

// TestASoleFounderBehindACut shrinks three founders to one. A founder that restarts behind a cut
// must not found a second group.
func TestASoleFounderBehindACut(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		s := &scaled{fleet: newFleet(t)}
		for i := range 3 {
			s.start(i, s.founded(i, 3))
		}
		s.ready()
		s.group = s.nodes[0].Status().Group
		held := s.lock(1, "k")
		s.depart(0, true)
		s.isolate(0)
		s.start(0, s.founded(0, 1))
		time.Sleep(time.Minute)
		if st := s.nodes[0].Status(); st.Group != "" ||
			!strings.Contains(st.Waiting, "no answer from 10.0.0.") {
			t.Errorf("behind the cut: %v", st)
		}
		s.rejoin(0)
		s.ready()
		if group := s.nodes[0].Status().Group; group != s.group || held.Err() != nil {
			t.Errorf("after the cut it belongs to %s, and the group was %s; a lock of another instance: %v", group,
				s.group, held.Err())
		}
		unlock(t, held)
	})
}

// In TestALostVoteIsTold the only voting founder leaves while no other instance may take its vote.
// Leave must return an error that says what to change.
func TestALostVoteIsTold(t *testing.T) {
	slow.UnderRace(t)
	for name, founders := range map[string][2]int{"none names others": {1, 1}, "one names others": {3, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := &scaled{fleet: newFleet(t)}
				s.enter(0, 1)
				for i, named := range founders {
					s.enter(i+1, named)
				}
				held := s.lock(1, "k")
				left, n := make(chan error, 1), s.nodes[0]
				s.nodes[0] = nil
				go func() { left <- n.Leave(context.Background()) }()
				time.Sleep(9 * time.Second)
				if s.votes() != 0 || held.Err() != nil {
					t.Errorf("while the only founder leaves %d others vote, and a lock of another instance: %v",
						s.votes(), held.Err())
				}
				err := <-left
				wantIs(t, err, mortise.ErrVoteLost)
				if !strings.Contains(err.Error(), "node-0") || founders[0] == 3 &&
					!strings.Contains(err.Error(), "[node-0, node-1, node-2] on node-1") {
					t.Errorf("Leave says: %v", err)
				}
				t.Log(err)
			})
		})
	}
}

// TestScaling scales a group from one founder to three, to five and back, by the steps of
// docs/OPERATION.md.
func TestScaling(t *testing.T) {
	slow.UnderRace(t)
	for _, where := range []string{"in memory", "with Dir"} {
		t.Run(where, func(t *testing.T) {
			if where == "with Dir" && testing.Short() {
				t.Skip("real processes do it at a merge: scripts/proctest -part -run TestScaling")
			}
			bubble(t, func(t *testing.T) {
				s := &scaled{fleet: newFleet(t)}
				if where == "with Dir" {
					s.dir = t.TempDir()
				}
				s.enter(0, 1)
				s.group = s.nodes[0].Status().Group
				s.advises(0, "start two more with Founders that name all three, then restart node-0")
				s.grow(1, 3)
				s.advises(0, "any one instance may be stopped")
				s.grow(3, 5)
				s.shrink(5, 3)
				s.shrink(3, 1)
			})
		})
	}
}
