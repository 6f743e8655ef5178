package cluster

import (
	"slices"
	"sync"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The methods below pass reports of the host and the log to the core. Reports of an earlier
// incarnation are dropped.

// Configured records that this instance's log has applied a configuration of the group. The
// argument voters contains the replicas of this configuration, including learners, and at is the
// log index of its entry.
func (c *Cluster) Configured(group, at uint64, voters []Voter) {
	voters = slices.Clone(voters)
	c.in.postOfLife(func() { c.own.core.Configured(c.now(), group, at, voters) })
}

// Applied records the configuration that this instance's log has applied, with both halves if the
// configuration is joint. A group is given up only if no applied configuration has a majority left.
func (c *Cluster) Applied(group uint64, applied founding.Configuration) {
	c.in.postOfLife(func() { c.own.core.Founding.Applied(c.now(), group, applied) })
}

// Log records the position of the replica's log while the replica knows no leader. While the
// replica knows a leader, log is the zero value.
func (c *Cluster) Log(raft uint64, log founding.Log) {
	c.in.postOfLife(func() { c.own.core.Founding.Log(c.now(), raft, log) })
}

// PeerLost records that an instance has reported, on its own connection, that its replica has
// ended. If the instance has a directory, its next process may resume the replica.
func (c *Cluster) PeerLost(instance nodeid.ID) {
	c.in.postOfLife(func() { c.own.core.PeerLost(c.now(), instance) })
}

// Retired records that this instance's replica has stopped by itself. Its raft ID is never used
// again.
func (c *Cluster) Retired(raft uint64) {
	c.in.postOfLife(func() { c.own.core.Retired(c.now(), raft) })
}

// WentBack records that this instance's replica lacks what it has acknowledged, as why says. The
// instance is excluded for good, since it may have forgotten a vote, too. The directory is refused
// at later starts.
func (c *Cluster) WentBack(why error) {
	c.in.postOfLife(func() { c.own.core.Founding.WentBack(c.now(), why.Error()) })
}

// HasLeader records whether this instance knows a leader of its group.
func (c *Cluster) HasLeader(known bool) {
	c.in.postOfLife(func() { c.own.core.Founding.Leader(c.now(), known) })
}

// BornApplied records that this instance's log has applied the group's command Born.
func (c *Cluster) BornApplied(group uint64) {
	c.in.postOfLife(func() { c.own.core.Founding.Born(c.now(), group) })
}

type strays struct {
	mu   sync.Mutex // guards told; held only for a short check
	told RemovedPeers
}

// RemovedPeer records that an instance whose raft ID is in no configuration sends raft messages to
// this instance. The cluster sends that instance the newest configuration, at most once a second.
// RemovedPeer may be called for every message.
func (c *Cluster) RemovedPeer(instance nodeid.ID, addr string) {
	c.removedPeers.mu.Lock()
	due := c.removedPeers.told.Due(instance, c.now())
	c.removedPeers.mu.Unlock()
	if due {
		c.in.post(func() { c.own.core.RemovedPeer(instance, addr) })
	}
}
