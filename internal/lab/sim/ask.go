package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// query is a founding query, a probe for an instance at an address, or a status query to the
// leader.
type query struct {
	body   []byte
	probe  bool
	status *cluster.StatusQuery
}

type reply struct {
	from   nodeid.ID // the instance that has answered, as its TLS key would prove
	body   []byte
	status cluster.StatusReply
}

// Question implements cluster.Owner.
func (p *proc) Question(q founding.Question) {
	asked := p.foundingNow()
	p.put(q.Addr, q.To, query{body: q.Body}, func(now time.Duration, outcome founding.Outcome, r reply) {
		p.core.Result(now, asked, q, outcome, r.from, r.body)
	})
}

// Task implements cluster.Owner.
func (p *proc) Task(e cluster.Task) {
	p.put(e.Addr, e.To, query{body: e.Body, probe: e.Body == nil, status: e.Query},
		func(now time.Duration, outcome founding.Outcome, r reply) {
			if e.Query != nil {
				p.core.StatusReplied(now, e, r.status, outcome == founding.Answered)
			} else {
				p.core.Done(now, e, outcome, r.from, r.body)
			}
		})
}

// queryStatus queries the leader for the status of the voters, and calls the callback with the
// answer, or with nil if no answer arrives within the given time.
func (p *proc) queryStatus(q cluster.Inquiry, within time.Duration, then func(*cluster.VoterStatus)) {
	q.Caller = then
	p.cluster.post(func(clock.Time) { p.core.Inquire(&q) })
	p.later(within, func() {
		p.cluster.post(func(clock.Time) {
			if p.core.GiveUp(&q) {
				then(nil)
			}
		})
	})
}

// put sends a query to the instance at an address. If to is zero, any instance may answer. The
// cluster's owner calls the callback once, after a second at the latest. Meanwhile this instance
// may have begun another incarnation, and the one that is asked may hear a question of the earlier
// one.
func (p *proc) put(addr string, to nodeid.ID, q query, then func(time.Duration, founding.Outcome, reply)) {
	w, asker := p.w, founding.Asker{Instance: p.instance, Addr: p.m.addr}
	answered := false
	finish := func(outcome founding.Outcome, r reply) {
		if answered || p.dead {
			return
		}
		answered = true
		p.cluster.post(func(clock.Time) {
			if p.instance != asker.Instance {
				w.watch.stats.AnsweredLate++
			}
			then(p.foundingNow(), outcome, r)
		})
	}
	w.after(time.Second, func() { finish(founding.Silent, reply{}) })
	w.after(w.net.hop(), func() {
		m := w.at(addr)
		switch {
		case m == nil:
			w.after(w.net.hop(), func() { finish(founding.Refused, reply{}) })
		case !w.net.linked(p.m, m) || w.now < m.pausedUntil || w.befalls(dropped, w.net.drop, p.m.name):
		case m.proc == nil:
			w.after(w.net.hop(), func() { finish(founding.Refused, reply{}) })
		case !to.IsZero() && to != m.proc.instance:
			other := m.proc.instance
			w.after(w.net.hop(), func() { finish(founding.Other, reply{from: other}) })
		default:
			from := m.proc.instance
			if !p.alive(asker.Instance) {
				w.watch.stats.AskedLate++
			}
			m.proc.answer(asker, q, func(r reply) {
				if r.from = from; m.proc == nil || m.proc.instance != from {
					return // the incarnation that was asked has ended
				}
				if w.net.linked(p.m, m) {
					w.after(w.net.hop(), func() { finish(founding.Answered, r) })
				}
			})
		}
	})
}

// answer answers a query. It stores the state of founding before it sends an answer that binds
// this instance.
func (p *proc) answer(from founding.Asker, q query, then func(reply)) {
	if p.insider != nil {
		p.insider.answer(from, q, then)
		return
	}
	p.ofLife(func(time.Duration) {
		switch {
		case q.status != nil:
			then(reply{status: p.core.ReplyStatus(p.foundingNow(), *q.status, p.w.id())})
			return
		case q.probe:
			then(reply{})
			return
		}
		b := p.core.Ask(p.foundingNow(), p.m.wallUnixMS(), from, q.body)
		if p.persist() && b != nil {
			then(reply{body: b})
		}
	})
}
