package historytest

import "github.com/mortise-lock/mortise/internal/history"

func queueJump(events []history.Event) []history.Event {
	a, b, ok := pair(events)
	if !ok {
		return nil
	}
	first, second := events[a.grant].Place, events[b.grant].Place
	return edit(events, func(_ int, e *history.Event) bool {
		switch e.Token {
		case a.token:
			if e.Place != 0 {
				e.Place = second
			}
		case b.token:
			if e.Place != 0 {
				e.Place = first
			}
		}
		return true
	})
}

func lostRelease(events []history.Event) []history.Event {
	all := holds(events)
	for i := len(all) - 1; i >= 0; i-- {
		h, last := all[i], true
		for _, e := range events {
			last = last && !(e.Kind == history.Grant && e.Key == h.key && e.Token > h.token)
		}
		if last {
			return edit(events, func(_ int, e *history.Event) bool {
				return e.Kind != history.End ||
					e.Token != h.token
			})
		}
	}
	return nil
}

func lostGrant(events []history.Event) []history.Event {
	a, _, ok := pair(events)
	if !ok {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool {
		return e.Token != a.token || e.Kind != history.Grant && e.Kind != history.End
	})
}

// longBelief makes a holder believe in its lock until the call of the next holder has returned. To
// do so, it replaces the holder's unlock by a loss after that return.
func longBelief(events []history.Event) []history.Event {
	a, b, ok := pair(events)
	if !ok {
		return nil
	}
	late := events[b.ret].At + 1
	return edit(events, func(i int, e *history.Event) bool {
		switch {
		case i == a.unlock:
			e.Kind, e.At, e.Until = history.Lost, late, 0
		case i == a.confirmed:
			return false
		case e.Token == a.token && e.Kind == history.End:
			e.How = history.ByExpire
		}
		return true
	})
}

func grantBeforeCall(events []history.Event) []history.Event {
	a, _, ok := pair(events)
	if !ok {
		return nil
	}
	return edit(events, func(i int, e *history.Event) bool {
		if i == a.call {
			e.At = a.granted + 1
		}
		return true
	})
}

func disagree(events []history.Event) []history.Event {
	a, _, ok := pair(events)
	if !ok {
		return nil
	}
	return edit(events, func(i int, e *history.Event) bool {
		if i == a.grant {
			e.Number += 7
		}
		return true
	})
}

// untold removes the events in which a holder releases its lock or reports its loss, although the
// holder still runs.
func untold(events []history.Event) []history.Event {
	last := map[int]int64{}
	for _, e := range events {
		last[e.Stream] = max(last[e.Stream], e.At)
	}
	for _, h := range holds(events) {
		if last[h.stream] < h.ended+5*ms {
			continue
		}
		return edit(events, func(i int, e *history.Event) bool {
			if e.Token == h.token && e.Kind == history.End {
				e.How = history.ByExpire
			}
			return i != h.unlock && i != h.confirmed
		})
	}
	return nil
}
