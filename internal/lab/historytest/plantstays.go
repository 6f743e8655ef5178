package historytest

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// kept is one stay with its passes. It ended at the earliest time at which a voter recorded its
// end.
type kept struct {
	key         string
	token, last lockfsm.Token
	ended       int64
	how         history.How
	passes      []hold
}

// staysOf lists the stays that have ended, each with the passes that were unlocked, in the order of
// tokens.
func staysOf(events []history.Event) (all []kept) {
	stays := map[lockfsm.Token]*kept{}
	for _, e := range events {
		switch s := stays[e.Token]; {
		case e.Kind == history.Grant && e.Last != 0 && s == nil:
			stays[e.Token] = &kept{key: e.Key, token: e.Token, last: e.Last}
		case e.Kind == history.End && s != nil && s.how == 0:
			s.ended, s.how = e.At, e.How
		}
	}
	unlocked := returned(events)
	for _, s := range stays {
		for _, h := range unlocked {
			if s.token < h.token && h.token <= s.last {
				s.passes = append(s.passes, h)
			}
		}
		if s.how != 0 {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return int(a.token) - int(b.token) })
	return all
}

// stayWith returns a stay, from the middle of the history, that was released and has at least n
// passes.
func stayWith(events []history.Event, n int) (kept, bool) {
	all := staysOf(events)
	all = all[len(all)/2:]
	i := slices.IndexFunc(all, func(s kept) bool { return len(s.passes) >= n && s.how == history.ByRelease })
	if i < 0 {
		return kept{}, false
	}
	return all[i], true
}

// at returns a copy of the history in which the event i is changed.
func at(events []history.Event, i int, change func(e *history.Event)) []history.Event {
	events = slices.Clone(events)
	change(&events[i])
	return events
}

func reservedTwice(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	next := lockfsm.Token(0)
	for _, e := range events {
		if e.Kind == history.Grant && e.Token > s.token && (next == 0 || e.Token < next) {
			next = e.Token
		}
	}
	if next == 0 {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Kind == history.Grant && e.Token == s.token {
			e.Last = next
		}
		return true
	})
}

func passTwice(events []history.Event) []history.Event {
	s, ok := stayWith(events, 2)
	if !ok {
		return nil
	}
	return at(events, s.passes[1].ret, func(e *history.Event) { e.Token = s.passes[0].token })
}

func firstGiven(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	return at(events, s.passes[0].ret, func(e *history.Event) { e.Token = s.token })
}

func passAboveLast(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Kind == history.Grant && e.Token == s.token {
			e.Last = s.passes[len(s.passes)-1].token - 1
		}
		return true
	})
}

// passElsewhere gives the next pass of a stay to a call of another instance.
func passElsewhere(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	for _, h := range returned(events) {
		if last := s.passes[len(s.passes)-1]; h.stream != last.stream && h.key == s.key {
			return at(events, h.ret, func(e *history.Event) { e.Token = last.token + 1 })
		}
	}
	return nil
}

func passesOverlap(events []history.Event) []history.Event {
	s, ok := stayWith(events, 2)
	if !ok {
		return nil
	}
	a, late := s.passes[0], events[s.passes[1].ret].At+1
	return edit(events, func(i int, e *history.Event) bool {
		if i == a.unlock || i == a.confirmed {
			e.At = late
		}
		return true
	})
}

func passesSwapped(events []history.Event) []history.Event {
	s, ok := stayWith(events, 2)
	if !ok {
		return nil
	}
	a, b := s.passes[0], s.passes[1]
	return at(at(events, a.ret, func(e *history.Event) { e.Token = b.token }), b.ret,
		func(e *history.Event) { e.Token = a.token })
}

// passTooEarly moves a pass of a stay to the time before the first event of the lock's previous
// holder.
func passTooEarly(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	before := int64(0)
	for _, h := range returned(events) {
		if h.key == s.key && h.token < s.token {
			before = h.begun
		}
	}
	if before == 0 {
		return nil
	}
	p := s.passes[0]
	return move(events, p, before-10)
}

func passTooLate(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	return move(events, s.passes[len(s.passes)-1], s.ended+1)
}

// move moves the events of a call to a time and the next nanoseconds.
func move(events []history.Event, h hold, to int64) []history.Event {
	return edit(events, func(i int, e *history.Event) bool {
		if n := slices.Index([]int{h.call, h.ret, h.unlock, h.confirmed}, i); n >= 0 {
			e.At = to + int64(n)
		}
		return true
	})
}

func passOutlives(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	p := s.passes[len(s.passes)-1]
	return edit(events, func(i int, e *history.Event) bool {
		if i == p.unlock || i == p.confirmed {
			e.At = s.ended + 1
		}
		return true
	})
}

// passHeld changes the answer to a try request. The answer then names a pass for which fit returns
// true.
func passHeld(events []history.Event, fit func(begun, returned int64, p hold) bool) []history.Event {
	stays := staysOf(events)
	for i, e := range events {
		if e.Kind != history.Return || e.Outcome != history.Held {
			continue
		}
		c := slices.IndexFunc(events, func(c history.Event) bool {
			return c.Kind == history.Call && c.Stream == e.Stream && c.Op == e.Op
		})
		for _, s := range stays {
			for _, p := range s.passes {
				if s.key == events[c].Key && fit(events[c].At, e.At, p) {
					return at(events, i, func(e *history.Event) { e.Token = p.token })
				}
			}
		}
	}
	return nil
}

func passHeldLate(events []history.Event) []history.Event {
	return passHeld(events, func(begun, _ int64, p hold) bool { return events[p.confirmed].At < begun })
}

func passHeldEarly(events []history.Event) []history.Event {
	return passHeld(events, func(_, returned int64, p hold) bool { return returned < p.begun })
}

func stayKept(events []history.Event) []history.Event {
	all := staysOf(events)
	for _, s := range slices.Backward(all) {
		if !slices.ContainsFunc(events, func(e history.Event) bool {
			return e.Kind == history.Grant && e.Key == s.key && e.Token > s.token
		}) {
			return edit(events, func(_ int, e *history.Event) bool {
				return e.Kind != history.End || e.Token != s.token
			})
		}
	}
	return nil
}

// passUntold removes the events in which the caller of a pass unlocks, although its instance still
// runs after the end of the stay.
func passUntold(events []history.Event) []history.Event {
	last := map[int]int64{}
	for _, e := range events {
		last[e.Stream] = max(last[e.Stream], e.At)
	}
	for _, s := range staysOf(events) {
		if n := len(s.passes); n > 0 && last[s.passes[n-1].stream] >= s.ended+5*ms {
			p := s.passes[n-1]
			return edit(events, func(i int, _ *history.Event) bool { return i != p.unlock && i != p.confirmed })
		}
	}
	return nil
}

func stayDisputed(events []history.Event) []history.Event {
	s, ok := stayWith(events, 1)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.Grant && e.Token == s.token })
	return at(events, i, func(e *history.Event) { e.Last++ })
}
