package client

import (
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestRenewalsNameWhatWasHeard checks that each renewal names the newest answer that the client has
// received, also across attachments.
func TestRenewalsNameWhatWasHeard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.turn()
	b.reply(b.to.ID, b.opened(b.core.opening.nonce[0], 100))
	b.turn()
	wantHeard := func(heard uint64) {
		t.Helper()
		if len(b.renewals) != 1 || b.renewals[0].Heard != heard {
			t.Fatalf("renewals are %+v, want one that has heard %d", b.renewals, heard)
		}
	}
	wantHeard(0)
	b.reply(b.to.ID, b.attached(lockfsm.Done)) // the Attached arrives before the acknowledgement
	b.core.pulse.due = true
	b.turn()
	wantHeard(1)
	b.reply(b.to.ID, b.renewed())
	b.core.redirect(b.now, b.core.finder.target)
	b.turn()
	wantHeard(2)
}

// TestReturningClientRenewsAtOnce checks that a client that attaches shortly before the end of
// its lease sends another renewal at once. The leader may ignore the renewal that was sent with
// the Attach.
func TestReturningClientRenewsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.Down(b.now, b.to.ID)
	b.advance(benchTTL - benchTTL/10)
	b.turn()
	attach := b.renewals
	if len(attach) != 1 || len(b.commands) != 1 || b.commands[0].Kind != lockfsm.Attach {
		t.Fatalf("it does not attach: %v, %v", attach, b.commands)
	}
	b.reply(b.to.ID, b.attached(lockfsm.Done))
	b.turn()
	if len(b.renewals) != 1 || b.renewals[0].Heard != attach[0].Seq {
		t.Errorf("renewals are %+v, want one that names the answer to %+v", b.renewals, attach)
	}
}
