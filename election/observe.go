package election

import (
	"context"
	"iter"

	"github.com/mortise-lock/mortise"
)

// Observe returns the sequence of leaders: first the present leader, then each leadership as it
// begins, including one that has already ended. No leadership appears twice, and tokens increase.
// If no instance leads, the zero Leader appears once. It does not appear between two leaders if the
// second one leads as soon as the first one has ended. Observe does not poll. It skips leaderships
// only if the group no longer has their events, because the body of the loop took too long or the
// group was founded anew. It never skips the present leader. Without a majority nothing appears.
//
// The last pair is a zero Leader with an error: the cause of the end of ctx, or the error of the
// node, such as mortise.ErrClosed. Observe sends no query while the body of the loop runs. A second
// range over the result begins with the present leader.
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

type observation struct {
	name    string
	now     Leader // the present leader
	told    bool   // whether any Leader was reported
	last    mortise.Token
	highest mortise.Token
}

// news applies an event and returns whether to report the present leader. The lack of a leader is
// reported only at an EventCurrent, because a later event may show that another instance leads.
// After an EventReset, a hold that was reported before may be repeated.
func (s *observation) news(e *mortise.Event) bool {
	switch {
	case e.What == mortise.EventReset:
		s.now = Leader{}
	case e.What == mortise.EventCurrent:
		if s.now.Token == 0 && (!s.told || s.last != 0) {
			s.told, s.last = true, 0
			return true
		}
	case e.Key != s.name: // another key that begins with this name
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
