package client

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

func TestAcquireAndRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Waiting, 0))
	b.turn()
	b.quiet()
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 42))
	b.turn()
	b.outcome(r, OutcomeGranted, nil)
	if b.outcomes[0].Token != 42 {
		t.Errorf("token %d", b.outcomes[0].Token)
	}
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 42)) // the same state once more
	b.turn()
	b.quiet()
	if !b.core.Release(b.now, r) || b.core.Release(b.now, r) {
		t.Error("the first Release must count, the second must not")
	}
	b.want("1: release 1")
	b.reply(nodeidtest.ID(1), b.freed(1))
	b.turn()
	b.outcome(r, OutcomeReleased, nil)
	b.empty()
}

func TestCancelOfAnUnsentRequestSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
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

// TestCancelAndGrantCross checks that a cancelled caller gets no outcome and the group gets one
// release.
func TestCancelAndGrantCross(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	first := b.acquire("x", false)
	second := b.acquire("y", false)
	b.want("1: acquire 1 x, acquire 2 y")
	b.core.Cancel(b.now, first) // the grant arrives after the cancel was sent
	b.want("1: cancel 1")
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 5))
	b.want("")
	b.quiet()
	b.reply(nodeidtest.ID(1), b.freed(1))
	// The grant arrived before the cancel, but the caller no longer waited for it.
	b.reply(nodeidtest.ID(1), b.state(2, lockfsm.Granted, 6))
	b.core.Cancel(b.now, second)
	b.want("1: cancel 2")
	b.reply(nodeidtest.ID(1), b.freed(2))
	b.turn()
	b.quiet()
	b.empty()
}

// TestAttachSettlesLostCancelsAndReleases checks cancels and releases that were lost at the end
// of an attachment or made without one. The next Attach completes them.
func TestAttachSettlesLostCancelsAndReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
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
	b.core.Down(b.now, nodeidtest.ID(1)) // it is unknown whether the commands arrived
	b.core.Cancel(b.now, cancelled2)
	b.want("2: attach 2 live 1-1 4-4 next 6, renew 2")
	b.reply(nodeidtest.ID(2), b.state(1, lockfsm.Granted, 1001), b.state(4, lockfsm.Waiting, 0),
		b.attached(lockfsm.Done))
	b.want("")
	b.outcome(released, OutcomeReleased, nil)
	if s := b.core.Status(b.now); s.Requests != 2 || s.Held != 1 || s.Waiting != 1 {
		t.Errorf("status %+v", s)
	}
	_, _ = held, waiting
}

// TestAttachFinishesWhatIsNotReported checks the case that an Attach names a request, but no
// reply reports its state. A hold is lost, and a waiting request is sent again at its old place.
func TestAttachFinishesWhatIsNotReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	held := b.hold("a") // 1
	var waits []*Request
	for _, key := range []string{"b", "c", "d"} {
		waits = append(waits, b.acquire(key, false)) // 2, 3, 4
	}
	b.want("1: acquire 2 b, acquire 3 c, acquire 4 d")
	b.core.Down(b.now, nodeidtest.ID(1))
	later := b.acquire("z", false)
	b.want("2: attach 2 live 1-4 next 5, renew 2")
	b.reply(nodeidtest.ID(2), b.state(3, lockfsm.Waiting, 0), b.attached(lockfsm.Done))
	b.want("2: acquire 5 b, acquire 6 d, acquire 7 z")
	b.outcome(held, OutcomeLost, ErrLost)
	b.core.Down(b.now, nodeidtest.ID(2)) // the requests are sent again in the order b, c, d, z, with new numbers
	b.want("3: attach 3 live 3-3 5-7 next 8, renew 3")
	b.reply(nodeidtest.ID(3), b.attached(lockfsm.Done))
	b.want("3: acquire 8 b, acquire 9 c, acquire 10 d, acquire 11 z")
	for _, r := range append(waits, later) {
		b.core.Cancel(b.now, r)
	}
	b.want("3: cancel 8, cancel 9, cancel 10, cancel 11")
}

// TestFreedWhileAttaching checks that a request can be released or cancelled while an Attach
// that names it is in flight.
func TestFreedWhileAttaching(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	held := b.hold("a")
	waits := b.acquire("b", false)
	b.want("1: acquire 2 b")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live 1-2 next 3, renew 2")
	b.core.Release(b.now, held)
	b.core.Cancel(b.now, waits)
	b.want("") // no voter has named voter 2 as the leader yet
	b.reply(nodeidtest.ID(2), b.state(1, lockfsm.Granted, 1001), b.state(2, lockfsm.Granted, 7),
		b.attached(lockfsm.Done))
	b.want("2: release 1, cancel 2")
	b.reply(nodeidtest.ID(2), b.freed(1), b.freed(2))
	b.turn()
	b.outcome(held, OutcomeReleased, nil)
	b.empty()
}

func TestFinishedRequestIsAskedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.acquire("x", false)
	b.want("1: acquire 1 x")
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Finished, 0))
	b.want("1: acquire 2 x")
}
