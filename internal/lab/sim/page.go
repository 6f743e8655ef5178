package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// shown returns what the run shows, until its end. The lanes are the keys, the network and the
// machines.
func (w *fleet) shown() timeline.Page {
	keys, holds := timeline.Holds(w.watch.history, w.line.ended, time.Hour, w.page())
	p := timeline.Page{At: w.faultAt, To: w.page(), Lanes: append(keys, networkLane), Marks: w.line.Marks(),
		Bars: append(holds, w.line.Bars(w.page())...)}
	for _, m := range w.machines {
		p.Lanes = append(p.Lanes, m.name)
	}
	return p
}

const pageNotes = 400 // lines of the transcript

// Page returns the page of a run with Config.Verbose, which has failed. It names the faults that
// have happened, and the window shows the last of them.
func (r *Report) Page(title, command string, minimal bool, faults, remarks []string) timeline.Page {
	p := r.page
	p.Title, p.Command, p.Verdict, p.Minimal, p.Faults = title, command, r.Fault, minimal, faults
	if p.At == 0 { // the second judge has objected, after the run
		p.At = p.To
	}
	p.Remarks = append([]string{r.Config.String(),
		"In n2/6c67, n2 is the machine and 6c67 the end of the instance ID, which is new after each start."}, remarks...)
	var times []time.Duration
	for i, s := range r.Strikes {
		if r.Config.Replay.happens(i) {
			times = append(times, s.At)
		}
	}
	p.Focus(r.Config.TTL, times)
	p.Notes = r.Transcript[max(0, len(r.Transcript)-pageNotes):]
	return p
}

// name returns the name of a strike, and what it did if the run had Config.Verbose.
func (s *Strike) name(i int) string {
	text := s.Text
	if text == "" {
		text = "a fault"
	}
	return fmt.Sprintf("fault %d at %.3f s: %s", i, s.At.Seconds(), text)
}
