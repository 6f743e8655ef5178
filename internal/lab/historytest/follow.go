package historytest

import "github.com/mortise-lock/mortise/internal/history"

// Follow appends the history of a second group, which begins gap nanoseconds after the end of the
// first. gap may be negative. Except for releases, Follow drops the End events of the first group's
// last 20 ms, because the voters that would have recorded them died.
func Follow(first, second []history.Event, gap int64) []history.Event {
	const tokens = 1 << 40 // distance of the tokens of the two groups
	end, streams := int64(0), 0
	for _, e := range first {
		end, streams = max(end, e.At), max(streams, e.Stream)
	}
	var both []history.Event
	for _, e := range first {
		if e.Kind != history.End || e.How == history.ByRelease || e.At < end-20*ms {
			both = append(both, e)
		}
	}
	begin := second[0].At
	for _, e := range second {
		e.At += end + gap - begin
		if e.Until != 0 {
			e.Until += end + gap - begin
		}
		e.Stream += streams
		if e.Token != 0 {
			e.Token += tokens
		}
		if e.Last != 0 {
			e.Last += tokens
		}
		if e.Rev != 0 {
			e.Rev += tokens
		}
		if e.Place != 0 {
			e.Place += tokens
		}
		if e.Session != 0 {
			e.Session += tokens
		}
		if e.Group != 0 {
			e.Group++
		}
		both = append(both, e)
	}
	return both
}
