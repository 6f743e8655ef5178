package client

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestHoldsEndByThemselves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := newBench(t)
		b.attach()
		var all []*Request
		freed, told, released := 0, 0, 0
		look := func() {
			b.turn()
			for _, o := range b.outcomes {
				if o.Kind == OutcomeLost {
					told++
				}
				if o.Kind == OutcomeLost && (!errors.Is(o.Err, OverdueError{}) || !errors.Is(o.Err, ErrLost)) {
					t.Errorf("seed %d: %v", seed, o.Err)
				}
			}
			for _, c := range b.commands {
				if c.Kind == lockfsm.Release || c.Kind == lockfsm.Detach {
					freed++
					b.reply(b.to.ID, b.freed(c.Number))
				}
			}
			for _, q := range all {
				if q.stage == stageHeld && q.Terms.limit != nil && !b.now.Before(q.Terms.limit.until) {
					t.Fatalf("seed %d: a hold goes on %v after its end", seed, b.now.Sub(q.Terms.limit.until))
				}
				if q.stage == stageOver && q.Terms.limit == nil {
					t.Fatalf("seed %d: a hold without an end has ended", seed)
				}
			}
		}
		for range 20 {
			q := &Request{Key: "k", Terms: &Terms{Longest: time.Duration(r.IntN(5)) * 100 * time.Millisecond}}
			b.core.Acquire(b.now, q)
			look()
			n := b.commands[len(b.commands)-1].Number
			b.reply(b.to.ID, b.state(n, lockfsm.Granted, lockfsm.Token(1000+n)))
			all = append(all, q)
			look()
			if gone := all[r.IntN(len(all))]; gone.stage == stageHeld && gone.Terms.limit != nil && r.IntN(3) == 0 {
				b.core.Release(b.now, gone)
				released++
			}
			next := b.core.Next()
			if b.advance(time.Duration(r.IntN(60)) * time.Millisecond); len(b.core.limited) > 0 &&
				next.After(b.core.limited[0].Terms.limit.until) {
				t.Fatalf("seed %d: the next turn is due only at %v", seed, next)
			}
			look()
		}
		b.advance(time.Second)
		look()
		endless := 0
		for _, q := range all {
			if q.stage == stageHeld {
				endless++
			}
		}
		if told != len(all)-endless-released {
			t.Fatalf("seed %d: %d holders were told that their holds have ended, want %d", seed, told,
				len(all)-endless-released)
		}
		if len(b.core.limited) != 0 || b.core.counts.held != endless || freed != len(all)-endless {
			t.Fatalf("seed %d: %d are limited, %d held of %d, %d freed of %d", seed, len(b.core.limited), b.core.counts.held,
				endless, freed, len(all))
		}
	}
}
