package keeper

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file tests members that send well-formed but wrong messages.

// TestAnothersSessionIsNotTaken checks that an Attach with the ID of another session but without
// its nonce is refused. IDs are not secret, because every waiting client gets the ID of the
// holder's session.
func TestAnothersSessionIsNotTaken(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.send(nodeidtest.ID(1), acquireCmd(id, 1, 1, "x"))
	b.step()
	b.want(nodeidtest.ID(1), "state 1 granted")
	steal := lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: 99, Number: 2, Nonce: lockfsm.Nonce{0xbd}}
	attack := func() {
		t.Helper()
		b.send(nodeidtest.ID(2), steal, acquireCmd(id, 99, 3, "y"), lockfsm.Command{Kind: lockfsm.Close, Session: id,
			Epoch: 99})
		b.renew(nodeidtest.ID(2), id, 99, 1)
		b.turn()
		b.want(nodeidtest.ID(2), "attached 99 no session, ended 99 unknown")
		if len(b.kinds) != 0 {
			t.Fatalf("proposed %v", b.kinds)
		}
	}
	attack()
	b.renew(nodeidtest.ID(1), id, 1, 7)
	b.step()
	b.want(nodeidtest.ID(1), "renewed 7")
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.leads()
	b.turn()
	attack()
	if r := b.machine.Apply(100, 6, steal.Append(nil)[1:]); r.Code != lockfsm.NoSession {
		t.Errorf("the machine itself says %v", r.Code)
	}
	c := b.attachCmd(id, 2)
	c.Number, c.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
	b.send(nodeidtest.ID(1), c)
	b.step()
	b.want(nodeidtest.ID(1), "state 1 granted, attached 2 done")
}

// TestAttachAheadOfItsSessionEndsNothing sends an Attach with the guessed ID of a future session.
// It must not end the attachment of the session's owner, which has the same epoch.
func TestAttachAheadOfItsSessionEndsNothing(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	opening := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: benchTTL}
	b.send(nodeidtest.ID(1), opening)
	b.turn()
	next := b.machine.Sessions()
	b.apply()
	b.turn()
	id := b.replies[nodeidtest.ID(1)][0].Session
	if len(next) != 0 || id == 0 {
		t.Fatal("no session")
	}
	b.core.forget(id) // as if the session were not applied here yet
	b.send(nodeidtest.ID(2), lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: 1, Number: 1,
		Nonce: lockfsm.Nonce{2}})
	b.turn()
	b.core.Down(b.now, nodeidtest.ID(2))
	b.core.leases.keep(&lockfsm.SessionInfo{ID: id, Opener: lockfsm.Opener{Instance: nodeidtest.ID(1)},
		Nonce: lockfsm.Nonce{1}, TTL: benchTTL}, b.core.elapsed())
	b.send(nodeidtest.ID(1), b.attachCmd(id, 1))
	b.apply() // the Attach with the guessed ID is applied first
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.apply()
	b.turn()
	b.want(nodeidtest.ID(1), "attached 1 done")
}

// TestSessionsOfOnePeerAreBounded checks that one instance cannot use up the sessions of the group,
// even across changes of the leader.
func TestSessionsOfOnePeerAreBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	nonce := 0
	opens := func(n int) (refused int) {
		for range n {
			nonce++
			b.send(nodeidtest.ID(1), lockfsm.Command{Kind: lockfsm.Open,
				Nonce: lockfsm.Nonce{1, byte(nonce), byte(nonce >> 8)}, TTL: benchTTL})
			b.step()
			for _, r := range b.replies[nodeidtest.ID(1)] {
				if r.Code == lockfsm.TooManySessions {
					refused++
				}
			}
		}
		return refused
	}
	if refused := opens(10 * peerSessions); refused != 9*peerSessions {
		t.Errorf("%d of %d were refused", refused, 10*peerSessions)
	}
	if n := b.machine.Counts().Sessions; n != peerSessions {
		t.Errorf("%d sessions", n)
	}
	b.open(nodeidtest.ID(2)) // other peers are not affected
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.leads()
	b.turn()
	for _, s := range b.machine.Sessions() {
		if s.Nonce[0] == 1 {
			b.attach(nodeidtest.ID(1), s.ID, s.Epoch+1)
		}
	}
	if refused := opens(3); refused != 3 {
		t.Errorf("under the next leader %d of 3 were refused", refused)
	}
	b.core.Down(b.now, nodeidtest.ID(1))
	for range 100 { // the sessions expire and no longer count
		b.advance(tickEvery)
		b.step()
	}
	if n := len(b.core.leases.opened.count); n != 0 {
		t.Errorf("%d openers are remembered, %d sessions live", n, b.machine.Counts().Sessions)
	}
	if refused := opens(1); refused != 0 {
		t.Error("a free place is refused")
	}
}

// TestFloodCostsOnlyItsSender checks that too many frames of one peer, even empty frames or
// renewals, do not cause a frame of another peer to be dropped.
func TestFloodCostsOnlyItsSender(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	for name, frame := range map[string][2]int{"commands": {0, 1 << 20}, "renewals": {1 << 20, 0}, "crumbs": {1, 0}} {
		k := &Keeper{wake: make(chan struct{}, 1)} // a keeper whose goroutine does not run
		for range 200_000 / (1 + frame[0]/10_000 + frame[1]/10_000) {
			k.ReceiveFrom(Sender{ID: nodeidtest.ID(5)}, make([]byte, frame[0]), make([]byte, frame[1]))
		}
		k.ReceiveFrom(Sender{ID: nodeidtest.ID(6)}, []byte{1, 1, 1}, []byte{1})
		in := k.inbox.inputs
		if last := in[len(in)-1]; last.kind != inputReceive || last.by.ID != nodeidtest.ID(6) {
			t.Errorf("%s: the frame of another peer became kind %d of peer %d", name, last.kind, last.by.ID)
		}
		if last := in[len(in)-2]; last.kind != inputDropped || last.peer != nodeidtest.ID(5) ||
			len(last.commands)+len(last.renewals) > 0 {
			t.Errorf("%s: the flood ends with kind %d of peer %d", name, last.kind, last.peer)
		}
		if k.inbox.bytes > peerInboxBytes+2*inputBytes || len(in) > peerInboxBytes/inputBytes+2 {
			t.Errorf("%s: %d bytes and %d inputs wait", name, k.inbox.bytes, len(in))
		}
	}
	k := &Keeper{wake: make(chan struct{}, 1)}
	for p := range nodeid.ID(nodeidtest.ID(100)) {
		k.ReceiveFrom(Sender{ID: nodeidtest.ID(uint64(1 + p))}, nil, make([]byte, 7<<20))
	}
	if k.inbox.bytes > inboxBytes+100*inputBytes {
		t.Errorf("all together: %d bytes", k.inbox.bytes)
	}
}
