package client

import (
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// TestACrowdReusesItsOutcomes checks that the slices of outcomes are reused while turns need them,
// and that a burst does not pin them.
func TestACrowdReusesItsOutcomes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	const crowd = 3 * outcomesKept
	number := lockfsm.Number(0)
	grants := func() {
		var replies []session.Reply
		for range crowd {
			number++
			b.core.Acquire(b.now, &Request{Key: fmt.Sprint(number)})
			replies = append(replies, b.state(number, lockfsm.Granted, lockfsm.Token(number)))
		}
		b.turn()
		b.reply(nodeidtest.ID(1), replies...)
	}
	slices := map[*Outcome]bool{}
	for range 8 {
		grants()
		b.turn()
		if len(b.outcomes) != crowd {
			t.Fatalf("%d outcomes, want %d", len(b.outcomes), crowd)
		}
		slices[&b.core.told[0]] = true
	}
	if len(slices) > 2 {
		t.Errorf("8 turns of %d grants have used %d slices, want 2", crowd, len(slices))
	}
	for range 64 {
		b.turn()
	}
	if n := max(cap(b.core.told), cap(b.core.outcomes)); n > outcomesKept {
		t.Errorf("a slice of %d outcomes is kept after 64 turns without one", n)
	}
}
