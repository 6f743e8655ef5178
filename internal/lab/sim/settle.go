package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/session/client"
)

// progressWithin is the time in which a healed cluster must be one group, unless Config.silence
// adds to it, and the time in which a group must then serve every caller, release all resources,
// and give votes to the right instances. Until then, operators may have to give up a group whose
// disks are lost. An instance that was lost three times in two minutes may have to wait two minutes
// before it gets a vote again.
const progressWithin = 5 * time.Minute

// restsFor is the time for which, in addition to one TTL, nothing may change before the cluster
// counts as settled.
const restsFor = 5 * time.Second

// lacks is what a healed run waits for. An earlier constant prevents that a later one is seen.
type lacks uint8

const (
	forNothing lacks = iota
	forFounding
	forCallers
	forState
	forSettings
	forVoters
	kindsOfWaits
)

func (f lacks) String() string {
	return [kindsOfWaits]string{"nothing", "a founding", "callers", "the state of the leader", "settings",
		"changes of the voters"}[f]
}

// Waited is how long a healed run has waited for one thing.
type Waited struct {
	Time time.Duration
	For  string
}

// progress measures what a healed run waits for, and limits that.
type progress struct {
	silence time.Duration // as Config.silence
	begun   time.Duration
	took    time.Duration

	waited [kindsOfWaits]time.Duration
	seen   time.Duration // when the run was seen last
	now    lacks         // what it has waited for since then
	group  time.Duration // when the wait for a founding was over
}

// sees notes what the run waits for from now on. It reports whether that takes too long.
func (p *progress) sees(now time.Duration, what lacks) (late bool) {
	p.waited[p.now] += now - p.seen
	p.seen, p.now, p.took = now, what, now-p.begun
	if what == forFounding {
		p.group = now
		return p.took > progressWithin+p.silence
	}
	return now-p.group > progressWithin
}

func (p *progress) longest() (l Waited) {
	for what := forNothing + 1; what < kindsOfWaits; what++ {
		if t := p.waited[what]; t > l.Time {
			l = Waited{t, what.String()}
		}
	}
	return l
}

// settle heals the run and requires that every machine becomes a member of one group, that every
// caller is served, and that no resources are left. It returns the time that this takes.
func (w *fleet) settle() progress {
	p := progress{silence: w.cfg.silence(), begun: w.now, seen: w.now, group: w.now}
	w.heal()
	w.watch.calls.served.Heal(w.now)
	w.pass(w.now+2*w.cfg.TTL, nil)
	w.closeSome()
	w.quiet = true
	since, changes := time.Duration(-1), 0
	done := w.pass(p.begun+2*progressWithin+p.silence, func() bool {
		w.must(w.watch.calls.served.Check(w.now))
		what, why := w.unsettled()
		if p.sees(w.now, what) && w.fault == "" {
			w.broken("no progress %v after healing, after a wait of %v for %v: %s", p.took, p.waited[what], what, why)
		}
		if what != forNothing {
			since = -1
			return false
		}
		if since < 0 || w.stats.Changes != changes {
			since, changes = w.now, w.stats.Changes
		}
		return w.now-since > w.cfg.TTL+restsFor // the settled state must last
	})
	if !done && w.fault == "" {
		w.broken("no progress after healing: the settled state does not last")
	}
	return p
}

// unsettled returns what the run waits for, and why.
func (w *fleet) unsettled() (what lacks, why string) {
	group, why := w.unfounded()
	if why != "" {
		return forFounding, why
	}
	sessions, why := w.unserved()
	if why != "" {
		return forCallers, why
	}
	l := w.leader()
	if l == nil {
		return forVoters, fmt.Sprintf("no voter of group %x leads", group)
	}
	if why := w.left(l, sessions); why != "" {
		return forState, why
	}
	if why := w.unadopted(l); why != "" {
		return forSettings, why
	}
	if why := w.misplaced(l); why != "" {
		return forVoters, why
	}
	return forNothing, ""
}

// unfounded returns the group of all machines, or why there is none.
func (w *fleet) unfounded() (group uint64, why string) {
	for _, m := range w.machines {
		p := m.proc
		if m.gone {
			continue
		}
		if p == nil {
			return 0, m.name + " is down"
		}
		if p.core.Founding.Phase() != founding.Member {
			return 0, fmt.Sprintf("%v is %v: %s", p, p.core.Founding.Phase(), p.core.Founding.Waiting())
		}
		if group == 0 {
			group = p.group
		}
		if p.group != group {
			return 0, fmt.Sprintf("%v belongs to group %x, others to %x", p, p.group, group)
		}
	}
	return group, ""
}

// unserved returns the number of sessions, or which of them a caller still uses.
func (w *fleet) unserved() (sessions int, why string) {
	for _, m := range w.machines {
		if m.gone {
			continue
		}
		for _, s := range m.proc.sessions.List() {
			sessions++
			if st := s.status(); st.Phase != client.Attached || st.Requests != 0 || len(s.calls) != 0 || s.closes() {
				return 0, fmt.Sprintf("the client of %v: %+v, %d callers", s, st, len(s.calls))
			}
		}
	}
	return sessions, ""
}

// left returns what the leader still has of callers that are served, or "".
func (w *fleet) left(l *ownReplica, sessions int) string {
	counts := l.glue.Machine().Counts()
	counts.Locks -= l.dataOnly()
	if err := check.Left(l.p.String(), counts, sessions); err != nil {
		return err.Error()
	}
	if k := l.keeper.Status(); k.Sessions != sessions || k.Attachments != sessions || k.Expiring+k.Opens != 0 {
		return fmt.Sprintf("the keeper of the leader %v: %+v", l.p, k)
	}
	return ""
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
