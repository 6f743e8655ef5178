package cluster

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
)

const (
	// silentAfter is how long a voter is silent before the leader logs it. A shorter silence is
	// common on a busy machine, and while a process restarts.
	silentAfter = 3 * time.Second
	// backWithin is how long a successor of a voter that has ended may take to appear.
	backWithin = 5 * time.Second
	maxLosses  = 16
)

// alarms decides which lines a leader logs about its reports: one when a voter is lost or surplus
// instances appear, and one when that is over.
type alarms struct {
	losses  []loss
	votes   int // Report.Votes of the previous report
	surplus int // the logged number of running instances; zero means none
}

// loss is a voter that was missing in a report. It is over when the voter is not missing, and as
// many instances vote as before: the voter is back, or has a successor.
type loss struct {
	voters.Missing
	since  time.Duration
	votes  int // number of voters before the loss
	logged bool
}

type alarm struct {
	level slog.Level
	text  string
	attrs []any
}

// look returns the lines for the present report. It keeps its state while this instance does not
// lead, when there is no report.
func (a *alarms) look(now time.Duration, r *voters.Report) (lines []alarm) {
	if r == nil {
		return nil
	}
	for _, m := range r.Missing {
		if !slices.ContainsFunc(a.losses, func(l loss) bool { return l.ID == m.ID }) {
			a.losses = append(a.losses[max(0, len(a.losses)-maxLosses+1):],
				loss{Missing: m, since: now - m.SilentFor, votes: max(a.votes, r.Votes)})
		}
	}
	a.votes = r.Votes
	a.losses = slices.DeleteFunc(a.losses, func(l loss) bool { return l.over(r, &lines) })
	for i := range a.losses {
		a.losses[i].log(now, r, &lines)
	}
	switch s := r.Surplus; {
	case s != nil && s.Running > a.surplus:
		lines = append(lines, alarm{slog.LevelWarn, s.String(), []any{"for_at_least", s.For.Round(time.Second),
			"next", s.Next()}})
		a.surplus = s.Running
	case s == nil && a.surplus > 0:
		lines = append(lines, alarm{slog.LevelInfo, "no more instances run than Replicas says", nil})
		a.surplus = 0
	}
	return lines
}

func (l *loss) missing(r *voters.Report) bool {
	return slices.ContainsFunc(r.Missing, func(m voters.Missing) bool { return m.ID == l.ID })
}

func (l *loss) over(r *voters.Report, lines *[]alarm) bool {
	over := !l.missing(r) && r.Votes >= l.votes
	if over && l.logged {
		*lines = append(*lines, alarm{slog.LevelInfo, "the voter is back, or another instance has taken its place",
			[]any{"voter", l.label(), "instance", l.Instance}})
	}
	return over
}

func (l *loss) log(now time.Duration, r *voters.Report, lines *[]alarm) {
	text, gone := "a voter is silent", now-l.since
	switch {
	case l.logged, gone < silentAfter:
		return
	case !l.missing(r):
		if gone < backWithin {
			return
		}
		text = "a voter has ended or fallen silent and has lost its vote, and no instance has taken its place"
	}
	l.logged = true
	*lines = append(*lines, alarm{slog.LevelWarn, text, []any{"voter", l.label(), "instance", l.Instance,
		"for_at_least", gone.Round(time.Second / 10),
		"next", "if it does not run, start it again, with its directory if it has one; if it reports a fault of its " +
			"disk, mend that; otherwise check the network between it and this instance; stop no other instance " +
			"before Node.Health permits it"}})
}

func (l *loss) label() string { return cmp.Or(l.Name, l.Instance.String()) }
