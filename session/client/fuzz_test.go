package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func TestUnknownRepliesAreSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.core.pulse.due = true
	b.want("1: renew 1")
	acknowledged := b.renewed()
	b.core.Receive(b.now, nodeidtest.ID(1), acknowledged.Append([]byte{3, 200, 1, 2}))
	b.want("")
	if b.core.pulse.renewals.heard != acknowledged.Seq {
		t.Error("what came behind the unknown record was not read")
	}
}

func FuzzHeardReplies(f *testing.F) {
	seed := newBench(&testing.T{})
	seed.attach()
	for _, r := range []session.Reply{
		seed.attached(lockfsm.Done), seed.state(1, lockfsm.Granted, 7), seed.state(2, lockfsm.Waiting, 0),
		seed.freed(1), seed.renewed(),
		seed.ended(session.EndNoSession), seed.ended(session.EndUnknown), redirect(9, nodeidtest.ID(2)),
	} {
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		b := newBench(t)
		b.attach()
		b.hold("a")
		b.acquire("b", false)
		b.acquire("c", true)
		b.turn()
		b.core.Receive(b.now, nodeidtest.ID(1), frame)
		b.turn()
		b.advance(time.Second)
		b.core.Receive(b.now, nodeidtest.ID(1), frame)
		b.turn()
		b.advance(benchTTL)
		b.turn()
		if b.core.Status(b.now).Held != 0 {
			t.Fatal("a hold outlived a TTL without a renewal")
		}
	})
}
