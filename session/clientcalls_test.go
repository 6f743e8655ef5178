package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestAcquireAndRelease(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	r := b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.reply(1, b.state(1, lockfsm.Waiting, 0))
	b.turn()
	b.quiet()
	b.reply(1, b.state(1, lockfsm.Granted, 42))
	b.turn()
	b.outcome(r, OutcomeGranted, nil)
	if b.outcomes[0].Token != 42 {
		t.Errorf("token %d", b.outcomes[0].Token)
	}
	b.reply(1, b.state(1, lockfsm.Granted, 42)) // told again
	b.turn()
	b.quiet()
	if !b.core.Release(b.now, r) || b.core.Release(b.now, r) {
		t.Error("the first Release must count, the second must not")
	}
	b.want("1: release 1")
	b.reply(1, b.freed(1))
	b.turn()
	b.outcome(r, OutcomeReleased, nil)
	b.empty()
}

func TestCancelOfAnUnsentRequestSendsNothing(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	r := b.acquire("x", false)
	b.want("1: open nonce 1")
	b.core.Cancel(b.now, r)
	b.empty()
	b.attach()
	b.want("")
	if b.core.number != 1 {
		t.Error("a number was given")
	}
}

// A grant and a cancel cross in both orders. Either way the caller is told nothing, and the group is told once.
func TestCancelAndGrantCross(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	first := b.acquire("x", false)
	second := b.acquire("y", false)
	b.want("1: acquire 1 x, acquire 2 y")
	b.core.Cancel(b.now, first) // the cancel is on its way when the grant comes
	b.want("1: cancel 1")
	b.reply(1, b.state(1, lockfsm.Granted, 5))
	b.want("")
	b.quiet()
	b.reply(1, b.freed(1))
	b.reply(1, b.state(2, lockfsm.Granted, 6)) // the grant came first, the caller has left without having seen it
	b.core.Cancel(b.now, second)
	b.want("1: cancel 2")
	b.reply(1, b.freed(2))
	b.turn()
	b.quiet()
	b.empty()
}

// What was cancelled and released without an attachment, or got lost with one, is settled by the next Attach, which does not name it.
func TestAttachSettlesLostCancelsAndReleases(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held := b.hold("a")                 // 1
	released := b.hold("b")             // 2
	cancelled := b.acquire("c", false)  // 3
	waiting := b.acquire("d", false)    // 4
	cancelled2 := b.acquire("e", false) // 5
	b.want("1: acquire 3 c, acquire 4 d, acquire 5 e")
	b.core.Release(b.now, released)
	b.core.Cancel(b.now, cancelled)
	b.want("1: release 2, cancel 3")
	b.core.Down(b.now, 1) // nobody knows whether they arrived
	b.core.Cancel(b.now, cancelled2)
	b.want("2: attach 2 live 1-1 4-4 next 6, renew 2")
	b.reply(2, b.state(1, lockfsm.Granted, 1001), b.state(4, lockfsm.Waiting, 0), b.attached(lockfsm.Done))
	b.want("")
	b.outcome(released, OutcomeReleased, nil)
	if s := b.core.Status(b.now); s.Requests != 2 || s.Held != 1 || s.Waiting != 1 {
		t.Errorf("status %+v", s)
	}
	_, _ = held, waiting
}

// What Attach named and was not reported is finished: a hold is lost, what waits is asked anew at its old place.
func TestAttachFinishesWhatIsNotReported(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held := b.hold("a") // 1
	var waits []*Request
	for _, key := range []string{"b", "c", "d"} {
		waits = append(waits, b.acquire(key, false)) // 2, 3, 4
	}
	b.want("1: acquire 2 b, acquire 3 c, acquire 4 d")
	b.core.Down(b.now, 1)
	later := b.acquire("z", false)
	b.want("2: attach 2 live 1-4 next 5, renew 2")
	b.reply(2, b.state(3, lockfsm.Waiting, 0), b.attached(lockfsm.Done))
	b.want("2: acquire 5 b, acquire 6 d, acquire 7 z")
	b.outcome(held, OutcomeLost, ErrLost)
	b.core.Down(b.now, 2) // and once more: b, c, d, z, whatever their numbers are now
	b.want("3: attach 3 live 3-3 5-7 next 8, renew 3")
	b.reply(3, b.attached(lockfsm.Done))
	b.want("3: acquire 8 b, acquire 9 c, acquire 10 d, acquire 11 z")
	for _, r := range append(waits, later) {
		b.core.Cancel(b.now, r)
	}
	b.want("3: cancel 8, cancel 9, cancel 10, cancel 11")
}

// What was freed while Attach, which named it, was on its way is freed behind it.
func TestFreedWhileAttaching(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held := b.hold("a")
	waits := b.acquire("b", false)
	b.want("1: acquire 2 b")
	b.core.Down(b.now, 1)
	b.want("2: attach 2 live 1-2 next 3, renew 2")
	b.core.Release(b.now, held)
	b.core.Cancel(b.now, waits)
	b.want("") // nobody has said yet that 2 leads
	b.reply(2, b.state(1, lockfsm.Granted, 1001), b.state(2, lockfsm.Granted, 7), b.attached(lockfsm.Done))
	b.want("2: release 1, cancel 2")
	b.reply(2, b.freed(1), b.freed(2))
	b.turn()
	b.outcome(held, OutcomeReleased, nil)
	b.empty()
}

// The group says that the session is over: holds are lost, releases are confirmed, what waits is asked anew under a new session.
func TestNoSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *clientBench){
		"ended": func(b *clientBench) { b.reply(1, b.ended(endNoSession)) },
		"attached": func(b *clientBench) {
			b.core.Down(b.now, 1)
			b.turn()
			b.reply(2, redirect(3, 1))
			b.turn()
			b.reply(1, b.attached(lockfsm.NoSession))
		},
		"stale": func(b *clientBench) { // a copy of this process has attached with a higher epoch
			b.core.Down(b.now, 1)
			b.turn()
			b.reply(2, redirect(3, 1))
			b.turn()
			b.reply(1, b.attached(lockfsm.Stale))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newClientBench(t)
			b.attach()
			held, released := b.hold("a"), b.hold("b")
			waits := b.acquire("c", false)
			b.want("1: acquire 3 c")
			b.core.Release(b.now, released)
			b.turn()
			end(b)
			b.want("1: open nonce 2")
			if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeLost, Request: held, Err: ErrLost}) ||
				b.outcomes[1] != (Outcome{Kind: OutcomeReleased, Request: released}) {
				t.Fatalf("outcomes %+v", b.outcomes)
			}
			if b.deadline != 0 {
				t.Error("the old deadline stands")
			}
			b.reply(1, b.opened(2, 200))
			if got := b.turn(); !strings.Contains(got, "acquire 4 c") {
				t.Errorf("frame %q", got)
			}
			b.core.Cancel(b.now, waits)
		})
	}
}

func TestEndedAttachesAnew(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.reply(1, b.ended(endUnknown))
	b.want("1: attach 2 live next 1, renew 2")
	b.reply(1, b.attached(lockfsm.Done))
	b.reply(1, b.ended(endOverloaded))
	b.want("")
	b.advance(50 * time.Millisecond)
	b.want("1: attach 3 live next 1, renew 3")
	old := b.attached(lockfsm.Done)
	old.epoch = 2
	b.reply(1, old)
	b.turn()
	if b.core.phase != Attaching {
		t.Error("the answer to an earlier Attach was taken for this one's")
	}
}

func TestGrantThatNobodyKnowsIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.reply(1, b.state(99, lockfsm.Granted, 5))
	b.want("1: attach 2 live next 1, renew 2")
}

// A frame was lost although the stream stands: the command is not answered, renewals are.
func TestUnansweredCommandAttachesAnew(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.advance(time.Millisecond)
	r := b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.advance(benchTTL/3 - time.Millisecond)
	b.want("1: renew 1")
	b.reply(1, b.renewed())
	b.advance(benchTTL / 3)
	b.want("1: attach 2 live 1-1 next 2, renew 2")
	b.reply(1, b.attached(lockfsm.Done))
	b.want("1: acquire 2 x")
	b.core.Cancel(b.now, r)
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for code, want := range map[lockfsm.Code]error{
		lockfsm.QueueFull: ErrQueueFull, lockfsm.BadKey: ErrBadKey, lockfsm.TooManyEntries: ErrOverloaded,
		lockfsm.InGrace: ErrInGrace, lockfsm.Unsupported: ErrRefused, 200: ErrRefused, 0: ErrRefused,
	} {
		b := newClientBench(t)
		b.attach()
		r := b.acquire("x", true)
		b.want("1: acquire 1 x try")
		b.reply(1, b.state(1, code, 0))
		b.turn()
		if len(b.outcomes) != 1 || b.outcomes[0].Request != r || !errors.Is(b.outcomes[0].Err, want) {
			t.Errorf("%v: outcomes %+v, want %v", code, b.outcomes, want)
		}
		b.empty()
	}
}

func TestFinishedRequestIsAskedAnew(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.reply(1, b.state(1, lockfsm.Finished, 0))
	b.want("1: acquire 2 x")
}

func TestHeldNamesTheHolder(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.acquire("x", true)
	b.want("1: acquire 1 x try")
	b.reply(1, reply{
		kind: replyHeld, session: 100, epoch: 1, number: 1, record: []byte("other"), holder: 7, token: 8, since: 9, waiters: 10,
	})
	b.turn()
	var held *HeldError
	if len(b.outcomes) != 1 || !errors.As(b.outcomes[0].Err, &held) || !errors.Is(held, ErrHeld) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	if held.Key != "x" || string(held.Record) != "other" || held.Session != 7 || held.Token != 8 || held.SinceUnixMS != 9 || held.Waiters != 10 {
		t.Errorf("%+v", held)
	}
	b.empty()
}

// A try does not wait for a leader: it ends two seconds after the last one was lost, whether it was sent or not. Others wait.
func TestTryWithoutLeader(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	sent, waits := b.acquire("x", true), b.acquire("y", false)
	b.want("1: acquire 1 x try, acquire 2 y")
	b.core.Down(b.now, 1)
	b.turn()
	b.reply(2, redirect(3, 0))
	unsent := b.acquire("z", true)
	b.core.targets = nil // nobody answers
	b.turn()
	b.advance(2*time.Second - 1)
	b.turn()
	b.quiet()
	if b.core.Next().Sub(b.now) != 1 {
		t.Errorf("next turn in %v", b.core.Next().Sub(b.now))
	}
	b.advance(1)
	b.turn()
	if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeFailed, Request: sent, Err: ErrNoLeader}) ||
		b.outcomes[1] != (Outcome{Kind: OutcomeFailed, Request: unsent, Err: ErrNoLeader}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	late := b.acquire("w", true)
	b.turn()
	b.outcome(late, OutcomeFailed, ErrNoLeader)
	b.reply(2, redirect(4, 2))
	b.want("2: attach 3 live 2-2 next 3, renew 3")
	b.core.Cancel(b.now, waits)
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	for _, key := range []string{"", "a\x00b", "\x7f", "a\nb", "\xff\xfe", strings.Repeat("k", maxLocalKey+1)} {
		r := b.acquire(key, false)
		b.turn()
		b.outcome(r, OutcomeFailed, ErrBadKey)
	}
	b.empty()
}

// Too much is refused before a number is given, and there is room again when something has ended.
func TestOverload(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	var all []*Request
	for range maxUnfinished {
		all = append(all, b.acquire("k", false))
	}
	b.turn()
	b.quiet()
	over := b.acquire("k", false)
	b.turn()
	b.outcome(over, OutcomeFailed, ErrOverloaded)
	b.core.Cancel(b.now, all[7])
	b.acquire("k", false)
	b.turn()
	b.quiet()

	b = newClientBench(t)
	big := strings.Repeat("k", maxLocalKey)
	for range maxKeyBytes / maxLocalKey {
		b.acquire(big, false)
	}
	b.turn()
	b.quiet()
	over = b.acquire("k", false)
	b.turn()
	b.outcome(over, OutcomeFailed, ErrOverloaded)
}

// What is sent and not answered is bounded, what frees something is not.
func TestWindow(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held := b.hold("a")
	for i := range 30_000 {
		b.acquire(fmt.Sprintf("key number %d with a name of some length", i), false)
	}
	sent, frames := 0, 0
	for {
		b.turn()
		if len(b.commands) == 0 {
			t.Fatal("a turn that was asked for sends nothing")
		}
		sent += len(b.commands)
		frames++
		if !b.more {
			break
		}
	}
	if b.core.open < windowBytes || b.core.open > windowBytes+100 || frames < 4 || sent >= 30_000 {
		t.Fatalf("%d bytes open, %d requests in %d frames", b.core.open, sent, frames)
	}
	b.core.Release(b.now, held)
	b.want("1: release 1")
	b.reply(1, b.state(2, lockfsm.Waiting, 0), b.state(3, lockfsm.Waiting, 0))
	b.turn()
	if len(b.commands) != 1 && len(b.commands) != 2 {
		t.Fatalf("%d requests follow two answers", len(b.commands))
	}
}

func TestRebindForgetsTheSession(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held, released := b.hold("a"), b.hold("b")
	b.acquire("c", false)
	b.want("1: acquire 3 c")
	b.core.Release(b.now, released)
	b.core.Rebind(b.now, []byte("new life"), []Target{{7, "g"}})
	b.want("7: open nonce 2")
	if string(b.commands[0].Record) != "new life" {
		t.Errorf("record %q", b.commands[0].Record)
	}
	if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeLost, Request: held, Err: ErrLost}) ||
		b.outcomes[1] != (Outcome{Kind: OutcomeReleased, Request: released, Err: ErrLost}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	b.reply(1, b.opened(1, 300)) // the old life's
	b.want("")
	b.reply(7, b.opened(2, 200))
	b.want("7: attach 2 live next 4, acquire 4 c, renew 2")
}

func TestCloseSession(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	held := b.hold("a")
	if err := b.core.CloseSession(b.now); err != ErrStillHeld {
		t.Fatalf("closing while a lock is held: %v", err)
	}
	b.core.Release(b.now, held)
	waits := b.acquire("b", false)
	b.want("1: release 1, acquire 2 b")
	b.reply(1, b.freed(1))
	if err := b.core.CloseSession(b.now); err != nil {
		t.Fatal(err)
	}
	late := b.acquire("c", false)
	b.want("1: cancel 2, close")
	if len(b.outcomes) != 3 || b.outcomes[1] != (Outcome{Kind: OutcomeFailed, Request: waits, Err: ErrClosed}) ||
		b.outcomes[2] != (Outcome{Kind: OutcomeFailed, Request: late, Err: ErrClosed}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	b.core.Down(b.now, 1) // did it arrive?
	b.want("2: attach 2 live next 3, renew 2")
	b.reply(2, b.attached(lockfsm.Done))
	b.want("2: close")
	b.reply(2, b.ended(endNoSession))
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
	b := newClientBench(t)
	if b.core.CloseSession(b.now); !b.core.Closed() {
		t.Error("an unopened session needs no leader to be closed")
	}
	b.want("")
	b = newClientBench(t)
	b.want("1: open nonce 1")
	if b.core.CloseSession(b.now); b.core.Closed() {
		t.Error("a session may have been opened")
	}
	b.reply(1, b.opened(1, 100))
	b.want("1: attach 1 live next 1, close, renew 1")
	b.reply(1, b.attached(lockfsm.Done), b.ended(endNoSession))
	if !b.core.Closed() {
		t.Error("not closed")
	}
}

func TestLeavingIsSaidOnEveryAttachment(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	b.core.Leaving()
	b.want("1: leaving")
	b.want("")
	b.core.Down(b.now, 1)
	b.want("2: attach 2 live next 1, renew 2")
	b.reply(2, b.attached(lockfsm.Done))
	b.want("2: leaving")
}
