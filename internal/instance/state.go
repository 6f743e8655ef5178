package instance

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file contains the methods that the root package calls. Only the methods with a context send
// queries to other instances.

// Client returns the client of this instance's own session.
func (n *Instance) Client() *client.Client { return n.client }

// Tracer returns the tracer, or nil if there are no observers.
func (n *Instance) Tracer() *trace.Tracer { return n.trace }

// Leaving returns a channel that is closed when the instance begins to leave or is closed.
func (n *Instance) Leaving() <-chan struct{} { return n.ending.leaving }

// Spawn runs f on a goroutine that Close waits for, and returns true. After Close it does nothing
// and returns false.
func (n *Instance) Spawn(f func()) bool { return n.spawn(f) }

// Now returns the time of the boot clock.
func (n *Instance) Now() clock.Time { return n.env.clock.Now() }

// Wall returns the time of the wall clock.
func (n *Instance) Wall() time.Time { return n.env.wall() }

// Random fills b with random bytes.
func (n *Instance) Random(b []byte) { n.env.random(b) }

// ID returns the ID of the present incarnation.
func (n *Instance) ID() nodeid.ID { return n.instance() }

// Started reports whether package cluster has been started.
func (n *Instance) Started() bool { return n.cluster() != nil }

// QueryStatus asks the leader for the state of the voters. ctx limits the wait for a leader.
func (n *Instance) QueryStatus(ctx context.Context) (cluster.VoterStatus, error) {
	return n.cluster().QueryStatus(ctx)
}

// AskDisks returns the disk faults that the leader or this instance knows.
func (n *Instance) AskDisks(ctx context.Context, leader nodeid.ID) []FaultyDisk {
	return n.askDisks(ctx, leader)
}

// LearnNames remembers the names and zones of the voters in a page of the members.
func (n *Instance) LearnNames(page *query.MemberList) { n.known.read(page) }

// Recover implements mortise's Node.Recover.
func (n *Instance) Recover(ctx context.Context, group uint64) error {
	if r := n.replica.Load(); r != nil {
		n.cluster().Floor(r.seen())
	}
	return n.cluster().Recover(ctx, group)
}

// Leaderless returns how long no leader has been known. Zero means that a leader is known, or that
// this instance has not looked for one yet.
func (n *Instance) Leaderless() time.Duration {
	since := n.leading.without.Load()
	if since == 0 {
		return 0
	}
	return n.env.clock.Now().Sub(clock.Time(since))
}

// Picture is the state of an instance at one moment.
type Picture struct {
	ID      nodeid.ID
	Address string
	Tier    credentials.Tier
	// Member is set if the instance has a member's secret. It then neither votes nor serves other
	// instances.
	Member bool
	Err    error
	Now    clock.Time

	Sessions []client.Status // the first is the session of the instance itself
	Votes    bool
	Leading  bool
	Term     uint64        // zero on an instance that does not vote
	Starved  time.Duration // see raftlog.Status
	Leader   nodeid.ID     // zero if none is known

	Started bool           // whether the following five fields are set
	Cluster cluster.Status // members, from gossip and from the address book
	Names   InstanceNames
	Linked  func(nodeid.ID) bool
	Report  *voters.Report // state of the voters; nil unless this instance leads
	Remarks []string       // texts about settings that differ; only if this instance leads

	Members int // number of members and guests; only if this instance leads

	Durable   bool  // whether the instance has a directory
	Unread    error // why the log of this voter cannot be used
	BadDisk   bool
	OnlyVoter bool // whether no other instance is known to vote
	Disk      *DiskFault
	Disks     []FaultyDisk

	// Age is the time since Start. Available is the part of this time in which locks could be
	// granted.
	Age, Available time.Duration
}

// Picture returns the state of this instance, without a query to other instances.
func (n *Instance) Picture() *Picture {
	p := &Picture{
		ID: n.instance(), Address: n.address, Tier: n.self.Tier, Member: n.isMember(), Err: n.Err(),
		Now: n.env.clock.Now(), Durable: n.dir != nil,
	}
	for _, c := range n.sessions.List() {
		p.Sessions = append(p.Sessions, c.Status())
	}
	p.Age, p.Available = n.grantable.share(p.Now)
	p.Leader = p.Sessions[0].Leader.ID
	if r := n.replica.Load(); r != nil {
		role := r.Role()
		p.Votes, p.Term, p.Leading = r.Votes(), role.Term, role.Leading
		p.Starved = r.log.Status().Starved
		if p.Leading {
			p.Members = r.core.SessionIndex.Members()
		}
		p.Leader = r.Leader(n.cluster()).Instance
	}
	if c := n.cluster(); c != nil {
		p.Started, p.Cluster, p.Linked = true, c.Status(), n.linked
		p.Names = n.names(&p.Cluster)
		p.OnlyVoter = n.onlyVoter(p.Cluster)
		if report, leads := c.Report(); leads {
			p.Report, p.Remarks = &report, n.view().Remarks()
		}
	}
	if unread := n.unread.Load(); unread != nil {
		p.Unread, p.BadDisk = *unread, errors.Is(*unread, raftlog.ErrStorage)
	}
	if p.Durable {
		p.Disk = n.diskFault()
	}
	if p.Started {
		p.Disks = n.faultyDisks()
	}
	return p
}

// Rights returns the rights of this instance's secret or certificate. Nil means all.
func (n *Instance) Rights() *capability.Capability { return n.self.Capability }
