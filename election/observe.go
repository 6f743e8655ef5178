package election

import (
	"context"
	"iter"

	"github.com/mortise-lock/mortise"
)

// Observe returns the leaders as they change: first the present one, then each leadership as it
// begins, even one that is already over. No leadership appears twice, and tokens rise. If there is
// no leader, the zero Leader appears once, but not between two leaders that follow each other at
// once. Observe does not poll. It skips leaderships only if the group no longer knows the events,
// because the body of the loop took too long or the group was founded anew. It never skips the
// present one. Without a majority nothing appears.
//
// The last pair is a zero Leader with an error: the cause of ctx's end, or the node's error, such
// as mortise.ErrClosed. Observe runs on the goroutine of the loop and sends no query while the body
// of the loop runs. Each range over the result starts over.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		seen := observation{name: e.name}
		for event, err := range e.watch(ctx, e.name, 0) {
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				yield(Leader{}, err)
				return
			}
			if seen.news(&event) && !yield(seen.now, nil) {
				return
			}
		}
	}
}

// observation is the state of an observer.
type observation struct {
	name    string
	now     Leader // the present leader
	told    bool   // whether anything was reported
	last    mortise.Token
	highest mortise.Token
}

// news applies an event and returns whether to report the present leader. The lack of a leader is
// reported only when all events are known, because another instance may lead already. After a reset
// a repeated hold appears again.
func (s *observation) news(e *mortise.Event) bool {
	switch {
	case e.What == mortise.EventReset:
		s.now = Leader{}
	case e.What == mortise.EventCurrent:
		if s.now.Token == 0 && (!s.told || s.last != 0) {
			s.told, s.last = true, 0
			return true
		}
	case e.Key != s.name: // a key whose name begins with this one
	case e.What == mortise.EventFreed && e.Token == s.now.Token:
		s.now = Leader{}
	case e.What == mortise.EventHeld && e.Token >= s.highest:
		s.now = Leader{Name: e.Holder, Value: e.Value, Token: e.Token, Since: e.At}
		if e.Token > s.highest {
			s.told, s.last, s.highest = true, e.Token, e.Token
			return true
		}
	}
	return false
}
