package historytest

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
)

// beside finds two holds of one key that overlapped in time. While the first was held, the second
// was granted and its call returned.
func beside(events []history.Event, fit func(a, b *history.Event) bool) (a, b hold, ok bool) {
	all := holds(events)
	for i, a := range all {
		for _, b := range all[i+1:] {
			x, y := &events[a.call], &events[b.call]
			if x.Key == y.Key && len(x.Keys)+len(y.Keys) == 0 && together(events, a, b) && fit(x, y) {
				return a, b, true
			}
		}
	}
	return a, b, false
}

func later(e, than history.Event) bool {
	return e.Index > than.Index || e.Index == than.Index && e.Seq > than.Seq
}

// together reports whether there was a time at which both callers must have believed that they held
// their locks.
func together(events []history.Event, a, b hold) bool {
	return later(events[b.grant], events[a.grant]) && later(events[a.end], events[b.grant]) &&
		events[b.ret].At < events[a.unlock].At
}

func change(events []history.Event, h hold, to func(e *history.Event)) []history.Event {
	return edit(events, func(i int, e *history.Event) bool {
		if i == h.call || e.Token == h.token && (e.Kind == history.Grant || e.Kind == history.End) {
			to(e)
		}
		return true
	})
}

func writerBesideReaders(events []history.Event) []history.Event {
	_, b, ok := beside(events, func(a, b *history.Event) bool {
		return a.Permits == 1 && b.Permits == 1 &&
			a.Of == 0 && b.Of == 0
	})
	if !ok {
		return nil
	}
	return change(events, b, func(e *history.Event) { e.Permits = 0 })
}

func tooManyPermits(events []history.Event) []history.Event {
	_, b, ok := beside(events, func(a, b *history.Event) bool { return a.Of > 0 && b.Of > 0 })
	if !ok {
		return nil
	}
	return change(events, b, func(e *history.Event) { e.Permits = e.Of })
}

// A call of passed swaps the queue places of two grants of one key. Neither request has several
// keys. The second request is exclusive if and only if alone is true.
func passed(events []history.Event, alone bool) []history.Event {
	all := holds(events)
	for i, a := range all {
		for _, b := range all[i+1:] {
			x, y := &events[a.grant], &events[b.grant]
			if x.Key != y.Key || len(x.Keys)+len(y.Keys) > 0 || x.Permits == 0 || (y.Permits == 0) != alone {
				continue
			}
			first, second := x.Place, y.Place
			return edit(events, func(_ int, e *history.Event) bool {
				switch {
				case e.Place == first:
					e.Place = second
				case e.Place == second:
					e.Place = first
				}
				return true
			})
		}
	}
	return nil
}

func writerPassed(events []history.Event) []history.Event { return passed(events, true) }
func readerPassed(events []history.Event) []history.Event { return passed(events, false) }

func several(events []history.Event) (hold, bool) {
	all := holds(events)
	i := slices.IndexFunc(all, func(h hold) bool { return len(events[h.grant].Keys) > 0 })
	if i < 0 {
		return hold{}, false
	}
	return all[i], true
}

func oneOfSeveralMissing(events []history.Event) []history.Event {
	h, ok := several(events)
	if !ok {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Token == h.token && (e.Kind == history.Grant || e.Kind == history.End) {
			e.Keys = e.Keys[:len(e.Keys)-1]
		}
		return true
	})
}

func oneOfSeveralHeld(events []history.Event) []history.Event {
	all := holds(events)
	for _, a := range all {
		for _, b := range all {
			x, y := &events[a.grant], &events[b.grant]
			if x.Key <= y.Key || x.Permits != 0 || slices.Contains(y.Keys, x.Key) || len(y.Keys) == 0 ||
				!together(events, a, b) {
				continue
			}
			return change(events, b, func(e *history.Event) {
				e.Keys = slices.Sorted(slices.Values(append(slices.Clone(e.Keys), x.Key)))
			})
		}
	}
	return nil
}

func otherKind(events []history.Event) []history.Event {
	all := holds(events)
	i := slices.IndexFunc(all, func(h hold) bool { return events[h.call].Permits == 0 })
	if i < 0 {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Token == all[i].token && (e.Kind == history.Grant || e.Kind == history.End) {
			e.Permits = 1
		}
		return true
	})
}

func halfEnds(events []history.Event) []history.Event {
	h, ok := several(events)
	if !ok {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		if e.Token == h.token && e.Kind == history.End {
			e.Keys = nil
		}
		return true
	})
}
