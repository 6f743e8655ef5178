package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const benchLease = benchTTL - benchTTL/50

// TestOpenCountsFromFirstSending checks that the lease is measured from the first sending of the
// nonce, even if another instance answers much later.
func TestOpenCountsFromFirstSending(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.now
	b.want("1: open nonce 1")
	b.advance(500 * time.Millisecond)
	b.want("2: open nonce 1")
	b.advance(400 * time.Millisecond)
	b.reply(nodeidtest.ID(1), b.opened(1, 100)) // the first target answers late
	b.want("1: attach 1 live next 1, renew 1")
	if b.deadline != first.Add(benchLease) {
		t.Fatalf("deadline is %v after the first sending, want %v", b.deadline.Sub(first), benchLease)
	}
}

func TestOpenedCountsOnlyFromWhereItWasSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.reply(nodeidtest.ID(666), b.opened(1, 100))
	b.want("")
	b.reply(nodeidtest.ID(2), b.opened(1, 100)) // this voter was not asked yet
	b.want("")
	b.reply(nodeidtest.ID(1), b.opened(1, 100))
	b.want("1: attach 1 live next 1, renew 1")
}

// TestANonceThatIsTakenIsLeft checks that the client draws a new nonce if another instance has
// opened a session with its nonce.
func TestANonceThatIsTakenIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	taken := b.opened(1, 0)
	taken.Code = lockfsm.NoSession
	b.reply(nodeidtest.ID(1), taken)
	b.advance(time.Second)
	b.want("2: open nonce 2")
}

func TestDuplicateOpenedIsIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	before := b.deadline
	b.advance(time.Second)
	b.reply(nodeidtest.ID(1), b.opened(1, 100), b.opened(1, 200), b.opened(9, 300))
	b.want("")
	if b.core.session != 100 || b.deadline != before {
		t.Fatalf("session %d, deadline moved by %v", b.core.session, b.deadline.Sub(before))
	}
}

func TestDeadlineCountsFromSending(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.advance(benchTTL / 3)
	sent := b.now
	b.want("1: renew 1")
	b.advance(400 * time.Millisecond)
	b.reply(nodeidtest.ID(1), b.renewed())
	b.turn()
	if b.deadline != sent.Add(benchLease) {
		t.Fatalf("deadline is %v behind the sending, want %v", b.deadline.Sub(sent), benchLease)
	}
}

func TestShorterTTLOfTheGroupHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.turn()
	sent := b.now
	o := b.opened(1, 100)
	o.TTL = time.Second
	b.reply(nodeidtest.ID(1), o)
	b.turn()
	if b.deadline != sent.Add(980*time.Millisecond) {
		t.Fatalf("deadline is %v behind the sending", b.deadline.Sub(sent))
	}
}

func TestForeignAcknowledgementsMoveNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	before := b.deadline
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	ack := b.renewed()
	for name, change := range map[string]func(*session.Reply){
		"epoch":   func(r *session.Reply) { r.Epoch++ },
		"session": func(r *session.Reply) { r.Session++ },
		"seq":     func(r *session.Reply) { r.Seq += 7 },
	} {
		r := ack
		change(&r)
		b.reply(nodeidtest.ID(1), r)
		if b.turn(); b.deadline != before {
			t.Errorf("a renewal acknowledged with another %s moved the deadline", name)
		}
	}
	b.reply(nodeidtest.ID(2), ack)
	if b.turn(); b.deadline != before {
		t.Error("a renewal acknowledged by another voter moved the deadline")
	}
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live next 1, renew 2")
	b.reply(nodeidtest.ID(2), ack)
	if b.turn(); b.deadline != before {
		t.Error("a renewal of the last attachment moved the deadline")
	}
}

// TestDeadlineLosesAllAndReleases checks that every hold is lost for good at the deadline, and that
// its release is sent.
func TestDeadlineLosesAllAndReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	x, y := b.hold("x"), b.hold("y")
	waits := b.acquire("z", false)
	b.want("1: acquire 3 z")
	b.reply(nodeidtest.ID(1), b.state(3, lockfsm.Waiting, 0))
	b.turn()
	b.now = b.deadline
	b.core.Tick(b.now)
	if x.stage != stageOver || y.stage != stageOver || waits.stage != stageWaiting {
		t.Fatalf("stages at the deadline: %d, %d, %d", x.stage, y.stage, waits.stage)
	}
	b.turn()
	if len(b.outcomes) != 2 || b.outcomes[0].Kind != OutcomeLost || b.outcomes[1].Kind != OutcomeLost {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	if got := b.frame(); got != "1: cancel 1, cancel 2, renew 1" {
		t.Fatalf("frame %q", got)
	}
	b.core.Down(b.now, nodeidtest.ID(1)) // the releases are lost with the stream
	b.want("2: attach 2 live 3-3 next 4, renew 2")
}

func TestLostHoldIsReleasedOnTheAttachment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	x := b.hold("x")
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	b.core.loseAll()
	b.want("1: cancel 1")
	b.outcome(x, OutcomeLost, ErrLost)
	b.reply(nodeidtest.ID(1), b.freed(1))
	b.turn()
	b.empty()
}

func TestLateRenewalRevivesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	x := b.hold("x")
	old := b.deadline
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	b.now = old.Add(time.Millisecond) // the process was stopped while the acknowledgement was in the inbox
	b.reply(nodeidtest.ID(1), b.renewed())
	b.turn()
	b.outcome(x, OutcomeLost, ErrLost)
	if !b.deadline.After(old) {
		t.Error("the renewal did not move the deadline")
	}
	if b.core.Status(b.now).Held != 0 {
		t.Error("a hold came back")
	}
}

// TestShortGrantIsGivenBack checks that a grant shortly before the end of the lease is released.
func TestShortGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.acquire("x", false)
	later := b.acquire("y", false)
	b.want("1: acquire 1 x, acquire 2 y")
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Waiting, 0), b.state(2, lockfsm.Waiting, 0))
	b.now = b.core.pulse.lease.sent.Add(benchTTL / 3)
	b.want("1: renew 1")
	b.reply(nodeidtest.ID(1), b.renewed())
	b.turn()
	b.now = b.deadline.Add(-benchTTL/10 + 1)
	b.core.pulse.renewedAt, b.core.pulse.heardAt = b.now, b.now // so that no renewal is due
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 77))
	b.want("1: cancel 1")
	b.quiet()
	if r.stage != stageWaiting {
		t.Fatalf("the request is at stage %d", r.stage)
	}
	third := b.acquire("z", false)
	b.want("") // no request is sent shortly before the end of the lease
	b.core.pulse.renewedAt = b.now.Add(-time.Hour)
	b.want("1: renew 1")
	b.reply(nodeidtest.ID(1), b.renewed(), b.freed(1))
	b.want("1: acquire 3 x, acquire 4 z")
	b.reply(nodeidtest.ID(1), b.state(3, lockfsm.Granted, 78))
	b.turn()
	b.outcome(r, OutcomeGranted, nil)
	b.core.Cancel(b.now, later)
	b.core.Cancel(b.now, third)
}

func TestRenewEveryThirdAndBehindAttach(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	for range 3 {
		if got := b.core.Next(); got != b.now.Add(benchTTL/3) {
			t.Fatalf("next turn in %v", got.Sub(b.now))
		}
		b.advance(benchTTL/3 - 1)
		b.want("")
		b.advance(1)
		b.want("1: renew 1")
		b.reply(nodeidtest.ID(1), b.renewed())
	}
}
