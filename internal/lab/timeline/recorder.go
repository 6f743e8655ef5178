package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Recorder collects the bars and marks of a run as it goes. The zero value is ready to use, by one
// goroutine at a time. All times are those of the page.
type Recorder struct {
	Off bool // nothing is collected

	bars []Bar
	open []Bar // those that have begun
	all  []Mark
}

// Mark adds a mark.
func (r *Recorder) Mark(kind Kind, at time.Duration, from, to, format string, args ...any) {
	if r.Off {
		return
	}
	r.all = append(r.all, Mark{Lane: from, To: to, Kind: kind, At: at, Text: fmt.Sprintf(format, args...)})
}

// Begin begins a bar. If a bar with the same lane, kind and text has begun, it goes on.
func (r *Recorder) Begin(kind Kind, at time.Duration, lane, text string) {
	begun := func(b Bar) bool { return b.Lane == lane && b.Kind == kind && b.Text == text }
	if !r.Off && !slices.ContainsFunc(r.open, begun) {
		r.open = append(r.open, Bar{Lane: lane, Kind: kind, From: at, Text: text})
	}
}

// End ends the bars of a lane that have begun and have this kind. If text is not empty, only the
// one with this text ends.
func (r *Recorder) End(kind Kind, at time.Duration, lane, text string) {
	r.open = slices.DeleteFunc(r.open, func(b Bar) bool {
		if b.Lane != lane || b.Kind != kind || text != "" && b.Text != text {
			return false
		}
		b.To = at
		r.bars = append(r.bars, b)
		return true
	})
}

// Span adds a bar.
func (r *Recorder) Span(kind Kind, from, to time.Duration, lane, text string) {
	if r.Off {
		return
	}
	r.bars = append(r.bars, Bar{Lane: lane, Kind: kind, From: from, To: to, Text: text})
}

// Marks returns all marks, in the order in which they were added.
func (r *Recorder) Marks() []Mark { return slices.Clone(r.all) }

// Bars returns all bars by their beginning. Those that have begun and have not ended last until
// end.
func (r *Recorder) Bars(end time.Duration) []Bar {
	all := slices.Clone(r.bars)
	for _, b := range r.open {
		b.To = end
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b Bar) int {
		if a.From != b.From {
			return int(a.From - b.From)
		}
		return strings.Compare(a.Lane+a.Text, b.Lane+b.Text)
	})
	return all
}
