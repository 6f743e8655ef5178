package timeline

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
)

// call is a call that has not ended yet.
type call struct {
	node    string
	keys    []string
	kind    Kind // Held or Shared, when it holds
	since   time.Duration
	holds   bool
	token   uint64
	at      int // its place in the history
	ordinal uint64
}

// Holds returns the keys of a history, and a bar for each wait and each hold: from the moment at
// which the caller was granted the lock until it released the lock, or knew that it was lost. A
// hold of a process that has ended lasts until that process ended: ended has the time by
// Event.Stream. What is left at the end lasts until the time end. Downgraded holds become shared.
// The parameter zero is the time on the history's clock at which the page begins.
func Holds(events []history.Event, ended map[int]time.Duration, zero, end time.Duration) (keys []string, bars []Bar) {
	type id struct {
		stream int
		op     uint64
	}
	open, names := map[id]*call{}, map[string]bool{}
	close := func(c *call, to time.Duration) {
		what := "waits"
		kind := Waits
		if c.holds {
			what, kind = fmt.Sprintf("token %d", c.token), c.kind
		}
		for _, key := range c.keys {
			bars = append(bars, Bar{Lane: key, Kind: kind, From: c.since, To: max(to, c.since),
				Text: fmt.Sprintf("%s %s (call %d)", c.node, what, c.ordinal)})
		}
	}
	for i := range events {
		e := &events[i]
		at, who := time.Duration(e.At)-zero, id{e.Stream, e.Op}
		c := open[who]
		switch {
		case e.Kind == history.Call:
			c = &call{node: e.Node, keys: append([]string{e.Key}, e.Keys...), kind: Held, since: at, at: i, ordinal: e.Op}
			if e.Permits != 0 || e.Modes != "" {
				c.kind = Shared
			}
			for _, key := range c.keys {
				names[key] = true
			}
			open[who] = c
		case c == nil:
		case e.Kind == history.Return:
			close(c, at)
			if e.Outcome != history.Granted {
				delete(open, who)
				continue
			}
			c.since, c.holds, c.token = at, true, uint64(e.Token)
		case e.Kind == history.Downgrade && c.holds:
			close(c, at)
			c.since, c.kind = at, Shared
		case e.Kind == history.Unlock:
			close(c, at)
			delete(open, who)
		case e.Kind == history.Lost:
			close(c, min(at, time.Duration(e.Until)-zero))
			delete(open, who)
		}
	}
	left := slices.SortedFunc(maps.Keys(open), func(a, b id) int { return open[a].at - open[b].at })
	for _, who := range left {
		to, known := ended[who.stream]
		if !known {
			to = end
		}
		close(open[who], to)
	}
	return slices.Sorted(maps.Keys(names)), bars
}
