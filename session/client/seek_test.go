package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func TestSilentTargetsAreAskedInTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.advance(499 * time.Millisecond)
	b.want("")
	b.advance(time.Millisecond)
	b.want("2: open nonce 1")
	b.advance(500 * time.Millisecond)
	b.want("3: open nonce 1")
	b.advance(500 * time.Millisecond)
	b.want("1: open nonce 1")
}

// TestAStarvedClientAllowsMoreTime checks that a client which looks late for an answer does not
// leave its target at once, and leaves a silent one all the same.
func TestAStarvedClientAllowsMoreTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.advance(600 * time.Millisecond) // 100 ms late
	b.want("")
	if at := b.core.Next(); at != b.now.Add(400*time.Millisecond) {
		t.Errorf("it looks again in %v", at.Sub(b.now))
	}
	b.advance(399 * time.Millisecond)
	b.want("")
	b.advance(time.Millisecond)
	b.want("2: open nonce 1")
	for range maxExcuses {
		b.advance(b.core.Next().Sub(b.now) + 100*time.Millisecond)
		b.want("")
	}
	b.advance(b.core.Next().Sub(b.now) + 100*time.Millisecond)
	b.want("3: open nonce 1")
	b.advance(b.core.Next().Sub(b.now) + pausedFor + 1)
	b.want("1: open nonce 1")
}

// TestAStarvedClientKeepsItsLeader is the same for a renewal.
func TestAStarvedClientKeepsItsLeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.advance(b.core.Next().Sub(b.now))
	b.turn() // sends a renewal
	b.advance(b.core.Next().Sub(b.now) + 100*time.Millisecond)
	b.want("")
	if b.core.phase != Attached {
		t.Fatal("a late client has left its leader")
	}
	b.reply(nodeidtest.ID(1), b.renewed())
	if b.core.finder.excuses != 0 {
		t.Error("an answer does not end the excuses")
	}
}

// TestASlowLeaderGetsMoreTime checks that a client which has waited long for an answer allows twice
// as long for the next, until an answer comes sooner.
func TestASlowLeaderGetsMoreTime(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: answerTime, 900 * time.Millisecond: 1800 * time.Millisecond, time.Hour: 3 * time.Second,
	} {
		b := newBench(t)
		b.core.askTTL = time.Minute
		b.core.allowTwice(took)
		if got := b.core.finder.answerTimeout; got != want {
			t.Errorf("after an answer that took %v it waits %v, want %v", took, got, want)
		}
	}
}

// TestAnUnansweredAskAllowsMoreTime checks that a leader has more time after a target did not
// answer.
func TestAnUnansweredAskAllowsMoreTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.advance(500 * time.Millisecond)
	b.want("2: open nonce 1")
	b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(1)))
	b.want("1: open nonce 1")
	if at := b.core.Next(); at != b.now.Add(time.Second) {
		t.Errorf("the leader has %v to answer", at.Sub(b.now))
	}
}

func TestShortTTLAsksFaster(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.core = NewCore(b.now, 1200*time.Millisecond)
	b.giveNonce()
	b.core.Rebind(b.now, []byte("me"), []nodeid.Endpoint{{ID: nodeidtest.ID(1), Addr: "a"},
		{ID: nodeidtest.ID(2), Addr: "b"}})
	b.want("1: open nonce 2")
	b.advance(199 * time.Millisecond)
	b.want("")
	b.advance(time.Millisecond)
	b.want("2: open nonce 2")
}

func TestRedirectIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.reply(nodeidtest.ID(1), redirect(3, nodeidtest.ID(9)))
	b.want("9: open nonce 1")
	if b.to.Addr != "there" {
		t.Errorf("address is %q", b.to.Addr)
	}
}

func TestRedirectToNoLeaderWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	from := nodeid.ID(nodeidtest.ID(1))
	for _, wait := range []time.Duration{50, 100, 200, 200, 200} {
		b.reply(from, redirect(3, nodeidtest.ID(0)))
		b.want("")
		b.advance(wait*time.Millisecond - 1)
		b.want("")
		b.advance(1)
		from = nodeidtest.ID(nodeidtest.Number(from)%3 + 1)
		if b.turn(); b.to.ID != from {
			t.Fatalf("asked %d, want %d", b.to.ID, from)
		}
	}
}

// TestPushedRedirectMovesAtOnce checks that the client asks the new leader immediately when a voter
// names it in a later redirect.
func TestPushedRedirectMovesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.reply(nodeidtest.ID(1), redirect(3, nodeidtest.ID(0)))
	b.want("")
	b.reply(nodeidtest.ID(1), redirect(4, nodeidtest.ID(2)))
	b.want("2: open nonce 1")
	b.reply(nodeidtest.ID(1), redirect(5, nodeidtest.ID(3)))
	b.want("3: open nonce 1")
	b.reply(nodeidtest.ID(1), redirect(4, nodeidtest.ID(2))) // a redirect of an older term
	b.want("")
	b.reply(nodeidtest.ID(1), redirect(5, nodeidtest.ID(3))) // the same redirect once more
	b.want("")
}

func TestAttachedClientFollowsOnlyNewerTerms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(2)))
	b.want("")
	// A leader sends this redirect to all clients that asked it too early.
	b.reply(nodeidtest.ID(1), redirect(3, nodeidtest.ID(1)))
	b.want("")
	b.reply(nodeidtest.ID(2), redirect(4, nodeidtest.ID(2)))
	b.want("2: attach 2 live next 1, renew 2")
}

func TestCirclesAreDamped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.turn()
	asked := 1
	for range 2000 {
		b.advance(time.Millisecond)
		if b.turn() == "" && b.core.phase == Seeking {
			continue
		}
		asked++
		if b.to.ID == nodeidtest.ID(1) {
			b.reply(nodeidtest.ID(1), redirect(3, nodeidtest.ID(2)))
		} else {
			b.reply(b.to.ID, redirect(3, nodeidtest.ID(1)))
		}
	}
	if asked > 100 {
		t.Fatalf("%d questions in two seconds", asked)
	}
}

func TestRefusedConnectionsAreDamped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	asked := 0
	for range 2000 {
		b.advance(time.Millisecond)
		if b.turn() != "" {
			asked++
			b.core.SendFailed(b.now)
		}
	}
	if asked > 100 {
		t.Fatalf("%d questions in two seconds", asked)
	}
}

func TestDownMovesToTheNext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Down(b.now, nodeidtest.ID(2)) // this voter is not the leader
	b.want("")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live next 1, renew 2")
	if b.core.phase != Attaching || b.core.Status(b.now).Leader != (nodeid.Endpoint{}) {
		t.Errorf("status %+v", b.core.Status(b.now))
	}
}

func TestSilentLeaderIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	b.advance(500 * time.Millisecond)
	b.want("2: attach 2 live next 1, renew 2")
	b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(1))) // a voter has named voter 1, so voter 1 gets more time
	b.want("1: attach 3 live next 1, renew 3")
	b.advance(999 * time.Millisecond)
	b.want("")
	b.advance(time.Millisecond)
	b.want("3: attach 4 live next 1, renew 4")
}

// TestPipelining checks that requests are sent in the same frame as Attach only if a voter has
// named the target as the leader.
func TestPipelining(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Down(b.now, nodeidtest.ID(1))
	b.acquire("x", false)
	b.want("2: attach 2 live next 1, renew 2")
	b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(3)))
	b.want("3: attach 3 live next 1, acquire 1 x, renew 3")
	b.reply(nodeidtest.ID(3), b.attached(lockfsm.Done), b.state(1, lockfsm.Granted, 5))
	b.turn()
	if len(b.outcomes) != 1 || b.outcomes[0].Token != 5 {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
}

func TestGarbageFromTheLeaderEndsTheAttachment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Receive(b.now, nodeidtest.ID(2), []byte{0xff}) // ignored, because it is not from the leader
	b.want("")
	b.core.Receive(b.now, nodeidtest.ID(1), []byte{9, 1, 2})
	b.want("")
	b.advance(50 * time.Millisecond)
	b.want("2: attach 2 live next 1, renew 2")
}

func TestNoTargetsAndNoNonce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.core = NewCore(b.now, benchTTL)
	b.want("")
	if b.core.Next() != 0 {
		t.Error("an unbound core wants a turn")
	}
	b.core.SetTargets(b.now, []nodeid.Endpoint{{ID: nodeidtest.ID(1), Addr: "a"}})
	b.want("")
	b.core.Rebind(b.now, nil, []nodeid.Endpoint{{ID: nodeidtest.ID(1), Addr: "a"}}) // no record, so nothing is sent
	b.core.SetTargets(b.now, []nodeid.Endpoint{{ID: nodeidtest.ID(1), Addr: "a"}})
	b.reply(nodeidtest.ID(1), redirect(9, nodeidtest.ID(1)))
	b.want("")
	b.core.Rebind(b.now, []byte("me"), nil)
	b.want("")
	if b.core.Next() != 0 {
		t.Error("a core without targets wants a turn")
	}
	b.core.SetTargets(b.now, []nodeid.Endpoint{{ID: nodeidtest.ID(2), Addr: "b"}})
	b.want("2: open nonce 2")
}

func TestFullGroupIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	b.reply(nodeidtest.ID(1), session.Reply{Kind: session.ReplyOpened, Nonce: lockfsm.Nonce{1},
		Code: lockfsm.TooManySessions})
	b.want("")
	b.advance(50 * time.Millisecond)
	b.want("2: open nonce 1")
}

func TestAnOldBuildKnowsWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.want("1: open nonce 1")
	old := session.Outdated{Group: 4, Build: 3}
	b.reply(nodeidtest.ID(1), session.Reply{Kind: session.ReplyOpened, Nonce: lockfsm.Nonce{1},
		Code: lockfsm.Unsupported, Outdated: old})
	b.want("")
	if s := b.core.Status(b.now); s.Outdated != old || s.Phase == Attached {
		t.Errorf("%+v", s)
	}
	const text = "the group has lock rules 4, this build knows up to 3: it gets no session, and could not vote; " +
		"upgrade it to the build of the others, or take the roll-out of this build back"
	if old.String() != text || (session.Outdated{}).String() != "" {
		t.Errorf("%q", old)
	}
	b.advance(50 * time.Millisecond)
	b.want("2: open nonce 1")
	b.reply(nodeidtest.ID(2), session.Reply{Kind: session.ReplyOpened, Nonce: lockfsm.Nonce{1}, Code: lockfsm.Done,
		Session: 7, TTL: time.Minute})
	if s := b.core.Status(b.now); s.Outdated != (session.Outdated{}) {
		t.Errorf("it has a session and says %v", s.Outdated)
	}
}

// TestALeaderThatIsCutOffIsFollowedOnce checks that a client follows voters to a leader whose
// stream has ended only once in a term. The voters do not know yet that it is dead, and tell all
// clients that have asked when they know. The client follows the next leader at once, and also the
// same one in a later term.
func TestALeaderThatIsCutOffIsFollowedOnce(t *testing.T) {
	t.Parallel()
	for _, next := range []uint64{1, 3} {
		b := newBench(t)
		b.attach()
		asks := func(id uint64) {
			t.Helper()
			if b.turn(); b.to.ID != nodeidtest.ID(id) || b.core.phase != Attaching {
				t.Fatalf("it asked %d, phase %v", nodeidtest.Number(b.to.ID), b.core.phase)
			}
		}
		b.core.Down(b.now, nodeidtest.ID(1))
		asks(2)
		b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(1)))
		asks(1)
		b.core.Down(b.now, nodeidtest.ID(1))
		asks(3)
		b.reply(nodeidtest.ID(3), redirect(3, nodeidtest.ID(1)))
		b.want("")
		if at := b.core.Next(); at != b.now.Add(waitFirst) {
			t.Errorf("it asks again in %v", at.Sub(b.now))
		}
		b.reply(nodeidtest.ID(2), redirect(4, nodeidtest.ID(next)))
		asks(next)
		b.reply(nodeidtest.ID(next), b.attached(lockfsm.Done), b.renewed())
		if b.core.Down(b.now, nodeidtest.ID(next)); b.core.finder.isCutOff(nodeidtest.ID(next), 4) {
			t.Error("the first end of a stream counts as the second")
		}
	}
}

// TestADeadLeaderCostsFewQuestions counts what a client asks within half a second in which the
// voters do not know that the leader is dead. Thousands of clients ask beside the election.
func TestADeadLeaderCostsFewQuestions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Down(b.now, nodeidtest.ID(1))
	voters, dead := 0, 0
	for end := b.now.Add(500 * time.Millisecond); b.now.Before(end); {
		switch frame := b.turn(); {
		case frame == "":
			b.now = b.core.Next()
		case b.to.ID == nodeidtest.ID(1):
			dead++
			b.core.Down(b.now, nodeidtest.ID(1))
		default:
			voters++
			b.reply(b.to.ID, redirect(3, nodeidtest.ID(1)))
		}
	}
	if voters > 5 || dead > 3 {
		t.Errorf("it asked voters %d times, and the dead leader %d times", voters, dead)
	}
}
