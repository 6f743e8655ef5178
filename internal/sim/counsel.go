package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
)

// This file stands for counsel.go of the cluster room: what a leader says about its voters to whoever asks.

// consultation is the question for it.
type consultation struct {
	group    uint64
	instance nodeid.ID
	raft     uint64
}

const (
	consultEvery = 100 * time.Millisecond
	consultHops  = 3
)

// asking is a consultation under way.
type asking struct {
	p    *proc
	raft func() uint64
	then func(lead.Counsel, bool)
	over bool
	try  int
}

// consult asks until somebody who leads has answered, and calls then; with false if that takes longer than within.
func (p *proc) consult(raft func() uint64, within time.Duration, then func(lead.Counsel, bool)) {
	a := &asking{p: p, raft: raft, then: then}
	p.later(within, func() { a.end(lead.Counsel{}, false) })
	a.attempt()
}

func (a *asking) end(c lead.Counsel, ok bool) {
	if !a.over && !a.p.dead {
		a.over = true
		a.then(c, ok)
	}
}

// attempt asks once.
func (a *asking) attempt() {
	p := a.p
	p.cluster.post(func(clock.Time) {
		if a.over {
			return
		}
		defer func() { a.try++ }()
		q := consultation{group: p.birth.Group(), instance: p.instance, raft: a.raft()}
		if c, leads := p.counsel(q); leads {
			p.later(0, func() { a.end(c, true) })
			return
		}
		if to := p.advisor(a.try); to.Addr != "" && to.Peer != p.instance {
			a.follow(q, to, consultHops)
			return
		}
		a.again()
	})
}

func (a *asking) again() {
	a.p.later(a.p.w.between(consultEvery, consultEvery*3/2), a.attempt)
}

// follow puts the question, and again to whom the asked names instead, a few times.
func (a *asking) follow(q consultation, to session.Target, hops int) {
	a.p.put(to.Addr, to.Peer, query{consult: &q}, func(outcome founding.Outcome, r reply) {
		switch {
		case a.over || a.p.dead:
		case outcome != founding.Answered:
			a.again()
		case r.counsel != nil:
			a.end(*r.counsel, true)
		case r.elsewhere.Peer.IsZero() || r.elsewhere.Peer == to.Peer || hops == 0:
			a.again()
		default:
			a.follow(q, r.elsewhere, hops-1)
		}
	})
}

// advisor is who leads as far as is known here, and by turns some voter, since that may be out of date.
func (p *proc) advisor(try int) session.Target {
	if p.birth.Phase() != founding.Member {
		return session.Target{}
	}
	t := p.leader()
	if t.Peer == p.instance {
		t = session.Target{}
	}
	others := slices.DeleteFunc(p.book.Voters(), func(v founding.Voter) bool { return v.Learner || v.Instance == p.instance })
	if len(others) == 0 || !t.Peer.IsZero() && try%2 == 0 {
		return t
	}
	v := others[p.w.rng.IntN(len(others))]
	return session.Target{Peer: v.Instance, Addr: v.Addr}
}

// counsel is what this instance says if it leads, from a look that is not old.
func (p *proc) counsel(q consultation) (lead.Counsel, bool) {
	if !p.settled() || q.group != p.birth.Group() {
		return lead.Counsel{}, false
	}
	if now := p.birthNow(); !p.lead.Fresh(now) {
		p.observe(now)
	}
	return p.lead.Counsel(q.raft, q.instance)
}

// advise answers what other instances ask for the sake of the voters, and reports whether the question is of that kind.
func (p *proc) advise(q query) (reply, bool) {
	if q.probe {
		return reply{}, true
	}
	if q.consult == nil {
		return reply{}, false
	}
	if c, leads := p.counsel(*q.consult); leads {
		return reply{counsel: &c}, true
	}
	var other session.Target
	if q.consult.group == p.birth.Group() && p.birth.Phase() == founding.Member {
		if t := p.leader(); t.Peer != p.instance && t.Peer != q.consult.instance {
			other = t
		}
	}
	return reply{elsewhere: other}, true
}
