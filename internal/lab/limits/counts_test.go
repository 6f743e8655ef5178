package limits_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/counter"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/shard"
	"github.com/mortise-lock/mortise/stripe"
)

func shards(set func(w *shard.Work, n int64)) func(*testing.T, int64) error {
	return func(t *testing.T, n int64) (err error) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			w := shard.Work{Name: "s", Count: 1, Run: func(context.Context, shard.Shard) error { return nil }}
			set(&w, n)
			if err = shard.Run(ctx, ready(t), w); errors.Is(err, context.Canceled) {
				err = nil // the work was accepted
			}
		})
		return err
	}
}

// adds is the trial of the two ways to add: the sum is exact, and one more is refused.
func adds(add func(ctx context.Context, c *counter.Counter, n int64) (int64, error)) limits.Count {
	return limits.Count{Limit: math.MaxInt64, Try: func(t *testing.T, n int64) (err error) {
		bubble(t, func(t *testing.T) {
			c := counter.New(ready(t), "k")
			var sum int64
			if sum, err = add(t.Context(), c, n); err != nil || sum != n {
				t.Errorf("the sum is %d: %v", sum, err)
			}
			if sum, err := add(t.Context(), c, 1); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("one more is %d: %v", sum, err)
			}
			if sum, err := add(t.Context(), c, math.MinInt64); err != nil || sum != -1 {
				t.Errorf("the least one is %d: %v", sum, err)
			}
		})
		return err
	}}
}

const participants = 128

var packageCounts = map[string]limits.Count{
	"barrier.NewCyclic(n)": {Limit: participants, Names: "participants", Try: func(t *testing.T, n int64) error {
		_, err := barrier.NewCyclic(new(mortise.Node), "b", int(n), "p")
		return err
	}},
	"barrier.NewDouble(n)": {Limit: participants, Names: "participants", Try: func(t *testing.T, n int64) error {
		_, err := barrier.NewDouble(new(mortise.Node), "b", int(n))
		return err
	}},
	"barrier.NewLatch(n)": {Limit: participants, Names: "participants", Try: func(t *testing.T, n int64) error {
		_, err := barrier.NewLatch(new(mortise.Node), "b", int(n))
		return err
	}},
	"counter.Counter.Add(delta)": adds(func(ctx context.Context, c *counter.Counter, n int64) (int64, error) {
		return c.Add(ctx, n)
	}),
	"counter.Counter.Addition(delta)": adds(func(ctx context.Context, c *counter.Counter, n int64) (int64, error) {
		return c.Addition(n).Do(ctx)
	}),
	"fence.Mark.Limit": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) error {
		m := fence.Mark{Limit: int(n)}
		for i := range 10 {
			if err := m.Advance(t.Context(), fmt.Sprint("r", i), 1); err != nil {
				return err
			}
		}
		return nil
	}},
	"fence.Memo.Limit": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) error {
		m, calls := fence.Memo{Limit: int(n)}, 0
		for range 2 {
			for i := range 10 {
				step := fence.Step{Resource: "r", Token: 1, ID: fmt.Sprint("i", i)}
				if _, err := m.Do(t.Context(), step, func(context.Context) ([]byte, error) {
					calls++
					return nil, nil
				}); err != nil {
					return err
				}
			}
		}
		if calls != 10 {
			return fmt.Errorf("10 steps ran %d times", calls)
		}
		return nil
	}},
	"shard.Work.Count": {Limit: 4096, Names: "Count", Try: shards(func(w *shard.Work, n int64) { w.Count = int(n) })},
	"shard.Work.Weight": {Limit: 1000, Names: "Weight",
		Try: shards(func(w *shard.Work, n int64) { w.Weight = int(n) })},
	"stripe.New(n)": {Limit: 4096, Names: "stripes", Try: func(t *testing.T, n int64) error {
		_, err := stripe.New(new(mortise.Node), "s", int(n))
		return err
	}},
}
