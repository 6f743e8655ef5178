package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file tests members that send well-formed but wrong messages.

// TestFloodOfRepliesIsBounded checks that the leader's replies are received even if other members
// send very many replies.
func TestFloodOfRepliesIsBounded(t *testing.T) {
	t.Parallel()
	c := &Client{wake: make(chan struct{}, 1), heeded: nodeidtest.ID(5)}
	for range 100 {
		c.Receive(nodeidtest.ID(6), make([]byte, 1<<19))
	}
	for range inboxBytes/(1<<20) + 100 {
		c.Receive(nodeidtest.ID(5), make([]byte, 1<<20))
	}
	var leader, others, downs int
	for _, in := range c.inbox {
		switch {
		case in.kind == inputDown && in.peer == nodeidtest.ID(5):
			downs++
		case in.peer == nodeidtest.ID(5):
			leader += len(in.bytes)
		default:
			others += len(in.bytes)
		}
	}
	if leader < inboxBytes-(1<<20) || leader > inboxBytes || others > otherBytes || downs != 1 {
		t.Errorf("%d bytes of the leader, %d of others, %d downs", leader, others, downs)
	}
}

// TestOnlyVotersRedirect checks that redirects of other members are ignored. Otherwise a member
// could pose as the leader and acknowledge leases.
func TestOnlyVotersRedirect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	h := b.hold("x")
	b.reply(nodeidtest.ID(66), redirect(8, nodeidtest.ID(66)))
	b.want("")
	b.reply(nodeidtest.ID(66), redirect(1<<63, nodeidtest.ID(66)), session.Reply{Kind: session.ReplyRenewed,
		Session: 100, Epoch: 1, Seq: 1 << 60})
	b.want("")
	if b.core.phase != Attached || b.core.finder.term >= 1<<63 {
		t.Fatalf("a redirect from a non-voter was followed: %v, term %d", b.core.phase, b.core.finder.term)
	}
	b.reply(nodeidtest.ID(2), redirect(9, nodeidtest.ID(70))) // a voter may name an unknown instance as the leader
	b.turn()
	if b.to.ID != nodeidtest.ID(70) {
		t.Fatalf("asked %d", b.to.ID)
	}
	b.reply(nodeidtest.ID(70), redirect(10, nodeidtest.ID(3))) // the asked instance may send a redirect, too
	b.turn()
	if b.to.ID != nodeidtest.ID(3) {
		t.Fatalf("asked %d", b.to.ID)
	}
	for _, r := range []session.Reply{b.attached(lockfsm.Done), b.state(1, lockfsm.Granted, 5), b.renewed(),
		b.ended(session.EndNoSession), b.freed(1)} {
		b.reply(nodeidtest.ID(66), r) // this instance was not asked
	}
	b.turn()
	b.quiet()
	if b.core.phase != Attaching || h.token() == 5 {
		t.Errorf("phase %v", b.core.phase)
	}
	b.advance(benchTTL * time.Duration(2))
	b.turn()
	if b.core.Status(b.now).Held != 0 {
		t.Error("a lease was kept alive by a stranger")
	}
}
