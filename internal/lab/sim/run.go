package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/session/client"
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
	Strikes    []Strike        // the faults that the run has drawn, those that were left out included

	befallen [chances]int
	page     timeline.Page // without title, command and faults; empty if Verbose was not set
}

// progressWithin is the time in which a healed cluster must have served every caller, released all
// resources, and given votes to the right instances. Until then, a new group may have to be
// founded, and operators may have to give up a group whose disks are lost. An instance that was
// lost three times in two minutes may have to wait two minutes before it gets a vote again.
const progressWithin = 5 * time.Minute

// restsFor is the time for which, in addition to one TTL, nothing may change before the cluster
// counts as settled.
const restsFor = 5 * time.Second

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
	settled := time.Duration(0)
	if w.cfg.Heal && w.fault == "" {
		settled = w.settle()
	}
	if w.cfg.Heal && w.fault == "" {
		w.watch.steps.leaseStep(check.LeaseStep{Kind: check.Settled, Left: w.leader().glue.Machine().Counts().Entries})
	}
	w.watch.judge(w.cfg.Heal)
	w.stats.Events = w.events
	r := &Report{
		Config: w.cfg, Hash: w.run.Sum64(), Fault: w.fault, Transcript: w.notes, Stats: w.stats,
		History: w.watch.history, Settled: settled, Strikes: w.struck, befallen: w.befallen,
	}
	if w.verbose {
		r.page = w.shown()
	}
	return r
}

// settle heals the run and requires that every machine becomes a member of one group, that every
// caller is served, and that no resources are left. It returns the time that this takes.
func (w *fleet) settle() time.Duration {
	begun := w.now
	w.heal()
	w.watch.calls.served.Heal(w.now)
	w.pass(w.now+2*w.cfg.TTL, nil)
	w.closeSome()
	w.quiet = true
	since, changes := time.Duration(-1), 0
	done := w.pass(begun+progressWithin+w.cfg.silence(), func() bool {
		w.must(w.watch.calls.served.Check(w.now))
		if w.unsettled() != "" {
			since = -1
			return false
		}
		if since < 0 || w.stats.Changes != changes {
			since, changes = w.now, w.stats.Changes
		}
		return w.now-since > w.cfg.TTL+restsFor // the settled state must last
	})
	if !done && w.fault == "" {
		w.broken("no progress after healing: %s", w.unsettled())
	}
	return w.now - begun
}

// unsettled returns a reason why the run is not settled, or "".
func (w *fleet) unsettled() string {
	var group uint64
	sessions := 0
	for _, m := range w.machines {
		p := m.proc
		if m.gone {
			continue
		}
		if p == nil {
			return m.name + " is down"
		}
		if p.core.Founding.Phase() != founding.Member {
			return fmt.Sprintf("%v is %v: %s", p, p.core.Founding.Phase(), p.core.Founding.Waiting())
		}
		if group == 0 {
			group = p.group
		}
		if p.group != group {
			return fmt.Sprintf("%v belongs to group %x, others to %x", p, p.group, group)
		}
		for _, s := range p.sessions.List() {
			sessions++
			if st := s.status(); st.Phase != client.Attached || st.Requests != 0 || len(s.calls) != 0 || s.closes() {
				return fmt.Sprintf("the client of %v: %+v, %d callers", s, st, len(s.calls))
			}
		}
	}
	l := w.leader()
	if l == nil {
		return "no voter leads"
	}
	counts := l.glue.Machine().Counts()
	counts.Locks -= l.dataOnly()
	if err := check.Left(l.p.String(), counts, sessions); err != nil {
		return err.Error()
	}
	if k := l.keeper.Status(); k.Sessions != sessions || k.Attachments != sessions || k.Expiring+k.Opens != 0 {
		return fmt.Sprintf("the keeper of the leader %v: %+v", l.p, k)
	}
	if why := w.unadopted(l); why != "" {
		return why
	}
	return w.misplaced(l)
}

// heal ends all faults for the rest of the run. A paused machine continues only at the end of its
// pause.
func (w *fleet) heal() {
	w.note("all trouble is over")
	w.calm = true
	w.odds = odds{}
	w.net.mend()
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 {
			m.gone = false // a new group needs all machines
		}
		m.dns = m.addr
		w.after(w.between(0, time.Second), m.ensureUp)
	}
}
