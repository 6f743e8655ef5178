package cluster

import (
	"slices"
	"sync"

	"github.com/mortise-lock/mortise/cluster/founding"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what the host and the log tell the core about the group. What is said about an old
// life does not count for a new one.

// Configured takes that the log here has applied a configuration of the group: who has a replica,
// learners included. at is the log index of the entry that made it: of two configurations the one
// with the higher index is the newer, wherever it was heard of.
func (c *Cluster) Configured(group, at uint64, voters []Voter) {
	voters = slices.Clone(voters)
	c.in.postOfLife(func() { c.own.core.Configured(c.now(), group, at, voters) })
}

// Applied takes the configuration that the log here has applied, with both its halves if it is
// joint. A group is given up only if no majority of such a configuration is left.
func (c *Cluster) Applied(group uint64, applied founding.Configuration) {
	c.in.postOfLife(func() { c.own.core.Founding.Applied(c.now(), group, applied) })
}

// Log takes how far the log of a replica here goes while it knows no leader, zeros while it does.
func (c *Cluster) Log(raft uint64, log founding.Log) {
	c.in.postOfLife(func() { c.own.core.Founding.Log(c.now(), raft, log) })
}

// Gone takes that an instance has said on its own connection that the replica that it had is over,
// and lets the leader know. With a directory the next process may go on with it.
func (c *Cluster) Gone(instance nodeid.ID) {
	c.in.postOfLife(func() { c.own.core.Gone(c.now(), instance) })
}

// Retired takes that the replica here has stopped by itself. Its raft ID is never used again.
func (c *Cluster) Retired(raft uint64) {
	c.in.postOfLife(func() { c.own.core.Retired(c.now(), raft) })
}

// HasLeader takes whether this instance knows a leader of its group.
func (c *Cluster) HasLeader(known bool) {
	c.in.postOfLife(func() { c.own.core.Founding.Leader(c.now(), known) })
}

// BornApplied takes that Born of the group was applied by this instance's log.
func (c *Cluster) BornApplied(group uint64) {
	c.in.postOfLife(func() { c.own.core.Founding.Born(c.now(), group) })
}

// strays are Strays for any goroutine.
type strays struct {
	mu   sync.Mutex // guards told; held only for a look at it
	told Strays
}

// Stray takes that somebody whose raft ID is in no configuration speaks raft here. It is told the
// newest one, at most once a second: it was removed and has not heard of it. It may be called for
// every message, on any goroutine.
func (c *Cluster) Stray(instance nodeid.ID, addr string) {
	c.strays.mu.Lock()
	due := c.strays.told.Due(instance, c.now())
	c.strays.mu.Unlock()
	if due {
		c.in.post(func() { c.own.core.Stray(instance, addr) })
	}
}
