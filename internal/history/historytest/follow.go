package historytest

import "github.com/mortise-lock/mortise/internal/history"

// Follow lets a second group follow: its history begins gap nanoseconds after the end of the
// first's. gap may be negative. It drops what the first group's voters would have recorded of the
// ends of their last locks, because those voters died.
func Follow(first, second []history.Event, gap int64) []history.Event {
	const tokens = 1 << 40 // the distance of the second group's tokens from the first's
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
