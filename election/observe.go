package election

import (
	"context"
	"iter"

	"github.com/mortise-lock/mortise"
)

// Observe goes through the leaders as they change: first who leads now, then each leadership as it
// begins, also one of the same instance, and one that is over by then. Nothing comes twice, tokens
// rise, and when nobody leads the zero Leader comes, once; where one leader follows another at once
// it does not. It stands on mortise.Node.Watch and is told, so a change shows as soon as the
// message is here. Only where the group cannot tell any more what has happened, since the body of
// the loop took too long or the group was founded anew, are leaderships passed over, but never the
// present one. Without a majority nothing comes.
//
// The last pair is a zero Leader with an error: the cause of ctx's end, or that of the node, such
// as mortise.ErrClosed. It works in the goroutine of the loop, and asks nothing while the body of
// the loop runs. Each range over the result begins anew.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		seen := sighting{name: e.name}
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

// sighting is what an observer has seen, and was told.
type sighting struct {
	name    string
	now     Leader // who leads
	told    bool   // anything
	last    mortise.Token
	highest mortise.Token
}

// news notes an event and reports whether the observer is to be told who leads now. That nobody
// does is news only when all that has happened is known: another one may lead already. A hold that
// was told is seen again behind a reset.
func (s *sighting) news(e *mortise.Event) bool {
	switch {
	case e.What == mortise.EventReset:
		s.now = Leader{}
	case e.What == mortise.EventCurrent:
		if s.now.Token == 0 && (!s.told || s.last != 0) {
			s.told, s.last = true, 0
			return true
		}
	case e.Key != s.name: // the name of another begins with this one
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
