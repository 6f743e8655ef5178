package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// kindWhoIs is the second byte of the question "who are you?" of package founding.
const kindWhoIs = 1

// large starts n instances. The first three are founders. Join names all instances if all is true,
// otherwise only the founders.
func (f *fleet) large(n int, all bool) {
	named := 3
	if all {
		named = n
	}
	for i := range n {
		cfg := f.config(i, named)
		cfg.Settings.Replicas, cfg.Settings.Founders = 0, []string{"n0", "n1", "n2"}
		f.start(cfg)
	}
}

// coldWithin is the time limit for 256 instances that start together to become members.
const coldWithin = 8 * time.Second

func TestAColdStartOfManyInstances(t *testing.T) {
	slow.UnderRace(t)
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("Join names all: %v", all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				f.net.tape()
				began := time.Now()
				f.large(256, all)
				f.raft(coldWithin)
				f.oneGroup()
				asked := f.net.played(kindWhoIs, "", "")
				most, from := 0, 0
				for i, h := range asked {
					for h.at.Sub(asked[from].at) >= time.Second {
						from++
					}
					most = max(most, i-from+1)
				}
				t.Logf("%d questions in %v, up to %d in a second", len(asked), time.Since(began), most)
				if most > 8*len(f.nodes) {
					t.Errorf("%d questions in one second from %d instances", most, len(f.nodes))
				}
				for i, n := range f.nodes {
					if founds := i < 3; founds != (n.gossip != nil) {
						t.Errorf("instance %d gossips: %v", i, !founds)
					}
					n.port.mu.Lock()
					if n.port.most[kindWhoIs] > maxAsks || n.port.double > 1 {
						t.Errorf("instance %d had %d questions under way, %d of them to one address", i,
							n.port.most[kindWhoIs], n.port.double)
					}
					n.port.mu.Unlock()
				}
				for i := 3; i < len(f.nodes); i++ {
					if f.net.dials[addrOf(i)] > 0 {
						t.Fatalf("gossip has dialed %s, which does not gossip", addrOf(i))
					}
				}
			})
		})
	}
}

// TestQuestionsUnderWayAreBounded checks that each silent address occupies only one slot for
// questions, and that no address is asked twice at a time.
func TestQuestionsUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfg := f.config(0, 40)
		for i := 1; i < 40; i++ {
			f.net.muffle(addrOf(i), true)
		}
		n := f.start(cfg)
		time.Sleep(20 * time.Second)
		n.port.mu.Lock()
		defer n.port.mu.Unlock()
		if most := n.port.most[kindWhoIs]; most != maxAsks || n.port.double > 1 {
			t.Errorf("%d questions were under way, %d of them to one address; want %d and 1", most, n.port.double,
				maxAsks)
		}
	})
}

// TestAMemberThatDoesNotGossipAsksSeldom checks that an instance that is not a founder receives a
// newer configuration from the leader, and asks at most two questions in 30 s.
func TestAMemberThatDoesNotGossipAsksSeldom(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.large(8, true)
		f.raft(10 * time.Second)
		f.oneGroup()
		f.net.tape()
		f.raft(5 * time.Minute)
		for i := 3; i < 8; i++ {
			if n := len(f.net.played(kindWhoIs, addrOf(i), "")); n < 4 || n > 22 {
				t.Errorf("instance %d asked %d questions in five minutes, want one or two in 30 to 60 s", i, n)
			}
		}
	})
}

// TestAMemberThatDoesNotGossipSeesAnotherGroup checks that an instance that does not gossip detects
// another group with a leader by asking.
func TestAMemberThatDoesNotGossipSeesAnotherGroup(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.large(5, true)
		f.raft(10 * time.Second)
		one := f.oneGroup()
		other := f.config(9, 5)
		other.Name, other.Advertise = "m0", addrOf(4) // the Join of the other instances names this address
		other.Join = []string{addrOf(4)}
		other.Settings.Replicas, other.Settings.Founders = 0, []string{"m0"}
		f.nodes[4].stop()
		f.start(other)
		seen := func() bool { return strings.Contains(f.nodes[3].Status().Waiting, "two groups") }
		for range 30 { // the instance asks one random address of four
			if f.raft(time.Minute); seen() {
				break
			}
		}
		if f.nodes[4].Status().Group == one || f.nodes[4].Status().Group == 0 {
			t.Fatal("there are not two groups")
		}
		if !seen() {
			t.Errorf("an instance that does not gossip waits for %q", f.nodes[3].Status().Waiting)
		}
	})
}

func TestTheLeaderTellsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.large(64, false)
		f.raft(10 * time.Second)
		f.oneGroup()
		g := f.newGroup()
		for _, n := range f.nodes {
			if n != g.leader {
				n.follows(g.leader)
			}
		}
		for i := 50; i < 64; i++ {
			f.net.muffle(addrOf(i), true)
		}
		g.leader.lead(1, g.see())
		time.Sleep(lead.Pause)
		g.leader.Configured(g.id, 9, with(g.config, 90))
		time.Sleep(10 * time.Second)
		told := 0
		for i, n := range f.nodes {
			if i >= 3 && i < 50 && len(n.Status().Voters) == len(g.config)+1 {
				told++
			}
		}
		g.leader.port.mu.Lock()
		defer g.leader.port.mu.Unlock()
		if most := g.leader.port.most[kindAnnounce]; told != 47 || most > maxAsks {
			t.Errorf("%d of 47 were told, up to %d at a time", told, most)
		}
	})
}

// TestTheFinderIsBounded checks that only a few of many answering addresses are joined at the same
// time, and no address is joined again soon.
func TestTheFinderIsBounded(t *testing.T) {
	f := newFinder("self:1")
	for round := range 10 {
		now := time.Duration(round) * 100 * time.Millisecond
		for i := range 100 {
			f.met(fmt.Sprintf("new-%d:1", i), now)
		}
		got := f.due(now, nil, nil, 0)
		if len(f.busy) > rejoinMany {
			t.Fatalf("%d attempts are under way", len(f.busy))
		}
		for _, addr := range got {
			delete(f.busy, addr)
		}
		slices.Sort(got)
	}
	if len(f.now) > 100 {
		t.Errorf("%d addresses wait", len(f.now))
	}
}
