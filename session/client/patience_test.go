package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// slowLeader is a bench whose leader has just answered a renewal after the given time, and whose
// next renewal is on its way.
func slowLeader(t *testing.T, took time.Duration) *bench {
	b := newBench(t)
	b.attach()
	b.advance(b.core.renewAt().Sub(b.now))
	b.turn()
	reply := b.renewed()
	b.advance(took)
	b.reply(nodeidtest.ID(1), reply)
	b.advance(b.core.renewAt().Sub(b.now))
	b.turn()
	if _, flying := b.core.pulse.renewals.Oldest(); !flying || b.core.phase != Attached {
		t.Fatal("no renewal is on its way")
	}
	return b
}

// TestALateClientLeavesASilentLeaderInTime checks that a client which is late, and whose leader was
// slow before, decides to leave a silent leader while a quarter of its lease is left.
func TestALateClientLeavesASilentLeaderInTime(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{time.Millisecond, 900 * time.Millisecond, 1900 * time.Millisecond} {
		for late := time.Duration(0); late <= pausedFor; late += 50 * time.Millisecond {
			b := slowLeader(t, took)
			for b.core.phase == Attached {
				b.advance(max(b.core.Next().Sub(b.now), 0) + late)
				b.core.Tick(b.now)
			}
			if left := b.core.pulse.lease.left(b.now); left+late < benchTTL/4 {
				t.Errorf("a leader that took %v is silent and the client is %v late: it leaves with %v left",
					took, late, left)
			}
		}
	}
}

// TestSeveralSilentLeadersInTurn checks that a client whose leader was slow before has time to ask
// two more targets if this leader and the next one that a voter names are both silent.
func TestSeveralSilentLeadersInTurn(t *testing.T) {
	t.Parallel()
	b := slowLeader(t, 1900*time.Millisecond)
	b.advance(b.core.Next().Sub(b.now))
	b.turn()
	b.reply(nodeidtest.ID(2), redirect(4, nodeidtest.ID(3)))
	b.turn()
	if b.core.phase != Attaching || b.to.ID != nodeidtest.ID(3) {
		t.Fatalf("it asks %d", nodeidtest.Number(b.to.ID))
	}
	asked := 0
	for b.core.pulse.lease.left(b.now) > 0 {
		b.advance(max(b.core.Next().Sub(b.now), 0))
		if b.turn(); len(b.commands) > 0 && b.commands[0].Kind == lockfsm.Attach {
			asked++
		}
	}
	if asked < 2 {
		t.Errorf("it asks %d more targets before its lease ends", asked)
	}
}

// TestATryDoesNotWaitForASilentLeader checks that a request with Try ends within tryWithout at a
// silent leader, also if the leader was slow before and the next one that a voter names is silent.
func TestATryDoesNotWaitForASilentLeader(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{time.Millisecond, 900 * time.Millisecond, 1900 * time.Millisecond} {
		for after := time.Duration(0); after < 4*time.Second; after += 300 * time.Millisecond {
			b := slowLeader(t, took)
			for until := b.now.Add(after); b.now.Before(until); b.turn() {
				b.advance(max(min(b.core.Next().Sub(b.now), until.Sub(b.now)), 0))
			}
			began, r := b.now, b.acquire("k", true)
			turns := 0
			for b.turn(); len(b.outcomes) == 0; b.turn() {
				if turns++; turns > 100 {
					t.Fatalf("a leader that took %v is silent for %v: a Try does not end", took, after)
				}
				if len(b.commands) > 0 && b.to.ID == nodeidtest.ID(2) {
					b.reply(nodeidtest.ID(2), redirect(4, nodeidtest.ID(3)))
				} else {
					b.advance(max(b.core.Next().Sub(b.now), 0))
				}
			}
			b.outcome(r, OutcomeFailed, ErrNoLeader)
			if waited := b.now.Sub(began); waited > tryWithout {
				t.Errorf("a leader that took %v is silent for %v: a Try waits for %v", took, after, waited)
			}
		}
	}
}

// TestATryAfterAPauseWaitsForTheLeader checks that a request with Try which is made after the
// process was paused, and before the leader's answers are read, does not fail. The leader was not
// silent.
func TestATryAfterAPauseWaitsForTheLeader(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{tryWithout, 2 * tryWithout, benchTTL / 2} {
		b := slowLeader(t, time.Millisecond)
		missed := b.renewed()
		b.advance(pause)
		r := b.acquire("k", true)
		b.turn()
		b.reply(nodeidtest.ID(1), missed)
		b.turn()
		b.reply(b.to.ID, b.attached(lockfsm.Done), b.renewed())
		b.turn()
		b.reply(b.to.ID, b.state(r.entry.number, lockfsm.Granted, 7))
		b.turn()
		b.outcome(r, OutcomeGranted, nil)
	}
}
