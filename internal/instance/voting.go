package instance

import (
	"errors"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// This file passes the state of the voters to package cluster, and the decisions of package cluster
// to the log.

func (r *ownReplica) peerLost(instance nodeid.ID) {
	for _, raft := range r.Of(instance) {
		r.log.PeerLost(raft)
	}
}

// linked reports whether instance is this instance, or is connected to it by a stream.
func (n *Instance) linked(instance nodeid.ID) bool {
	return instance == n.instance() || n.port.Linked(instance)
}

// Facts implements cluster.OwnState: it returns this replica's data about the voters if this
// replica leads.
func (l life) Facts() (voters.Facts, uint64, bool) {
	n := l.node()
	r := n.replica.Load()
	if r == nil {
		return voters.Facts{}, 0, false
	}
	own, survey := replica.Own{Settings: n.config.Group, Durable: n.dir != nil, Leaving: n.isLeaving()}, r.log.Survey()
	return r.core.Facts(n.env.clock.Now(), own, &survey, n.linked)
}

// Carry implements cluster.Host: it passes a step to the log. The next call of Facts shows the
// result.
func (l life) Carry(term uint64, step voters.Step, about cluster.Voter) {
	n := l.node()
	r := n.replica.Load()
	if r == nil {
		return
	}
	if change, changes := replica.Change(step, about); changes {
		r.log.Change(term, change)
	} else if step.Kind == voters.Transfer {
		// The next call of Facts shows whether the transfer succeeded.
		n.spawn(func() { _ = r.log.Transfer(r.ctx, step.ID) })
	}
}

// Guide implements cluster.Host.
func (l life) Guide() nodeid.ID { return l.node().client.Status().Asked }

// Leader implements cluster.Host.
func (l life) Leader() (instance nodeid.ID, addr string) {
	n := l.node()
	t := n.view().LeaderOr(n.cluster(), n.client.Status().Leader)
	return t.ID, t.Addr
}

// Prepared implements cluster.Host: it starts a replica at the request of the leader.
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
		if unusable(n.dir != nil, err) {
			n.cluster().Retired(raft)
		}
		return
	}
	if !n.bind(r, group) {
		r.stop()
	}
}

// unusable reports whether a log that could not be opened with err can never be read again, so that
// its raft ID is given up. A full or hanging disk may work again later. A group could not recover
// if a majority gave up their IDs.
func unusable(durable bool, err error) bool {
	return !durable || errors.Is(err, raftlog.ErrCorrupt) || errors.Is(err, storage.ErrEnded)
}

// Removed implements cluster.Host. If the removed replica does not run, because it could not be
// started or has retired, Removed reports its end.
func (l life) Removed(raft uint64) {
	n := l.node()
	if r := n.replica.Load(); r == nil || r.ID != raft {
		n.cluster().Retired(raft)
	}
}

// Dismissed implements cluster.Host. The instance stays a member without a vote.
func (l life) Dismissed(raft uint64) {
	n := l.node()
	n.spawn(func() { // stopping a replica may wait for its disk
		if r := n.replica.Load(); r != nil && r.ID == raft {
			n.dismiss(r)
		}
		n.cluster().Retired(raft)
	})
}

func (n *Instance) dismiss(r *ownReplica) {
	r.stop()
	defer n.leaderKnown()
	n.binding.Lock()
	defer n.binding.Unlock()
	r.retired = true
	if n.replica.CompareAndSwap(r, nil) {
		n.identify(nil, r.Group)
		n.logger.Info("this instance no longer votes; it goes on as a member", "why", "others have taken its place")
	}
}
