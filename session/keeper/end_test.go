package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// revoke asks for the end of a session, as an operator does.
func (b *bench) revoke(id lockfsm.SessionID) {
	b.core.ProposeEnd(b.now, b.term, Ending{Session: id, Cause: lockfsm.Revoked, By: []byte("ops"),
		Reason: []byte("hangs"), Number: 77})
}

func TestASessionEndsBeforeItsTTL(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.send(nodeidtest.ID(1), acquireCmd(id, 1, 1, "k"))
	b.step()
	b.core.ProposeEnd(b.now, b.term-1, Ending{Session: id, Cause: lockfsm.Revoked}) // of an earlier term
	b.step()
	if !b.alive(id) {
		t.Fatal("the end of an earlier term has ended the session")
	}
	b.revoke(id)
	b.renew(nodeidtest.ID(1), id, 1, 1) // it has arrived, and is neither waited for nor acknowledged
	b.step()
	b.want(nodeidtest.ID(1), "ended 1 no session")
	if b.alive(id) || b.core.Status().Expiring != 0 {
		t.Fatalf("the session exists: %+v", b.core.Status())
	}
	ends := b.machine.Ends()
	if len(ends) != 1 || ends[0].Cause != lockfsm.Revoked || string(ends[0].How.By) != "ops" ||
		string(ends[0].How.Reason) != "hangs" {
		t.Fatalf("the audit log has %+v", ends)
	}
}

// The delays of a session that ends before its TTL are counted once: an Expire of its TTL, which
// comes due while the end is on its way, must not be proposed too.
func TestAnEndIsProposedOnce(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	lock := acquireCmd(id, 1, 1, "k")
	const delay = time.Minute
	lock.Delay = delay
	b.send(nodeidtest.ID(1), lock)
	b.step()
	b.refuse = true // the log has no room until the TTL has passed
	b.revoke(id)
	b.pass(2 * benchTTL)
	b.refuse = false
	b.pass(tickEvery)
	b.step()
	if !b.machine.Sessions()[0].Gone {
		t.Fatal("the session is not gone")
	}
	b.pass(delay - 2*tickEvery)
	if b.step(); b.machine.Counts().Entries != 1 {
		t.Fatal("the delay was cut short")
	}
	b.pass(3 * tickEvery)
	if b.step(); b.machine.Counts().Entries != 0 {
		t.Fatal("the delay does not end")
	}
}

// The end of a session that is gone changes nothing: its delay neither ends early nor lasts longer.
func TestAGoneSessionIsNotEndedAgain(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	const delay = time.Minute
	b.expired(delay)
	id := b.machine.Sessions()[0].ID
	b.pass(delay / 2)
	b.revoke(id)
	b.step()
	if b.machine.Counts().Entries != 1 {
		t.Fatal("the delay was cut short")
	}
	b.pass(delay/2 + 3*tickEvery)
	if b.step(); b.machine.Counts().Entries != 0 {
		t.Fatal("the delay does not end")
	}
}
