package keeper

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestAdoptIsProposed checks that each requested change is proposed once. If several changes wait,
// only the newest is proposed.
func TestAdoptIsProposed(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.core.ProposeAdopt(b.now, 5, 3*benchTTL, []byte("older"), session.Budgets{})
	b.core.ProposeAdopt(b.now, 5, 2*benchTTL, []byte("newer"), session.Budgets{})
	if b.core.Next() != b.now {
		t.Fatal("not due at once")
	}
	b.turn()
	if !slices.Equal(b.kinds, []string{"stamp", "adopt"}) {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	if c := b.machine.Charter(); c.SessionTTL != 2*benchTTL || string(c.Settings) != "newer" {
		t.Fatalf("adopted %v, %q", c.SessionTTL, c.Settings)
	}
	b.turn()
	if len(b.kinds) != 0 || b.core.due() {
		t.Fatalf("proposed again: %v", b.kinds)
	}
	b.core.ProposeAdopt(b.now, 5, 0, []byte("newest"), session.Budgets{})
	b.turn()
	b.apply()
	if c := b.machine.Charter(); c.SessionTTL != 2*benchTTL || string(c.Settings) != "newest" {
		t.Fatalf("adopted %v, %q", c.SessionTTL, c.Settings)
	}
}

func TestRaiseIsProposed(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.core.ProposeRaise(b.now, 5, lockfsm.RulesVersion+1) // the machine fails if this is proposed
	b.turn()
	if !slices.Equal(b.kinds, []string{"stamp", "raise"}) {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	if b.machine.Failed() == nil {
		t.Fatal("the version in the command is not the one that was asked for")
	}
	b.turn()
	if len(b.kinds) != 0 {
		t.Fatalf("proposed again: %v", b.kinds)
	}
}

func TestAdoptAndRaiseBelongToTheirTerm(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	both := func(term uint64) {
		b.core.ProposeAdopt(b.now, term, benchTTL, []byte("s"), session.Budgets{})
		b.core.ProposeRaise(b.now, term, 2)
	}
	both(4)
	both(6)
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("of another term: proposed %v", b.kinds)
	}
	both(5)
	b.refuse = true
	if b.turn(); len(b.kinds) != 3 {
		t.Fatalf("proposed %v", b.kinds)
	}
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed again at once, %v", b.kinds)
	}
	b.refuse = false
	b.advance(retryAfter)
	if b.turn(); !slices.Equal(b.kinds, []string{"stamp", "adopt", "raise"}) {
		t.Fatalf("what was refused is forgotten: proposed %v", b.kinds)
	}
	both(5)
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.leads()
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("of the term before: proposed %v", b.kinds)
	}
	b.core.Role(b.now, Role{Term: 6, Leader: nodeid.Endpoint{ID: nodeidtest.ID(3), Addr: "three"}})
	both(6)
	if b.core.duties.adopt != nil || b.core.duties.raise != 0 {
		t.Fatal("kept by a keeper that does not lead")
	}
}

// TestAdoptAndRaiseWaitForBorn checks that Adopt and Raise are proposed only after Born, because
// the group would refuse them earlier.
func TestAdoptAndRaiseWaitForBorn(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.core.ProposeAdopt(b.now, 5, 2*benchTTL, nil, session.Budgets{})
	b.core.ProposeRaise(b.now, 5, 1)
	b.leads()
	if b.turn(); len(b.kinds) != 0 {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.core.AllBound(b.now)
	b.turn()
	if !slices.Equal(b.kinds, []string{"stamp", "born"}) {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	if b.turn(); !slices.Equal(b.kinds, []string{"stamp", "adopt", "raise"}) {
		t.Fatalf("proposed %v", b.kinds)
	}
	b.apply()
	if ttl := b.machine.Charter().SessionTTL; ttl != 2*benchTTL {
		t.Fatalf("TTL %v", ttl)
	}
}

// TestAdoptedTTLIsForSessionsToCome checks that an existing session keeps its TTL in the state and
// in keepers.
func TestAdoptedTTLIsForSessionsToCome(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	old := b.open(nodeidtest.ID(1))
	b.core.ProposeAdopt(b.now, 5, benchTTL/2, nil, session.Budgets{})
	b.step()
	young := b.open(nodeidtest.ID(2))
	want := map[lockfsm.SessionID]time.Duration{old: benchTTL, young: benchTTL / 2}
	for range 2 {
		for id, ttl := range want {
			if got := b.core.leases.session(id).ttl; got != ttl {
				t.Errorf("session %d has a TTL of %v here, want %v", id, got, ttl)
			}
		}
		b.core.Role(b.now, Role{Term: b.term + 1, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9),
			Addr: "self"}})
		b.term++
		b.leads()
	}
}

func TestKeeperProposesAdoptAndRaise(t *testing.T) {
	t.Parallel()
	proposed := make(chan string, 16)
	k := New(Config{
		Clock: clock.Boot(),
		Outlets: Outlets{Propose: func(_ uint64, blob []byte) bool {
			for len(blob) > 0 {
				command, rest, err := lockfsm.Next(blob)
				if err != nil {
					proposed <- err.Error()
					return false
				}
				c, _ := lockfsm.Decode(command)
				proposed <- fmt.Sprintf("%v %v %q %d", c.Kind, c.TTL, c.Settings, c.Version)
				blob = rest
			}
			return true
		},
			Confirm: func(_, _ uint64) {}, Reply: func(nodeid.ID, []byte) error { return nil },
			WallUnixMS: func() int64 { return 1 }},
	})
	defer k.Close()
	k.Role(Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	k.Leads(Leadership{Term: 5, Born: true, GraceOver: true})
	k.ProposeAdopt(5, time.Minute, []byte("s"), session.Budgets{})
	k.ProposeRaise(5, 1)
	var all []string
	for len(all) < 3 || !slices.Contains(all, `raise 0s "" 1`) || !slices.Contains(all, `adopt 1m0s "s" 0`) {
		select {
		case p := <-proposed:
			all = append(all, p)
		case <-time.After(10 * time.Second):
			t.Fatalf("proposed only %q", all)
		}
	}
}
