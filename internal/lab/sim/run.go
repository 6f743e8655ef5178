package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// Report is the result of a run.
type Report struct {
	Config     Config
	Hash       uint64 // hash of all events of the run
	Fault      string // the first broken rule; empty means none
	Transcript []string
	Stats      Stats
	History    []history.Event // events that callers and voters have observed
	Settled    time.Duration   // time from healing until the run was settled
	Longest    Waited          // what took the longest part of that time
	Strikes    []Strike        // the faults that the run has drawn, those that were left out included

	befallen [chances]int
	page     timeline.Page // without title, command and faults; empty if Verbose was not set
}

// Run runs one simulation to its end, or to the first broken rule.
func Run(cfg Config) *Report {
	w := prepare(cfg, (*proc).openSome)
	w.beside = w.second
	w.note("%v", cfg.String())
	for _, m := range w.machines {
		w.after(w.between(0, 2*time.Second), m.ensureUp)
	}
	w.after(w.between(0, 20*time.Second), func() { unleash(w) })
	w.walk()
	w.retell()
	if cfg.Durable && cfg.Grace > 0 {
		w.operators()
	}
	w.pass(w.now+cfg.Virtual, nil)
	return w.finish()
}

// prepare returns the fleet of a run, on which nothing runs yet. Each process that has started is
// passed to the function then.
func prepare(cfg Config, then func(*proc)) *fleet {
	w := newFleet(cfg)
	g := gossiping{w: w}
	if cfg.Insider {
		g.insider = infiltrate(w)
	}
	w.begins(func(p *proc) {
		if !p.dead {
			g.gossip(p)
			p.callSome()
		}
		then(p)
	})
	return w
}

func (w *fleet) finish() *Report {
	var healed progress
	if w.cfg.Heal && w.fault == "" {
		healed = w.settle()
	}
	if w.cfg.Heal && w.fault == "" {
		w.watch.steps.leaseStep(check.LeaseStep{Kind: check.Settled, Left: w.leader().glue.Machine().Counts().Entries})
	}
	w.watch.judge(w.cfg.Heal)
	w.stats.Events = w.events
	r := &Report{
		Config: w.cfg, Hash: w.run.Sum64(), Fault: w.fault, Transcript: w.notes, Stats: w.stats,
		History: w.watch.history, Settled: healed.took, Longest: healed.longest(),
		Strikes: w.struck, befallen: w.befallen,
	}
	if w.verbose {
		r.page = w.shown()
	}
	return r
}
