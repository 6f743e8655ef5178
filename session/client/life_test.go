package client

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestAnOldLeaderEndsNoSession checks that the client ignores the answer "no session" of a leader
// that was deposed before the session was last opened or attached.
func TestAnOldLeaderEndsNoSession(t *testing.T) {
	t.Parallel()
	for _, code := range []lockfsm.Code{lockfsm.NoSession, lockfsm.Stale} {
		b := newBench(t)
		b.attach() // attaches in term 3
		released := b.hold("a")
		b.core.Release(b.now, released)
		b.turn()
		b.core.Down(b.now, nodeidtest.ID(1))
		b.turn()
		b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(9)))
		b.turn()
		old := b.attached(code)
		old.Term = 2
		b.reply(nodeidtest.ID(9), old)
		b.advance(time.Second)
		if len(b.outcomes) != 0 || b.core.session == 0 {
			t.Fatalf("an old leader says code %d: outcomes %+v, session %d", code, b.outcomes, b.core.session)
		}
	}
}

// TestNoSession checks that the end of the session loses holds, confirms releases, and makes the
// client send waiting requests in a new session.
func TestNoSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench){
		"ended": func(b *bench) { b.reply(nodeidtest.ID(1), b.ended(session.EndNoSession)) },
		"attached": func(b *bench) {
			b.core.Down(b.now, nodeidtest.ID(1))
			b.turn()
			b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(1)))
			b.turn()
			b.reply(nodeidtest.ID(1), b.attached(lockfsm.NoSession))
		},
		"stale": func(b *bench) { // a copy of this process has attached with a higher epoch
			b.core.Down(b.now, nodeidtest.ID(1))
			b.turn()
			b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(1)))
			b.turn()
			b.reply(nodeidtest.ID(1), b.attached(lockfsm.Stale))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.attach()
			held, released := b.hold("a"), b.hold("b")
			waits := b.acquire("c", false)
			b.want("1: acquire 3 c")
			b.core.Release(b.now, released)
			b.turn()
			end(b)
			b.want("1: open nonce 2")
			if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeLost, Why: LossExpired, Request: held,
				Err: ErrLost}) ||
				b.outcomes[1] != (Outcome{Kind: OutcomeReleased, Request: released}) {
				t.Fatalf("outcomes %+v", b.outcomes)
			}
			if b.deadline != 0 {
				t.Error("the old deadline stands")
			}
			b.reply(nodeidtest.ID(1), b.opened(2, 200))
			if got := b.turn(); !strings.Contains(got, "acquire 4 c") {
				t.Errorf("frame %q", got)
			}
			b.core.Cancel(b.now, waits)
		})
	}
}

func TestEndedAttachesAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.reply(nodeidtest.ID(1), b.ended(session.EndUnknown))
	b.want("1: attach 2 live next 1, renew 2")
	b.reply(nodeidtest.ID(1), b.attached(lockfsm.Done))
	b.reply(nodeidtest.ID(1), b.ended(session.EndOverloaded))
	b.want("")
	b.advance(50 * time.Millisecond)
	b.want("1: attach 3 live next 1, renew 3")
	old := b.attached(lockfsm.Done)
	old.Epoch = 2
	b.reply(nodeidtest.ID(1), old)
	b.turn()
	if b.core.phase != Attaching {
		t.Error("the answer to an earlier Attach was taken for this Attach's")
	}
}

func TestUnknownGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.reply(nodeidtest.ID(1), b.state(99, lockfsm.Granted, 5))
	b.want("1: attach 2 live next 1, renew 2")
}

// TestUnansweredCommandAttachesAnew checks that the client attaches again if renewals are answered
// but a command is not.
func TestUnansweredCommandAttachesAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.advance(time.Millisecond)
	r := b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.advance(benchTTL/3 - time.Millisecond)
	b.want("1: renew 1")
	b.reply(nodeidtest.ID(1), b.renewed())
	b.advance(benchTTL / 3)
	b.want("1: attach 2 live 1-1 next 2, renew 2")
	b.reply(nodeidtest.ID(1), b.attached(lockfsm.Done))
	b.want("1: acquire 2 x")
	b.core.Cancel(b.now, r)
}

func TestRebindForgetsTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	held, released := b.hold("a"), b.hold("b")
	b.acquire("c", false)
	b.want("1: acquire 3 c")
	b.core.Release(b.now, released)
	b.core.Rebind(b.now, []byte("new life"), []nodeid.Endpoint{{ID: nodeidtest.ID(7), Addr: "g"}})
	b.want("7: open nonce 2")
	if string(b.commands[0].Record) != "new life" {
		t.Errorf("record %q", b.commands[0].Record)
	}
	if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeLost, Why: LossRestarted, Request: held,
		Err: ErrLost}) ||
		b.outcomes[1] != (Outcome{Kind: OutcomeReleased, Request: released, Err: ErrLost}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	b.reply(nodeidtest.ID(1), b.opened(1, 300)) // the answer to the Open before Rebind
	b.want("")
	b.reply(nodeidtest.ID(7), b.opened(2, 200))
	b.want("7: attach 2 live next 4, acquire 4 c, renew 2")
}

func TestCloseSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	held := b.hold("a")
	if err := b.core.CloseSession(b.now); err != ErrStillHeld {
		t.Fatalf("closing while a lock is held: %v", err)
	}
	b.core.Release(b.now, held)
	waits := b.acquire("b", false)
	b.want("1: release 1, acquire 2 b")
	b.reply(nodeidtest.ID(1), b.freed(1))
	if err := b.core.CloseSession(b.now); err != nil {
		t.Fatal(err)
	}
	late := b.acquire("c", false)
	b.want("1: cancel 2, close")
	if len(b.outcomes) != 3 || b.outcomes[1] != (Outcome{Kind: OutcomeFailed, Request: waits, Err: ErrClosed}) ||
		b.outcomes[2] != (Outcome{Kind: OutcomeFailed, Request: late, Err: ErrClosed}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	b.core.Down(b.now, nodeidtest.ID(1)) // it is unknown whether the command arrived
	b.want("2: attach 2 live next 3, renew 2")
	b.reply(nodeidtest.ID(2), b.attached(lockfsm.Done))
	b.want("2: close")
	b.reply(nodeidtest.ID(2), b.ended(session.EndNoSession))
	b.want("")
	if !b.core.Closed() || b.core.Next() != 0 {
		t.Error("not closed")
	}
	b.empty()
	b.advance(time.Hour)
	b.want("")
}

func TestCloseSessionBeforeThereIsOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if b.core.CloseSession(b.now); !b.core.Closed() {
		t.Error("an unopened session needs no leader to be closed")
	}
	b.want("")
	b = newBench(t)
	b.want("1: open nonce 1")
	if b.core.CloseSession(b.now); b.core.Closed() {
		t.Error("a session may have been opened")
	}
	b.reply(nodeidtest.ID(1), b.opened(1, 100))
	b.want("1: attach 1 live next 1, close, renew 1")
	b.reply(nodeidtest.ID(1), b.attached(lockfsm.Done), b.ended(session.EndNoSession))
	if !b.core.Closed() {
		t.Error("not closed")
	}
}

func TestLeavingIsSaidOnEveryAttachment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Leaving(b.now)
	b.want("1: leaving")
	b.want("")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live next 1, renew 2")
	b.reply(nodeidtest.ID(2), b.attached(lockfsm.Done))
	b.want("2: leaving")
}

// TestReleaseOfADelayedLockBehindTheEndOfItsSession checks that the end of the session does not
// confirm the release of a lock with a delay.
func TestReleaseOfADelayedLockBehindTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	delayed := &Request{Key: "a", Terms: &Terms{Delay: time.Second}}
	b.core.Acquire(b.now, delayed)
	b.turn()
	b.reply(nodeidtest.ID(1), b.state(b.commands[0].Number, lockfsm.Granted, 1000))
	b.turn()
	plain := b.hold("b")
	b.core.Release(b.now, delayed)
	b.core.Release(b.now, plain)
	b.turn()
	b.reply(nodeidtest.ID(1), b.ended(session.EndNoSession))
	b.turn()
	if want := []Outcome{{Kind: OutcomeReleased, Request: delayed, Err: ErrLost},
		{Kind: OutcomeReleased, Request: plain}}; !slices.Equal(b.outcomes, want) {
		t.Fatalf("outcomes %+v, want %+v", b.outcomes, want)
	}
	b.empty()
}
