package election

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise"
)

// Observe goes through the leaders as they change: first who leads now, then each new leadership, also one of the same instance. Nothing comes
// twice, tokens rise, and when nobody leads the zero Leader comes, once. It asks at an interval, see [Options.Interval]: so a change shows
// within that and the time of a question, and what comes and goes in between is skipped. Without a majority there is no answer, and
// nothing comes.
//
// The last pair is a zero Leader with an error: the cause of ctx's end, or that of the node, such as mortise.ErrClosed. It works in the
// goroutine of the loop, and asks nothing while the body of the loop runs. Each range over the result begins anew.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var seen sighting
		for {
			leader, err := e.Leader(ctx)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Leader{}, err)
				return
			}
			if seen.news(leader.Token) && !yield(leader, nil) {
				return
			}
			sleep(ctx, jittered(e.options.Interval))
		}
	}
}

// sighting is what an observer was told.
type sighting struct {
	told    bool // anything
	last    mortise.Token
	highest mortise.Token
}

// news notes who leads, by token, and reports whether the observer is to be told. A token below one that was told before is of the past, which a
// linearizable answer never is; it would be passed over.
func (s *sighting) news(token mortise.Token) bool {
	if token == 0 && s.told && s.last == 0 || token != 0 && token <= s.highest {
		return false
	}
	s.told, s.last, s.highest = true, token, max(s.highest, token)
	return true
}

// jittered returns a time between half of d and d.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
