package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// marks collects what the page of a failed run shows, if on is set. All times are those of the
// page, which begin with the run.
type marks struct {
	on    bool
	bars  []timeline.Bar
	open  map[string]timeline.Bar
	all   []timeline.Mark
	ended map[int]time.Duration // when each process ended, by its stream in the history
}

// networkLane is the lane of faults that are not of one machine.
const networkLane = "network"

func (k *marks) add(kind timeline.Kind, at time.Duration, from, to, format string, args ...any) {
	if k.on {
		k.all = append(k.all, timeline.Mark{Lane: from, To: to, Kind: kind, At: at, Text: fmt.Sprintf(format, args...)})
	}
}

// begin begins a bar. If a bar with the same lane and text has begun, it goes on.
func (k *marks) begin(kind timeline.Kind, at time.Duration, lane, text string) {
	if _, begun := k.open[lane+text]; !k.on || begun {
		return
	}
	if k.open == nil {
		k.open = map[string]timeline.Bar{}
	}
	k.open[lane+text] = timeline.Bar{Lane: lane, Kind: kind, From: at, Text: text}
}

func (k *marks) end(at time.Duration, lane, text string) {
	if b, begun := k.open[lane+text]; begun {
		b.To = at
		k.bars = append(k.bars, b)
		delete(k.open, lane+text)
	}
}

func (k *marks) span(kind timeline.Kind, from, to time.Duration, lane, text string) {
	if k.on {
		k.bars = append(k.bars, timeline.Bar{Lane: lane, Kind: kind, From: from, To: to, Text: text})
	}
}

func (k *marks) process(stream int, at time.Duration) {
	if k.ended == nil {
		k.ended = map[int]time.Duration{}
	}
	k.ended[stream] = at
}

// finished returns all bars. Those that are still open end at the given time.
func (k *marks) finished(at time.Duration) []timeline.Bar {
	all := slices.Clone(k.bars)
	for _, b := range k.open {
		b.To = at
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b timeline.Bar) int {
		if a.From != b.From {
			return int(a.From - b.From)
		}
		return strings.Compare(a.Lane+a.Text, b.Lane+b.Text)
	})
	return all
}
