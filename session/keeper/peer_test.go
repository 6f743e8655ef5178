package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestRefusedReplyEndsThePeersAttachments checks that the keeper repeats the message about the end
// until the peer's queue accepts it.
func TestRefusedReplyEndsThePeersAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.full[nodeidtest.ID(1)] = true
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 1, "x"))
	b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "y"))
	b.step()
	b.want(nodeidtest.ID(2), "state 1 granted")
	b.turn()
	if b.core.Status().Attachments != 1 {
		t.Fatal("the attachment lives on")
	}
	for range 5 {
		b.advance(retryAfter)
		if next := b.core.Next(); next.After(b.now) {
			t.Fatalf("next turn in %v", next.Sub(b.now))
		}
		b.turn()
		b.want(nodeidtest.ID(1), "ended 1 overloaded")
	}
	b.renew(nodeidtest.ID(1), one, 1, 1)
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 unknown")
	b.full[nodeidtest.ID(1)] = false
	b.advance(retryAfter)
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 overloaded")
	b.advance(retryAfter)
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.attach(nodeidtest.ID(1), one, 2)
	b.core.Down(b.now, nodeidtest.ID(1))
	b.turn()
	if s := b.core.Status(); s.Peers != 1 || s.Attachments != 1 || s.Sessions != 2 {
		t.Errorf("%+v", s)
	}
}

func TestDroppedFrameEndsThePeersAttachments(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.open(nodeidtest.ID(1))
	b.core.Dropped(b.now, nodeidtest.ID(1))
	b.core.Dropped(b.now, nodeidtest.ID(77))
	b.turn()
	b.want(nodeidtest.ID(1), "ended 1 overloaded")
}

// TestFiredChangesAreTold checks that a grant is sent in the same turn in which the preceding
// release is applied.
func TestFiredChangesAreTold(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two, three := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2)), b.open(nodeidtest.ID(3))
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 1, "x"))
	b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "x"))
	b.send(nodeidtest.ID(3), acquireCmd(three, 1, 1, "x"))
	b.step()
	b.want(nodeidtest.ID(1), "state 1 granted")
	b.want(nodeidtest.ID(2), "state 1 waiting")
	b.want(nodeidtest.ID(3), "state 1 waiting")
	if r := b.replies[nodeidtest.ID(3)][1]; r.Kind != session.ReplyBehind || r.Number != 1 || r.Holder != one ||
		r.Waiters != 2 {
		t.Errorf("the holder in the reply: %+v", r)
	}
	b.core.Down(b.now, nodeidtest.ID(3))
	b.send(nodeidtest.ID(1), releaseCmd(one, 1, 1))
	b.step()
	b.want(nodeidtest.ID(1), "freed 1 done")
	b.want(nodeidtest.ID(2), "state 1 granted")
	b.want(nodeidtest.ID(3), "") // this client is not attached, and its next Attach returns the state
	b.send(nodeidtest.ID(2), lockfsm.Command{Kind: lockfsm.Close, Session: two, Epoch: 1})
	b.step()
	b.want(nodeidtest.ID(2), "ended 1 no session")
	c := b.attachCmd(three, 2)
	c.Number, c.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
	b.send(nodeidtest.ID(3), c)
	b.step()
	b.want(nodeidtest.ID(3), "state 1 granted, attached 2 done")
	b.send(nodeidtest.ID(1), lockfsm.Command{Kind: lockfsm.Acquire, Session: one, Epoch: 1, Number: 2, Key: "x",
		Try: true})
	b.step()
	b.want(nodeidtest.ID(1), "held 2")
	if r := b.replies[nodeidtest.ID(1)][0]; r.Holder != three || string(r.Record) != "r" || r.Token == 0 ||
		r.Since != 1_700_000_000_000 {
		t.Errorf("%+v", r)
	}
}

// TestAttachOnItsWay checks an Attach that is already in the log. Neither an Attach with the same
// or a lower epoch nor an Attach of another instance may replace it.
func TestAttachOnItsWay(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 1, "x"))
	b.send(nodeidtest.ID(2), acquireCmd(two, 1, 1, "x"))
	b.step()
	b.send(nodeidtest.ID(1), releaseCmd(one, 1, 1))
	b.turn()
	c := b.attachCmd(two, 5)
	c.Number, c.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
	b.send(nodeidtest.ID(2), c)
	b.send(nodeidtest.ID(2), b.attachCmd(two, 5), b.attachCmd(two, 4))
	b.send(nodeidtest.ID(3), b.attachCmd(two, 5))
	b.apply() // the release grants the waiter, whose client has no live attachment
	b.turn()
	b.want(nodeidtest.ID(1), "freed 1 done")
	b.want(nodeidtest.ID(2), "ended 4 unknown")
	b.want(nodeidtest.ID(3), "attached 5 no session")
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(2), "state 1 granted, attached 5 done")
}

func TestAttachOfNoSession(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.send(nodeidtest.ID(1), b.attachCmd(12345, 1), acquireCmd(12345, 1, 1, "x"))
	b.step()
	b.want(nodeidtest.ID(1), "attached 1 no session, ended 1 unknown")
	if s := b.core.Status(); s.Attachments+s.Peers != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestManyStatesAreSplit checks that the states of a session with very many requests are split into
// several frames, and that Attached is last.
func TestManyStatesAreSplit(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	const many = 40_000
	for n := lockfsm.Number(1); n <= many; n += 1000 {
		var cmds []lockfsm.Command
		for i := range lockfsm.Number(1000) {
			cmds = append(cmds, acquireCmd(id, 1, n+i, fmt.Sprint("k", n+i)))
		}
		b.send(nodeidtest.ID(1), cmds...)
		b.step()
	}
	c := b.attachCmd(id, 2)
	c.Number, c.Live = many+1, []lockfsm.Range{{First: 1, Last: many}}
	b.send(nodeidtest.ID(1), c)
	b.turn()
	b.apply()
	b.core.Tick(b.now)
	all := b.core.Replies()
	if len(all) != 1 || len(all[0].Frames) < 3 {
		t.Fatalf("%d peers, %d frames", len(all), len(all[0].Frames))
	}
	count, last := 0, session.Reply{}
	for _, f := range all[0].Frames {
		if len(f) > replyBytes+100 {
			t.Errorf("a frame of %d bytes", len(f))
		}
		for len(f) > 0 {
			r, rest, err := session.NextReply(f)
			if err != nil {
				t.Fatal(err)
			}
			count, last, f = count+1, r, rest
		}
	}
	if count != many+1 || last.Kind != session.ReplyAttached {
		t.Errorf("%d records, the last is %+v", count, last)
	}
}

func TestDownLeavesSessionsToTheirLease(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.core.Down(b.now, nodeidtest.ID(1))
	b.core.Down(b.now, nodeidtest.ID(1))
	b.pass(benchTTL - time.Second)
	if s := b.core.Status(); s.Sessions != 1 || s.Attachments+s.Peers != 0 {
		t.Fatalf("%+v", s)
	}
	b.attach(nodeidtest.ID(1), id, 2)
}

// TestARepeatedAttachIsNoStranger checks that an Attach that arrives twice is answered once. If
// the second answer were Stale, the client would believe that its session has ended.
func TestARepeatedAttachIsNoStranger(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one := b.open(nodeidtest.ID(1))
	b.send(nodeidtest.ID(1), b.attachCmd(one, 5), b.attachCmd(one, 5))
	b.step()
	b.want(nodeidtest.ID(1), "attached 5 done")
	b.send(nodeidtest.ID(1), b.attachCmd(one, 5))
	b.step()
	b.want(nodeidtest.ID(1), "")
	b.send(nodeidtest.ID(1), b.attachCmd(one, 4))
	b.step()
	b.want(nodeidtest.ID(1), "attached 4 stale")
	b.send(nodeidtest.ID(2), b.attachCmd(one, 5))
	b.step()
	b.want(nodeidtest.ID(2), "attached 5 no session")
}
