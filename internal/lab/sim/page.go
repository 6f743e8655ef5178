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
	p := timeline.Page{At: w.faultAt, To: w.page(), Lanes: append(keys, networkLane), Marks: w.line.all,
		Bars: append(holds, w.line.finished(w.page())...)}
	for _, m := range w.machines {
		p.Lanes = append(p.Lanes, m.name)
	}
	return p
}

const (
	pageTTLs  = 6               // the large drawing begins at least this many TTLs before the objection
	pageReach = 2 * time.Minute // and at most this long before it, to show the faults
	pageNotes = 400
)

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
	p.From = max(0, p.At-pageTTLs*r.Config.TTL)
	for i, s := range r.Strikes {
		if r.Config.Replay.happens(i) && s.At < p.From && p.At-s.At < pageReach {
			p.From = max(0, s.At-r.Config.TTL/2)
			break
		}
	}
	p.To = min(p.To, p.At+r.Config.TTL)
	for i, s := range r.Strikes { // the last fault before the objection, if the window shows it small
		if near := s.At - max(p.At-s.At, 10*time.Millisecond)/2; r.Config.Replay.happens(i) && s.At <= p.At &&
			p.At-near < (p.At-p.From)/4 {
			p.Near, p.To = near, min(p.To, p.At+(p.At-near)/2)
		}
	}
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
