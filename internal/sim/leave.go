package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
)

// This file stands for leave.go in the root package: whoever stops a process in good order (rules 12 and 13).

const (
	leaveTime  = 10 * time.Second
	leaderless = 3 * time.Second
	lastWords  = time.Second
	departPoll = 20 * time.Millisecond
)

// leaver is a Leave under way.
type leaver struct {
	p         *proc
	until     time.Duration
	then      func() // the process has ended
	departure cluster.Departure
}

// leave makes no new calls, waits for those that hold, hands over the vote and the lead, closes the session and stops.
func (p *proc) leave(then func()) {
	w := p.w
	if p.leaving {
		return
	}
	w.note("%v leaves", p)
	p.leaving = true
	for _, c := range append([]*call(nil), p.calls...) {
		if c.stage == waits {
			c.leave()
		} else if w.chance(0.8) { // its context has ended too
			w.after(w.between(0, time.Second), c.release)
		}
	}
	p.inClient(func(now clock.Time) { p.client.Leaving(now) })
	l := &leaver{p: p, until: w.now + leaveTime, then: then}
	p.later(0, l.released)
}

// released waits until nothing is held.
func (l *leaver) released() {
	p := l.p
	if p.client.Status(p.m.clock()).Held > 0 && p.w.now < l.until {
		p.later(departPoll, l.released)
		return
	}
	l.depart()
}

// depart waits until the group can do without this instance.
func (l *leaver) depart() {
	p, w := l.p, l.p.w
	sees := l.sees()
	next := l.departure.Next(sees)
	if !next.Ask {
		l.part(next)
		return
	}
	p.consult(cluster.Inquiry{Raft: sees.Raft}, min(leaderless, l.until-w.now), func(c cluster.Counsel, ok bool) {
		said := &c
		if !ok {
			said = nil
		}
		if next := l.departure.Heard(l.sees(), said); !next.Ask {
			w.watch.parts(p, sees.Raft, said)
			l.part(next)
			return
		}
		p.later(departPoll, l.depart)
	})
}

// part ends a departure.
func (l *leaver) part(next cluster.Parting) {
	if next.Lost != "" {
		l.p.w.note("%v leaves with a vote: %s", l.p, next.Lost)
	}
	if next.SeeOff {
		l.seeOff(min(l.p.w.now+lastWords, l.until))
		return
	}
	l.close(next.Alone)
}

// sees is what the instance sees of itself.
func (l *leaver) sees() cluster.Leaver {
	p := l.p
	sees := cluster.Leaver{Member: p.core.Founding.Phase() == founding.Member, TimeOver: p.w.now >= l.until}
	if r := p.replica; r != nil {
		votes := slices.Contains(r.config.Voters, r.id) || slices.Contains(r.config.Outgoing, r.id)
		sees.Raft, sees.Votes, sees.Leads, sees.Company = r.id, votes, r.role.Leading, r.company()
	}
	return sees
}

// seeOff lets a leader that all instances leave go last.
func (l *leaver) seeOff(until time.Duration) {
	if !l.sees().Stays() || l.p.w.now >= until {
		l.close(true)
		return
	}
	l.p.later(departPoll, func() { l.seeOff(until) })
}

// company reports whether another replica of the configuration is connected.
func (r *ownReplica) company() bool {
	for _, v := range replica.Placed(&r.config) {
		if v.Instance != r.p.instance && r.p.linked(v.Instance) {
			return true
		}
	}
	return false
}

// close closes the session, if nothing is held, and stops the process. alone says that nobody may be left to answer.
func (l *leaver) close(alone bool) {
	p, w := l.p, l.p.w
	if alone {
		l.until = min(l.until, w.now+lastWords)
	}
	p.inClient(func(now clock.Time) {
		if p.client.Status(now).Held == 0 {
			_ = p.client.CloseSession(now)
		}
	})
	p.later(0, l.stop)
}

func (l *leaver) stop() {
	p := l.p
	if !p.client.Closed() && p.client.Status(p.m.clock()).Held == 0 && p.w.now < l.until {
		p.later(departPoll, l.stop)
		return
	}
	p.m.crash(false)
	l.then()
}

// leaveAndReturn is a restart in good order.
func (m *machine) leaveAndReturn() {
	if m.proc != nil {
		m.proc.leave(func() { m.w.after(m.w.between(0, 5*time.Second), m.ensureUp) })
	}
}
