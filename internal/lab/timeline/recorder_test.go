package timeline_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// TestRecorder begins and ends bars in each way.
func TestRecorder(t *testing.T) {
	const s = time.Second
	for _, off := range []bool{false, true} {
		r := timeline.Recorder{Off: off}
		r.Begin(timeline.Runs, 1*s, "a", "runs")
		r.Begin(timeline.Runs, 2*s, "a", "runs") // goes on
		r.Begin(timeline.Runs, 2*s, "b", "runs")
		r.Begin(timeline.Cut, 3*s, "a", "from b")
		r.Begin(timeline.Cut, 3*s, "a", "from c")
		r.End(timeline.Cut, 4*s, "a", "from c")
		r.End(timeline.Leads, 5*s, "a", "")
		r.End(timeline.Runs, 6*s, "a", "")
		r.Span(timeline.Paused, 0, 1*s, "b", "still")
		r.Mark(timeline.Lost, 7*s, "a", "b", "frame %d", 8)
		bars := []timeline.Bar{
			{Lane: "b", Kind: timeline.Paused, From: 0, To: 1 * s, Text: "still"},
			{Lane: "a", Kind: timeline.Runs, From: 1 * s, To: 6 * s, Text: "runs"},
			{Lane: "b", Kind: timeline.Runs, From: 2 * s, To: 9 * s, Text: "runs"},
			{Lane: "a", Kind: timeline.Cut, From: 3 * s, To: 9 * s, Text: "from b"},
			{Lane: "a", Kind: timeline.Cut, From: 3 * s, To: 4 * s, Text: "from c"},
		}
		marks := []timeline.Mark{{Lane: "a", To: "b", Kind: timeline.Lost, At: 7 * s, Text: "frame 8"}}
		if off {
			bars, marks = nil, nil
		}
		if got := r.Bars(9 * s); !slices.Equal(got, bars) {
			t.Errorf("off %v: bars %v, want %v", off, got, bars)
		}
		if got := r.Marks(); !slices.Equal(got, marks) {
			t.Errorf("off %v: marks %v, want %v", off, got, marks)
		}
	}
}

// TestFocus has an objection at 100 s, a TTL of 10 s, and a run of 200 s.
func TestFocus(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name           string
		faults         []time.Duration
		from, to, near time.Duration
	}{
		{"no fault", nil, 40 * s, 110 * s, 0},
		{"a fault in the window", []time.Duration{50 * s}, 40 * s, 110 * s, 0},
		{"a fault before the window", []time.Duration{30 * s}, 25 * s, 110 * s, 0},
		{"a fault too long ago, and one before the window", []time.Duration{-30 * s, 30 * s, 35 * s}, 25 * s, 110 * s, 0},
		{"a fault just before", []time.Duration{98 * s}, 40 * s, 100*s + 1500*time.Millisecond, 97 * s},
		{"a fault at the objection", []time.Duration{100 * s}, 40 * s, 100*s + 2500*time.Microsecond,
			100*s - 5*time.Millisecond},
		{"a later fault", []time.Duration{101 * s}, 40 * s, 110 * s, 0},
	} {
		p := timeline.Page{At: 100 * s, To: 200 * s}
		p.Focus(10*s, c.faults)
		if p.From != c.from || p.To != c.to || p.Near != c.near {
			t.Errorf("%s: from %v to %v, near %v, want %v, %v, %v", c.name, p.From, p.To, p.Near, c.from, c.to, c.near)
		}
	}
}
