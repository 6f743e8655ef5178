package mortise

import (
	"errors"
	"slices"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/raftlog"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is where the log, the sessions and the cluster room meet about who votes: what the leader sees goes to the cluster room,
// which decides, and what it has decided goes to the log.

// placed decodes who the replicas of a configuration are. One whose place cannot be read is in the list with its raft ID alone.
func placed(c *raftlog.Configuration) []cluster.Voter {
	list := make([]cluster.Voter, 0, len(c.Members))
	for _, m := range c.Members {
		v, err := founding.DecodePlace(m.Context)
		if err != nil {
			v = cluster.Voter{}
		}
		v.Raft = m.ID
		v.Learner = !slices.Contains(c.Voters, m.ID) && !slices.Contains(c.Outgoing, m.ID)
		list = append(list, v)
	}
	return list
}

// votes reports whether this replica is a voter of the configuration that is applied here.
func (r *replica) votes() bool {
	c := r.config.Load()
	return slices.Contains(c.Voters, r.id) || slices.Contains(c.Outgoing, r.id)
}

// isNamed reports whether the configuration that is applied here has this replica, with a vote or without.
func (r *replica) isNamed() bool {
	return slices.ContainsFunc(r.config.Load().Members, func(m raftlog.Member) bool { return m.ID == r.id })
}

// names reports whether the configuration that is applied here names the instance under that raft ID.
func (r *replica) names(raft uint64, instance nodeid.ID) bool {
	for _, m := range r.config.Load().Members {
		if m.ID == raft {
			v, err := founding.DecodePlace(m.Context)
			return err == nil && v.Instance == instance
		}
	}
	return false
}

// gone tells the log that the replica of an instance has retired. The instance may say already that it has no raft ID any more, so it is
// found by who it is.
func (r *replica) gone(instance nodeid.ID) {
	for _, v := range placed(r.config.Load()) {
		if v.Instance == instance {
			r.log.Gone(v.Raft)
		}
	}
}

// linked reports whether this instance is that one, or has a stream with it.
func (n *Node) linked(instance nodeid.ID) bool {
	return instance == n.instance() || n.port.Linked(instance)
}

// Facts implements cluster.Host: what this replica sees, if it leads.
func (l life) Facts() (voters.Facts, uint64, bool) {
	n := l.node()
	r := n.replica.Load()
	if r == nil {
		return voters.Facts{}, 0, false
	}
	s := r.log.Survey()
	if s.Term == 0 {
		return voters.Facts{}, 0, false
	}
	f := voters.Facts{
		Self: s.Self, Pending: s.Pending, Settings: r.voting(),
		Config: voters.Config{Voters: s.Config.Voters, Outgoing: s.Config.Outgoing, Learners: s.Config.Learners},
	}
	where := map[uint64]cluster.Voter{}
	for _, v := range placed(&s.Config) {
		where[v.Raft] = v
		if newer, ok := n.cluster().Voter(v.Raft); ok && newer.Instance == v.Instance {
			where[v.Raft] = newer
		}
	}
	for _, p := range s.Replicas {
		v := where[p.ID]
		f.Replicas = append(f.Replicas, voters.Replica{
			ID: p.ID, Instance: v.Instance, Addr: v.Addr, Linked: n.linked(v.Instance), Active: p.Active, SilentFor: p.SilentFor,
			CaughtUp: p.CaughtUp, Full: p.Full, Settled: p.Settled,
		})
	}
	r.registry.read(&f, n.linked)
	r.agreeOn(s.Term, &f, &r.registry.census)
	return f, s.Term, true
}

// Carry implements cluster.Host: it hands a step to the log. What becomes of it is seen at the next look.
func (l life) Carry(term uint64, step voters.Step, about cluster.Voter) {
	n := l.node()
	r := n.replica.Load()
	if r == nil {
		return
	}
	switch step.Kind {
	case voters.AddLearner:
		r.log.Change(term, raftlog.Change{Add: &raftlog.Member{ID: step.ID, Context: founding.AppendPlace(nil, about)}})
	case voters.Change:
		r.log.Change(term, raftlog.Change{Promote: step.Promote, Demote: step.Demote, Remove: step.Remove})
	case voters.Transfer:
		n.spawn(func() { _ = r.log.Transfer(r.ctx, step.ID) }) // whether it worked is seen at the next look
	}
}

// Guide implements cluster.Host.
func (l life) Guide() nodeid.ID { return l.node().client.Status().Asked }

// Leader implements cluster.Host.
func (l life) Leader() (instance nodeid.ID, addr string) {
	n := l.node()
	if r := n.replica.Load(); r != nil {
		if t := n.target(r.role.Load().Leader); !t.Peer.IsZero() {
			return t.Peer, t.Addr
		}
	}
	t := n.client.Status().Leader
	return t.Peer, t.Addr
}

// Prepared implements cluster.Host: the leader has asked this instance to start a replica.
func (l life) Prepared(group, raft uint64) {
	n := l.node()
	if r := n.replica.Load(); r != nil {
		r.stop()
		n.bind(nil, group)
		n.leaderKnown()
	}
	r, err := joinReplica(n, group, raft)
	if err != nil {
		n.replicaFailed(err)
		n.unusable(raft, err)
		return
	}
	if !n.bind(r, group) {
		r.stop()
	}
}

// unusable gives a raft ID up whose log can never be read again. A disk that is full or does not answer is no reason: the next start may find
// it well, and of a majority that were given up at once the group could not recover.
func (n *Node) unusable(raft uint64, err error) {
	if n.dir == nil || errors.Is(err, raftlog.ErrCorrupt) || errors.Is(err, raftlog.ErrEnded) {
		n.cluster().Retired(raft)
	}
}

// Removed implements cluster.Host: a configuration without this instance's replica is committed. Its vote may still be needed, by a voter
// that has not heard that the one before is over: so it goes on, also in the next start with a directory, until the leader says that it may
// stop (rule 13), for a leaver and for one that was replaced alike. The instance stays a plain member.
func (l life) Removed(raft uint64) {
	n := l.node()
	r := n.replica.Load()
	if r == nil || r.id != raft {
		n.cluster().Retired(raft) // it could not be started, or has stopped by itself
		return
	}
	n.spawn(func() {
		for r.ctx.Err() == nil {
			counsel, err := n.cluster().ConsultFor(r.ctx, raft)
			if err == nil && counsel.MayStop {
				n.dismiss(r)
				n.cluster().Retired(raft)
				return
			}
			pause(r.ctx, settlePoll)
		}
	})
}

// dismiss ends a replica that is not wanted any more.
func (n *Node) dismiss(r *replica) {
	r.stop()
	defer n.leaderKnown() // what it said last was true of itself
	n.binding.Lock()
	defer n.binding.Unlock()
	r.retired = true
	if n.replica.CompareAndSwap(r, nil) {
		n.identify(nil, r.group)
		n.logger.Info("this instance no longer votes; it goes on as a member", "why", "others have taken its place")
	}
}
