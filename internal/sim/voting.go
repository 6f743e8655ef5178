package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
)

// This file stands for voting.go in the root package: where the log, the sessions and the cluster room meet about who votes.

// place finds where the instance behind a raft ID is: by the address book, or by the configuration that is applied here.
func (p *proc) place(raft uint64) founding.Voter {
	if v, ok := p.core.Voter(raft); ok || p.replica == nil {
		return v
	}
	return replica.Find(&p.replica.config, raft)
}

// voterIs reports whether the raft ID under which an instance speaks is its own.
func (p *proc) voterIs(from identity) bool {
	if v, ok := p.core.Voter(from.raft); ok {
		return v.Instance == from.instance
	}
	return replica.Names(&p.replica.config, from.raft, from.instance)
}

// linked reports whether this instance is that one, or has a stream with it.
func (p *proc) linked(instance nodeid.ID) bool {
	return instance == p.instance || len(p.links[instance]) > 0
}

// Facts implements cluster.Sight: what this replica sees, if it leads. It has the keeper propose what all instances agree on.
func (p *proc) Facts() (f voters.Facts, term uint64, leads bool) {
	r := p.replica
	if r == nil || r.survey.Term == 0 {
		return f, 0, false
	}
	term = r.survey.Term
	stand := replica.Stand{Term: term, Group: r.settings, Own: p.own(), Durable: p.w.cfg.Durable, Leaving: p.leaving, Rules: r.rules}
	f, wishes := r.accord.Facts(p.m.clock(), stand, &r.survey, &r.registry, p.core.Voter, p.linked)
	for _, o := range f.Replicas {
		if o.Instance.IsZero() {
			p.w.broken("%v surveys %x, which its configuration does not name", p, o.ID)
			return f, 0, false
		}
	}
	if w := wishes.Adopt; w != nil {
		r.keeping.post(func(now clock.Time) { r.keeper.ProposeAdopt(now, term, w.SessionTTL, wishes.Blob, w.Budgets()) })
	}
	if wishes.Raise != 0 {
		r.keeping.post(func(now clock.Time) { r.keeper.ProposeRaise(now, term, wishes.Raise) })
	}
	return f, term, true
}

// carry hands a step to the log. What becomes of it is seen at the next look.
func (p *proc) carry(c lead.Carry) {
	r, step := p.replica, c.Step
	if r == nil {
		return
	}
	p.w.note("%v changes the voters: %v %x, promote %x, demote %x, remove %x: %s", p, step.Kind, step.ID, step.Promote, step.Demote, step.Remove, step.Why)
	p.w.watch.carries(r, step)
	if change, changes := replica.Change(step, c.About); changes {
		r.log.post(func(clock.Time) { r.core.Change(c.Term, change); r.stale = true })
	} else if step.Kind == voters.Transfer {
		r.log.post(func(clock.Time) { _ = r.core.Transfer(step.ID); r.stale = true })
	}
}

// Guide implements cluster.Sight.
func (p *proc) Guide() nodeid.ID { return p.client.Status(p.m.clock()).Asked }

// vouch compares what the record of a new session says of its instance with what the connection proves.
func (p *proc) vouch(from session.Peer, b []byte) (capability [32]byte, ok bool) {
	addr := p.m.addr
	if from != p.instance {
		links := p.links[from]
		if len(links) == 0 {
			return capability, false
		}
		addr = links[len(links)-1].other.p.m.addr
	}
	return replica.Proof{Instance: from, Addr: addr}.Vouch(b)
}

// Leader implements cluster.Sight.
func (p *proc) Leader() (instance nodeid.ID, addr string) {
	if r := p.replica; r != nil {
		if t := r.leader(); !t.Peer.IsZero() {
			return t.Peer, t.Addr
		}
	}
	t := p.client.Status(p.m.clock()).Leader
	return t.Peer, t.Addr
}

func (r *ownReplica) leader() session.Target {
	v := r.p.place(r.role.Leader)
	return session.Target{Peer: v.Instance, Addr: v.Addr}
}

// prepared starts an empty replica, or goes on with what the disk has of it.
func (p *proc) prepared(group, raft uint64) {
	p.w.note("%v is prepared for group %x as %x", p, group, raft)
	if r := p.replica; r != nil {
		r.stop()
		p.replica = nil
	}
	p.replica = joinReplica(p, group, raft)
	p.group = group
}

// removed is told that a configuration without this instance's replica is committed. The replica goes on until it is dismissed.
func (p *proc) removed(raft uint64) {
	r := p.replica
	if r == nil || r.id != raft {
		p.ofLife(func() { p.core.Retired(p.birthNow(), raft) })
		return
	}
	p.w.note("%v is removed: replica %x", p, raft)
}

// dismissed ends a replica that is not needed any more.
func (p *proc) dismissed(raft uint64) {
	if r := p.replica; r != nil && r.id == raft {
		p.w.note("%v ends its replica %x", p, r.id)
		r.stop()
		p.replica = nil
		p.leaderKnown()
	}
	p.ofLife(func() { p.core.Retired(p.birthNow(), raft) })
}

// later runs f after a while, if the process is there; a paused one waits.
func (p *proc) later(d time.Duration, f func()) {
	p.w.after(d, func() {
		switch until := p.m.pausedUntil; {
		case p.dead:
		case p.w.now < until:
			p.later(until-p.w.now, f)
		default:
			f()
		}
	})
}
