package election

import (
	"context"
	"iter"

	"github.com/mortise-lock/mortise"
)

// Observe reports the present leader and then each new one, even if its leadership has already
// ended. A leadership is reported again only with a new value (see [Leadership.Proclaim]). The
// token of a new leadership is higher. If there is no leader, Observe reports the zero Leader once,
// but not when one leader directly follows another. Observe does not poll. It skips a leadership
// only if the group no longer has its event, because the body of the loop took too long or the
// group was founded anew. It never skips the present leader. While the group has no majority,
// nothing is reported.
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
	now     Leader
	told    bool
	last    mortise.Token
	highest mortise.Token
	value   string // reported with highest
}

// news applies an event. It returns true if the leader in s.now must be reported. If there is no
// leader, news returns true only at an EventCurrent, because a later event may report the next
// leader.
func (s *observation) news(e *mortise.Event) bool {
	switch {
	case e.Kind == mortise.EventReset:
		s.now = Leader{}
	case e.Kind == mortise.EventCurrent:
		if s.now.Token == 0 && (!s.told || s.last != 0) {
			s.told, s.last = true, 0
			return true
		}
	case e.Key != s.name: // another key that begins with this name
	case e.Kind == mortise.EventFreed && e.Token == s.now.Token:
		s.now = Leader{}
	case e.Kind == mortise.EventHeld && e.Token >= s.highest:
		s.now = Leader{Name: e.Holder, Value: e.Value, Token: e.Token, Since: e.At}
		if e.Token > s.highest || e.Value != s.value {
			s.told, s.last, s.highest, s.value = true, e.Token, e.Token, e.Value
			return true
		}
	}
	return false
}
