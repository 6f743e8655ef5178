package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// newLead returns a bench whose keeper has just begun to lead a group with the given number of
// sessions, one for each peer from 1 on. The keeper enters them in several turns, and the
// parameter step is the number per turn. ids[i] is the session of peer i, at epoch 1.
func newLead(t *testing.T, sessions, step int) (b *bench, ids []lockfsm.SessionID) {
	t.Helper()
	b = leadingBench(t)
	ids = make([]lockfsm.SessionID, sessions+1)
	for i := 1; i <= sessions; i++ {
		ids[i] = b.open(nodeidtest.ID(uint64(i)))
	}
	for i := range sessions {
		b.core.Down(b.now, nodeidtest.ID(uint64(i+1)))
	}
	b.turn()
	b.next(step)
	return b, ids
}

func (b *bench) next(step int) {
	b.term++
	b.core.Step = step
	b.core.Role(b.now, Role{Term: b.term, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.leads()
}

// TestALeadBeginsInSteps checks that a new leader enters a bounded number of sessions per turn, and
// that each gets its full TTL from the beginning of the leadership.
func TestALeadBeginsInSteps(t *testing.T) {
	t.Parallel()
	const sessions, step = 50, 7
	b, ids := newLead(t, sessions, step)
	began := b.now
	for entered := 0; entered < sessions; {
		if b.core.Next() != b.now {
			t.Fatalf("with %d sessions entered the next turn is due at %v, now is %v", entered, b.core.Next(), b.now)
		}
		b.advance(20 * time.Millisecond)
		b.turn()
		now := len(b.core.leases.sessions)
		if want := min(entered+step, sessions); now != want {
			t.Fatalf("a turn has entered %d sessions and not %d", now-entered, want-entered)
		}
		if n := b.core.Status().Sessions; n != sessions {
			t.Fatalf("the status counts %d sessions", n)
		}
		entered = now
	}
	for _, id := range ids[1:] {
		if kept, ok := b.core.Kept(id); !ok || kept.Deadline != began.Add(benchTTL) {
			t.Errorf("session %d: %+v, %v, want its deadline a TTL after the lead began", id, kept, ok)
		}
	}
	if b.core.leases.entering.sessions != nil {
		t.Error("the list is kept after all are entered")
	}
}

func TestASessionThatIsNotEnteredIsServed(t *testing.T) {
	t.Parallel()
	const sessions = 40
	b, ids := newLead(t, sessions, 1)
	last := ids[sessions]
	began := b.now
	b.pass(time.Second)
	if kept, ok := b.core.Kept(last); !ok || kept.Deadline != began.Add(benchTTL) {
		t.Errorf("kept is %+v, %v", kept, ok)
	}
	if left := b.core.Left(b.now, []lockfsm.SessionID{ids[sessions-1], 1 << 40}); left[0] != benchTTL-time.Second ||
		left[1] != 0 {
		t.Errorf("left is %v", left)
	}
	b.send(nodeidtest.ID(1), b.attachCmd(last, 2))
	b.turn()
	b.want(nodeidtest.ID(1), "attached 2 no session")
	b.attach(nodeidtest.ID(sessions), last, 2)
	b.renew(nodeidtest.ID(sessions), last, 2, 1)
	b.send(nodeidtest.ID(sessions), acquireCmd(last, 2, 1, "x"))
	b.step()
	b.want(nodeidtest.ID(sessions), "state 1 granted, renewed 1")
	if b.core.leases.entering.left == 0 {
		t.Fatal("all are entered: nothing was shown")
	}
	if kept, _ := b.core.Kept(last); kept.Deadline != b.now.Add(benchTTL) {
		t.Errorf("the renewal has moved the deadline to %v", kept.Deadline.Sub(b.now))
	}
}

func TestASessionThatEndsIsNotEntered(t *testing.T) {
	t.Parallel()
	const sessions = 40
	b, ids := newLead(t, sessions, 1)
	peer, id, other := nodeidtest.ID(30), ids[30], ids[31]
	b.attach(peer, id, 2)
	b.send(peer, lockfsm.Command{Kind: lockfsm.Close, Session: id, Epoch: 2})
	b.step()
	b.want(peer, "ended 2 no session")
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Expire, Session: other, Code: lockfsm.Done}})
	if b.core.leases.entering.next >= 29 {
		t.Fatal("it was entered in its turn: nothing was shown")
	}
	for b.core.leases.entering.left > 0 {
		b.turn()
	}
	for _, gone := range []lockfsm.SessionID{id, other} {
		if _, ok := b.core.Kept(gone); ok {
			t.Errorf("session %d was entered after its end", gone)
		}
	}
	if n := b.core.Status().Sessions; n != sessions-2 {
		t.Errorf("%d sessions", n)
	}
}

// TestOpensWaitUntilAllAreEntered checks that the limit on the sessions of a peer applies after all
// sessions are entered.
func TestOpensWaitUntilAllAreEntered(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	open := func(n int) {
		b.send(nodeidtest.ID(1), lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1, byte(n), byte(n >> 8)},
			TTL: benchTTL})
		b.step()
	}
	for n := range peerSessions {
		open(n)
	}
	b.next(1)
	for n := range 3 {
		open(1000 + n)
		b.want(nodeidtest.ID(1), "")
	}
	for b.core.leases.entering.left > 0 {
		b.turn()
	}
	open(1000)
	b.want(nodeidtest.ID(1), fmt.Sprint("opened ", lockfsm.TooManySessions))
	if n := b.machine.Counts().Sessions; n != peerSessions {
		t.Errorf("%d sessions", n)
	}
}

// TestMassExpiryIsInSteps checks that a turn ends a limited number of sessions, and that the next
// turn is due immediately while expired sessions are left.
func TestMassExpiryIsInSteps(t *testing.T) {
	t.Parallel()
	const sessions, step = 40, 7
	b, _ := newLead(t, sessions, 1000)
	b.pass(benchTTL - tickEvery)
	b.core.Step = step
	b.advance(tickEvery)
	for expiring := 0; expiring < sessions; {
		b.turn()
		now := b.core.Status().Expiring
		if want := min(expiring+step, sessions); now != want {
			t.Fatalf("a turn has ended %d sessions and not %d", now-expiring, want-expiring)
		}
		if expiring = now; expiring < sessions && b.core.Next() != b.now {
			t.Fatal("the next turn is not due at once")
		}
	}
	b.apply()
	if n := b.machine.Counts().Sessions; n != 0 {
		t.Errorf("%d sessions live on", n)
	}
}

// TestRenewedSessionsAreLookedAtInSteps checks many renewed sessions that had the same deadline at
// first.
func TestRenewedSessionsAreLookedAtInSteps(t *testing.T) {
	t.Parallel()
	const sessions, step = 40, 7
	b, ids := newLead(t, sessions, 1000)
	for i, id := range ids[1:] {
		b.attach(nodeidtest.ID(uint64(i+1)), id, 2)
	}
	b.pass(benchTTL / 2)
	for i, id := range ids[1:] {
		b.renew(nodeidtest.ID(uint64(i+1)), id, 2, 1)
	}
	b.step()
	b.core.Step = step
	late := b.now.Add(benchTTL) // the deadline of all sessions
	b.advance(benchTTL/2 - watchBefore)
	for moved := 0; moved < sessions; {
		b.turn()
		now := 0
		for _, e := range b.core.leases.expiries {
			if e.at == late {
				now++
			}
		}
		if want := min(moved+step, sessions); now != want {
			t.Fatalf("a turn has looked at %d sessions and not at %d", now-moved, want-moved)
		}
		moved = now
	}
	if b.core.Status().Expiring != 0 {
		t.Error("a renewed session expires")
	}
}

// BenchmarkLead measures the longest turn of a new leader with a million sessions, and the longest
// turn when the sessions expire, with the default steps and with a single step.
func BenchmarkLead(b *testing.B) {
	const million = 1_000_000
	all := make([]lockfsm.SessionInfo, million)
	for i := range all {
		all[i] = lockfsm.SessionInfo{ID: lockfsm.SessionID(i + 1),
			Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(i + 1))}, TTL: benchTTL}
	}
	for name, step := range map[string]int{"steps": 0, "whole": million} {
		b.Run(name, func(b *testing.B) {
			var begin, end time.Duration // the longest turn of each phase
			for b.Loop() {
				k, now := NewCore(), clock.Time(time.Hour)
				k.Step = step
				turns := func(longest *time.Duration, done func() bool) {
					for !done() {
						began := time.Now()
						k.Tick(now)
						*longest = max(*longest, time.Since(began))
						if _, blob := k.Proposal(1); blob != nil {
							k.Proposed(true)
						}
					}
				}
				k.Role(now, Role{Term: 1, Leading: true})
				k.Leads(now, Leadership{Term: 1, Sessions: all, Born: true, GraceOver: true})
				turns(&begin, func() bool { return k.leases.entering.left == 0 })
				now = now.Add(benchTTL)
				k.now = now // so that no stall is detected
				turns(&end, func() bool { return k.leases.expiring == million })
			}
			b.ReportMetric(begin.Seconds()*1000, "ms/longest-turn-of-the-beginning")
			b.ReportMetric(end.Seconds()*1000, "ms/longest-turn-of-the-expiry")
		})
	}
}
