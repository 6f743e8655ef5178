package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
)

const leaveTime = 10 * time.Second

type leaver struct {
	h         *host
	p         *proc
	until     time.Duration
	then      func() // called when the process has ended
	departure cluster.Departure
}

// leave simulates Node.Leave. It ends the calls of the process, takes the steps of a departure,
// stops the process, and then calls the callback.
func (m *host) leave(then func()) {
	p, w := m.proc, m.w
	if p.leaving {
		return
	}
	w.note("%v leaves", p)
	p.leaving = true
	var callers []*caller
	for _, s := range p.sessions.List() {
		callers = append(callers, s.callers...)
	}
	for _, c := range callers {
		if c.stage == waits {
			c.leave()
		} else if w.chance(0.8) { // some holders do not release their locks
			w.after(w.between(0, time.Second), c.release)
		}
	}
	p.sessions.Leaving()
	l := &leaver{h: m, p: p, until: w.now + leaveTime, then: then}
	p.later(0, l.next)
}

func (l *leaver) next() {
	sees := l.sees()
	switch l.departure.Next(l.p.w.now, sees) {
	case cluster.Release, cluster.Pause:
		l.p.later(cluster.DepartPoll, l.next)
	case cluster.Ask:
		l.p.queryStatus(cluster.Inquiry{Raft: sees.Raft}, min(cluster.Leaderless, l.until-l.p.w.now),
			func(said *cluster.VoterStatus) {
				l.p.w.watch.voters.parts(l.p.life, sees.Raft, said)
				l.departure.Heard(l.p.w.now, l.sees(), said)
				l.p.later(0, l.next)
			})
	case cluster.Part:
		l.part()
	}
}

func (l *leaver) sees() cluster.Leaver {
	p := l.p
	sees := cluster.Leaver{Held: l.holds(), Member: p.core.Founding.Phase() == founding.Member,
		TimeOver: p.w.now >= l.until}
	if r := p.replica; r != nil {
		sees.Raft, sees.Votes, sees.Leads, sees.OthersConnected = r.ID, r.Votes(), r.Role().Leading,
			r.OthersConnected(p.instance, p.linked)
	}
	return sees
}

func (l *leaver) holds() bool { return l.p.held() > 0 }

// The method part closes the sessions in which no lock is held, and stops the process.
func (l *leaver) part() {
	p := l.p
	if why := l.departure.Lost; why != "" {
		p.w.note("%v leaves with a vote: %s", p, why)
	}
	if l.departure.Alone {
		l.until = min(l.until, p.w.now+cluster.FinalWait)
	}
	for _, s := range p.sessions.List() {
		s.inClient(func(now clock.Time) { _ = s.closeSession(now) }) // fails if a lock is held
	}
	p.later(0, l.stop)
}

func (l *leaver) stop() {
	p := l.p
	open := slices.ContainsFunc(p.sessions.List(), func(s *ownClient) bool { return !s.core.Closed() })
	if open && !l.holds() && p.w.now < l.until {
		p.later(cluster.DepartPoll, l.stop)
		return
	}
	l.h.crash(false)
	l.then()
}

func (m *host) leaveAndReturn() {
	if m.proc != nil {
		m.leave(func() { m.w.after(m.w.between(0, 5*time.Second), m.ensureUp) })
	}
}
