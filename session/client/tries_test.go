package client

import (
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestFinishedTriesAreForgotten checks that requests with Try that have ended are not kept while an
// earlier one still waits for the answer of a stay.
func TestFinishedTriesAreForgotten(t *testing.T) {
	b := newBench(t)
	b.attach()
	first := b.acquire("first", true)
	b.turn()
	b.reply(b.to.ID, b.state(1, lockfsm.Waiting, 0))
	for n := range lockfsm.Number(5000) {
		r := b.acquire("k", true)
		b.turn()
		b.reply(b.to.ID, b.state(n+2, lockfsm.Waiting, 0))
		b.reply(b.to.ID, b.state(n+2, lockfsm.QueueFull, 0))
		b.turn()
		b.outcome(r, OutcomeFailed, ErrQueueFull)
		if len(b.core.asking) > 2*askingSpare {
			t.Fatalf("%d requests are kept after %d have ended", len(b.core.asking), n+1)
		}
	}
	if b.advance(tryWithout); b.core.Next() > b.now {
		t.Error("the request that waits is forgotten")
	}
	b.core.Tick(b.now)
	b.turn()
	b.outcome(first, OutcomeFailed, ErrKept)
}
