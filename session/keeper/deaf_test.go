package keeper

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// deafLimit is the time within which a session must expire after its client has stopped
// receiving: one TTL until the last received answer is too old, another TTL until the lease ends,
// and the time between the keeper's checks.
const deafLimit = 2*benchTTL + 2*tickEvery

// TestDeafWaiterLosesItsTurn checks a waiting client that can send but not receive. It must not
// keep a lock by renewals or by repeated attachments.
func TestDeafWaiterLosesItsTurn(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		b := leadingBench(t)
		holder, deaf, next := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2)), b.open(nodeidtest.ID(3))
		b.send(nodeidtest.ID(1), acquireCmd(holder, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(2), acquireCmd(deaf, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(3), acquireCmd(next, 1, 1, "k"))
		b.step()
		b.send(nodeidtest.ID(1), releaseCmd(holder, 1, 1))
		b.step()
		b.want(nodeidtest.ID(2), "state 1 granted")
		since, seq, epoch := b.now, uint64(0), lockfsm.Epoch(1)
		for served := false; !served; {
			b.advance(tickEvery)
			if seq++; seq%10 == 0 {
				b.renew(nodeidtest.ID(1), holder, 1, seq)
				b.renew(nodeidtest.ID(3), next, 1, seq)
				if again {
					epoch++
					attach := b.attachCmd(deaf, epoch)
					attach.Number, attach.Live = 2, []lockfsm.Range{{First: 1, Last: 1}}
					b.core.Receive(b.now, nodeidtest.ID(2), session.Renewal{Session: deaf, Epoch: epoch, Seq: seq,
						Heard: 0}.Append(nil), attach.Append(nil))
				} else {
					b.core.Receive(b.now, nodeidtest.ID(2), session.Renewal{Session: deaf, Epoch: 1, Seq: seq,
						Heard: 0}.Append(nil), nil)
				}
			}
			b.step()
			for _, r := range b.replies[nodeidtest.ID(3)] {
				served = served || r.Kind == session.ReplyState && r.Code == lockfsm.Granted
			}
			if b.now.Sub(since) > deafLimit {
				t.Fatalf("attaching again %v: the next waiter is not granted the lock after %v", again,
					b.now.Sub(since))
			}
		}
		if b.now.Sub(since) < benchTTL {
			t.Errorf("attaching again %v: the waiter has lost its turn after %v, sooner than a TTL", again,
				b.now.Sub(since))
		}
		if !b.alive(holder) || !b.alive(next) {
			t.Error("a client that receives has lost its session")
		}
	}
}

// TestHearingIsRemembered checks that a recently received answer also counts in later attachments.
func TestHearingIsRemembered(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]struct {
		seq  uint64
		want string
	}{
		"nothing, ever":       {0, ""},
		"a Renewed, long ago": {1, ""},
		"the last Renewed":    {2, "renewed 9"},
		"the last Attached":   {3, "renewed 9"},
		"what was not said":   {7, ""},
	} {
		b := leadingBench(t)
		id := b.open(nodeidtest.ID(1))
		b.renew(nodeidtest.ID(1), id, 1, 1)
		b.step()
		b.want(nodeidtest.ID(1), "renewed 1")
		b.pass(benchTTL - tickEvery)
		b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 1, Seq: 2, Heard: 0}.Append(nil),
			nil)
		b.step()
		b.want(nodeidtest.ID(1), "renewed 2")
		b.pass(tickEvery)
		b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 2, Seq: 3, Heard: 0}.Append(nil),
			b.attachCmd(id, 2).Append(nil))
		b.step()
		b.want(nodeidtest.ID(1), "attached 2 done")
		b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 2, Seq: 9,
			Heard: heard.seq}.Append(nil), nil)
		b.step()
		if got := b.said(nodeidtest.ID(1)); got != heard.want {
			t.Errorf("%s: told %q, want %q", name, got, heard.want)
		}
	}
}

// TestStallIsNoDeafness checks that the time of a stall, in which the keeper reads no renewals,
// does not count as time without confirmed answers.
func TestStallIsNoDeafness(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.renew(nodeidtest.ID(1), id, 1, 1)
	b.step()
	b.advance(time.Minute)
	b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 1, Seq: 2, Heard: 1}.Append(nil), nil)
	b.step()
	b.want(nodeidtest.ID(1), "renewed 2")
}

func TestToldIsBounded(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	for seq := range uint64(100) {
		b.core.Receive(b.now, nodeidtest.ID(1), session.Renewal{Session: id, Epoch: 1, Seq: seq +
			1, Heard: 0}.Append(nil), nil)
		b.step()
	}
	if got := b.core.leases.session(id).told.Count(); got != 8 {
		t.Errorf("%d are remembered", got)
	}
}
