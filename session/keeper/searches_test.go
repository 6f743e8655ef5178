package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestSearchesArePaced checks that one search is asked for at a time, that a pause in proportion to
// its work follows, and that a Refuse is proposed once.
func TestSearchesArePaced(t *testing.T) {
	k := NewCore()
	now := clock.Time(time.Hour)
	rounds, proposed := []uint64{}, 0
	to := &Outlets{
		Confirm: func(_, round uint64) {
			if round&SearchRound != 0 {
				rounds = append(rounds, round)
			}
		},
		Propose: func(_ uint64, blob []byte) bool {
			for len(blob) > 0 {
				command, rest, err := lockfsm.Next(blob)
				if h, _ := lockfsm.Peek(command); err == nil && h.Kind == lockfsm.Refuse {
					proposed++
				}
				blob = rest
			}
			return true
		},
		WallUnixMS: func() int64 { return 1 },
	}
	k.Role(now, Role{Term: 3, Leading: true})
	k.Leads(now, Leadership{Term: 3, Born: true, GraceOver: true, Unsearched: true})
	k.Turn(now, to)
	k.Turn(now, to)
	if len(rounds) != 1 {
		t.Fatalf("%d searches are asked for at once", len(rounds))
	}
	const steps = 30_000
	refuse := lockfsm.Command{Kind: lockfsm.Refuse, Proof: make([]lockfsm.Place, 1)}
	k.Searched(now, 3, lockfsm.Search{Steps: steps, Left: true, Refuse: refuse.Append(nil)})
	k.Turn(now, to)
	if at := k.Next(); at.Sub(now) < steps*stepPause || len(rounds) != 1 {
		t.Errorf("the next search comes %v after %d steps", at.Sub(now), steps)
	}
	k.Turn(now, to)
	if proposed != 1 {
		t.Errorf("the Refuse is proposed %d times", proposed)
	}
	now = now.Add(steps * stepPause)
	k.Turn(now, to)
	if len(rounds) != 2 {
		t.Fatalf("after the pause %d searches are asked for", len(rounds))
	}
	now = now.Add(searchLostTime)
	k.Turn(now, to)
	if len(rounds) != 3 {
		t.Error("a search whose answer is lost is not asked for again")
	}
	k.Searched(now, 3, lockfsm.Search{})
	now = now.Add(time.Hour)
	if k.Turn(now, to); len(rounds) != 3 {
		t.Error("a search is asked for when none is left")
	}
	k.Applied(now, []lockfsm.Result{{Kind: lockfsm.Acquire, Code: lockfsm.Waiting, Unsearched: true}})
	if k.Turn(now, to); len(rounds) != 4 {
		t.Error("no search is asked for after an Acquire that ended its search")
	}
	k.Role(now, Role{Term: 4, Leading: true})
	k.Leads(now, Leadership{Term: 4, Born: true, GraceOver: true})
	k.Searched(now, 3, lockfsm.Search{Refuse: refuse.Append(nil)})
	if k.Turn(now, to); proposed != 1 {
		t.Error("a Refuse of an earlier term is proposed")
	}
}

// TestASlowGroupIsNotFilledWithRefuses lets the log refuse a Refuse, and then lets each one take
// effect late. Nothing is searched while a Refuse waits for the log, and the pauses before a
// request is searched again become longer.
func TestASlowGroupIsNotFilledWithRefuses(t *testing.T) {
	k := NewCore()
	now := clock.Time(time.Hour)
	searches, proposed, full := 0, 0, true
	to := &Outlets{
		Confirm: func(_, round uint64) {
			if round&SearchRound != 0 {
				searches++
			}
		},
		Propose:    func(uint64, []byte) bool { proposed++; return !full },
		WallUnixMS: func() int64 { return 1 },
	}
	k.Role(now, Role{Term: 3, Leading: true})
	k.Leads(now, Leadership{Term: 3, Born: true, GraceOver: true, Unsearched: true})
	k.Turn(now, to)
	refuse := lockfsm.Command{Kind: lockfsm.Refuse, Proof: make([]lockfsm.Place, 1)}.Append(nil)
	found := lockfsm.Search{Refuse: refuse, Again: true, Left: true}
	k.Searched(now, 3, found)
	for range 1000 {
		now = max(now.Add(time.Millisecond), k.Next())
		k.Turn(now, to)
	}
	if searches != 1 || proposed < 2 || len(k.searches.refuse) != len(refuse) {
		t.Errorf("%d searches, %d batches, %d bytes wait for the log", searches, proposed, len(k.searches.refuse))
	}
	full = false
	begun := now
	for searches = 0; now.Sub(begun) < time.Minute; now = now.Add(time.Millisecond) {
		before := searches
		if k.Turn(now, to); searches > before {
			found.Tries++
			k.Searched(now, 3, found)
		}
	}
	if searches < 60 || searches > 100 {
		t.Errorf("%d searches for one request in a minute", searches)
	}
}
