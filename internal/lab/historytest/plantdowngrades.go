package historytest

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
)

// lowered finds an exclusive hold that became shared, and a reader of its key that was granted the
// lock beside it. Both callers believed at one time that they held the lock.
func lowered(events []history.Event) (writer, reader hold, ok bool) {
	return beside(events, func(a, b *history.Event) bool { return a.Permits == 0 && b.Permits == 1 && b.Of == 0 })
}

func isShared(e *history.Event, h hold) bool { return e.Kind == history.Shared && e.Token == h.token }

// downgradeOf returns the index of the event with which the caller of h became a reader.
func downgradeOf(events []history.Event, h hold) int {
	return slices.IndexFunc(events, func(e history.Event) bool {
		return e.Kind == history.Downgrade && e.Stream == h.stream && e.Op == h.op
	})
}

// loweredLate lets the caller of a downgraded lock act as a writer until it unlocks.
func loweredLate(events []history.Event) []history.Event {
	a, _, ok := lowered(events)
	if !ok {
		return nil
	}
	at, until := downgradeOf(events, a), events[a.unlock].At
	return edit(events, func(i int, e *history.Event) bool {
		if i == at {
			e.At = until
		}
		return true
	})
}

func neverShared(events []history.Event) []history.Event {
	a, _, ok := lowered(events)
	if !ok {
		return nil
	}
	return edit(events, func(_ int, e *history.Event) bool { return !isShared(e, a) })
}

// notLowered removes the event of the caller, so that it is a writer beside a reader.
func notLowered(events []history.Event) []history.Event {
	a, _, ok := lowered(events)
	if !ok {
		return nil
	}
	at := downgradeOf(events, a)
	return edit(events, func(i int, _ *history.Event) bool { return i != at })
}

func writerBesideLowered(events []history.Event) []history.Event {
	_, b, ok := lowered(events)
	if !ok {
		return nil
	}
	return change(events, b, func(e *history.Event) { e.Permits = 0 })
}

// sharedTooLate lets a hold become shared directly after its end.
func sharedTooLate(events []history.Event) []history.Event {
	all := holds(events)
	for _, h := range all {
		if slices.ContainsFunc(events, func(e history.Event) bool { return isShared(&e, h) }) ||
			events[h.call].Permits != 0 {
			continue
		}
		late := events[h.end]
		late.Kind, late.How, late.Permits = history.Shared, 0, 1
		return appended(events, late)
	}
	return nil
}

// sharedTwice lets a hold become shared again.
func sharedTwice(events []history.Event) []history.Event {
	a, _, ok := lowered(events)
	if !ok {
		return nil
	}
	at := slices.IndexFunc(events, func(e history.Event) bool { return isShared(&e, a) })
	return appended(events, events[at])
}

// appended adds an event of a voter to the end of its log entry.
func appended(events []history.Event, e history.Event) []history.Event {
	last := 0
	for i := range events {
		if o := &events[i]; o.Stream == e.Stream && o.Index == e.Index && o.Seq > 0 {
			last, e.Seq = i, o.Seq+1
		}
	}
	return slices.Insert(slices.Clone(events), last+1, e)
}
