package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
)

// This file stands for voting.go and registry.go in the root package: where the log, the sessions and the cluster room meet about who votes.

// placed decodes who the replicas of a configuration are.
func placed(c *raftlog.Configuration) []founding.Voter {
	list := make([]founding.Voter, 0, len(c.Members))
	for _, m := range c.Members {
		v, err := founding.DecodePlace(m.Context)
		if err != nil {
			v = founding.Voter{}
		}
		v.Raft = m.ID
		v.Learner = !slices.Contains(c.Voters, m.ID) && !slices.Contains(c.Outgoing, m.ID)
		list = append(list, v)
	}
	return list
}

// place finds where the instance behind a raft ID is: by the address book, or by the configuration that is applied here.
func (p *proc) place(raft uint64) founding.Voter {
	if v, ok := p.book.Find(raft); ok || p.replica == nil {
		return v
	}
	for _, v := range placed(&p.replica.config) {
		if v.Raft == raft {
			return v
		}
	}
	return founding.Voter{}
}

// voterIs reports whether the raft ID under which an instance speaks is its own.
func (p *proc) voterIs(from identity) bool {
	if v, ok := p.book.Find(from.raft); ok {
		return v.Instance == from.instance
	}
	for _, m := range p.replica.config.Members {
		if m.ID == from.raft {
			v, err := founding.DecodePlace(m.Context)
			return err == nil && v.Instance == from.instance
		}
	}
	return false
}

// linked reports whether this instance is that one, or has a stream with it.
func (p *proc) linked(instance nodeid.ID) bool {
	return instance == p.instance || len(p.links[instance]) > 0
}

// facts are what this replica sees, if it leads.
func (p *proc) facts() (f voters.Facts, term uint64, leads bool) {
	r := p.replica
	if r == nil || r.survey.Term == 0 {
		return f, 0, false
	}
	s, settings := &r.survey, &p.w.cfg
	f = voters.Facts{
		Self: s.Self, Pending: s.Pending,
		Settings: voters.Settings{Voters: settings.Voters, Founders: settings.Founders, Durable: settings.Durable},
		Config:   voters.Config{Voters: s.Config.Voters, Outgoing: s.Config.Outgoing, Learners: s.Config.Learners},
	}
	places := placed(&s.Config)
	for _, o := range s.Replicas {
		at := slices.IndexFunc(places, func(v founding.Voter) bool { return v.Raft == o.ID })
		if at < 0 {
			p.w.broken("%v surveys %x, which its configuration does not name", p, o.ID)
			return f, 0, false
		}
		v := places[at]
		if newer, ok := p.book.Find(o.ID); ok && newer.Instance == v.Instance {
			v = newer
		}
		f.Replicas = append(f.Replicas, voters.Replica{
			ID: o.ID, Instance: v.Instance, Addr: v.Addr, Linked: p.linked(v.Instance), Active: o.Active, SilentFor: o.SilentFor,
			CaughtUp: o.CaughtUp, Full: o.Full, Settled: o.Settled,
		})
	}
	r.wanted = true
	for _, s := range r.sessions {
		o := decodeRecord(s.Record)
		if o.instance.IsZero() || o.instance != s.Opener.Instance {
			continue
		}
		f.Registered = append(f.Registered, voters.Registered{
			Instance: o.instance, Name: o.name, Zone: o.zone, Addr: o.addr, Order: uint64(s.ID), Leaving: s.Leaving, Session: true,
			Reachable: p.linked(o.instance),
		})
	}
	return f, s.Term, true
}

// carry hands a step to the log. What becomes of it is seen at the next look.
func (p *proc) carry(term uint64, step voters.Step, about founding.Voter) {
	r := p.replica
	if r == nil {
		return
	}
	p.w.watch.carries(r, step)
	change := raftlog.Change{Promote: step.Promote, Demote: step.Demote, Remove: step.Remove}
	switch step.Kind {
	case voters.AddLearner:
		change = raftlog.Change{Add: &raftlog.Member{ID: step.ID, Context: founding.AppendPlace(nil, about)}}
	case voters.Transfer:
		r.log.post(func(clock.Time) { _ = r.core.Transfer(step.ID); r.stale = true })
		return
	}
	r.log.post(func(clock.Time) { r.core.Change(term, change); r.stale = true })
}

// guide is the leader to which this instance is attached, or about to be.
func (p *proc) guide() nodeid.ID { return p.client.Status(p.m.clock()).Asked }

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
	r := decodeRecord(b)
	return capability, (r.instance.IsZero() || r.instance == from) && (r.addr == "" || r.addr == addr)
}

// leader returns who leads the group as far as this instance knows.
func (p *proc) leader() session.Target {
	if r := p.replica; r != nil {
		if t := r.leader(); !t.Peer.IsZero() {
			return t
		}
	}
	return p.client.Status(p.m.clock()).Leader
}

func (r *replica) leader() session.Target {
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

const settlePoll = 100 * time.Millisecond

// removed is told that a configuration without this instance's replica is committed. The replica lingers until a leader says that it may stop.
func (p *proc) removed(raft uint64) {
	r := p.replica
	if r == nil || r.id != raft {
		p.ofLife(func() { p.birth.Retired(p.birthNow(), raft) })
		return
	}
	p.w.note("%v is removed: replica %x", p, raft)
	var ask func()
	ask = func() {
		if p.replica != r || r.log.gone() {
			return
		}
		p.consult(func() uint64 { return raft }, time.Hour, func(c counsel, ok bool) {
			switch {
			case p.replica != r || r.log.gone():
			case ok && c.mayStop:
				p.dismiss(r)
				p.ofLife(func() { p.birth.Retired(p.birthNow(), raft) })
			default:
				p.later(settlePoll, ask)
			}
		})
	}
	ask()
}

// dismiss ends a replica that is not wanted any more.
func (p *proc) dismiss(r *replica) {
	if r.log.gone() {
		return
	}
	p.w.note("%v ends its replica %x", p, r.id)
	r.stop()
	if p.replica == r {
		p.replica = nil
	}
	p.leaderKnown()
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

// record is what an instance says of itself when it opens its session.
type record struct {
	instance         nodeid.ID
	name, zone, addr string
}

func (r record) append(b []byte) []byte {
	b = append(b, r.instance[:]...)
	for _, s := range [...]string{r.name, r.zone, r.addr} {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

// decodeRecord returns the zero record for one that cannot be read.
func decodeRecord(b []byte) (r record) {
	if len(b) < nodeid.Size {
		return record{}
	}
	r.instance, b = nodeid.ID(b[:nodeid.Size]), b[nodeid.Size:]
	for _, s := range [...]*string{&r.name, &r.zone, &r.addr} {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return record{}
		}
		n := 1 + int(b[0])
		*s, b = string(b[1:n]), b[n:]
	}
	return r
}

// registers takes a result that may have changed who has a session.
func (r *replica) registers(result *lockfsm.Result) {
	switch result.Kind {
	case lockfsm.Open, lockfsm.Leaving, lockfsm.Close, lockfsm.Expire:
		r.changed = true
	}
}

// publish lets the cluster room see who has a session, if that has changed and the last list was read.
func (r *replica) publish() {
	if r.changed && r.wanted {
		r.changed, r.wanted = false, false
		r.sessions = living(r.machine.Sessions())
		r.p.look()
	}
}

// living leaves out the sessions that have expired and are kept only for the delay of their locks.
func living(all []lockfsm.SessionInfo) []lockfsm.SessionInfo {
	return slices.DeleteFunc(all, func(s lockfsm.SessionInfo) bool { return s.Gone })
}
