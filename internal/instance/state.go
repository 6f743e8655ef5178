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

// This file is what the face may ask of an instance. None of it asks another instance but what has
// a context.

// Client returns the client of this instance's own session.
func (n *Instance) Client() *client.Client { return n.client }

// Tracer returns what tells the observers, or nil if there are none.
func (n *Instance) Tracer() *trace.Tracer { return n.trace }

// Leaving returns a channel that is closed when the instance begins to leave, or is closed.
func (n *Instance) Leaving() <-chan struct{} { return n.leaving }

// Spawn runs f on a goroutine that Close waits for. It returns false, and does not run f, once the
// instance is closed.
func (n *Instance) Spawn(f func()) bool { return n.spawn(f) }

// Now returns the time of the boot clock, and Wall that of the wall clock.
func (n *Instance) Now() clock.Time { return n.env.clock.Now() }

// Wall returns the time of the wall clock.
func (n *Instance) Wall() time.Time { return n.env.wall() }

// Random fills b with random bytes.
func (n *Instance) Random(b []byte) { n.env.random(b) }

// ID returns the ID of the present life.
func (n *Instance) ID() nodeid.ID { return n.instance() }

// Started reports whether the instance takes part in its cluster.
func (n *Instance) Started() bool { return n.cluster() != nil }

// Consult asks the leader how the voters stand. ctx bounds the wait for a leader.
func (n *Instance) Consult(ctx context.Context) (cluster.Counsel, error) {
	return n.cluster().Consult(ctx)
}

// AskDisks returns the faults of disks that the leader knows, or what has come here if it does not
// answer.
func (n *Instance) AskDisks(ctx context.Context, leader nodeid.ID) []FaultyDisk {
	return n.askDisks(ctx, leader)
}

// KeepPage keeps a page of the members, which is not changed any more, as what is known of them;
// first says that it is the first page.
func (n *Instance) KeepPage(page *query.MemberList, first bool) {
	n.known.keep(n.env.clock.Now(), page, first)
}

// Recover gives up a group whose majority is lost, as mortise's Node.Recover does.
func (n *Instance) Recover(ctx context.Context, group uint64) error {
	if r := n.replica.Load(); r != nil {
		n.cluster().Floor(r.seen())
	}
	return n.cluster().Recover(ctx, group)
}

// seen returns the time, in Unix milliseconds, up to which tokens have been used as far as this
// replica knows. A token is the founding time shifted by 21 bits plus the number of changes since.
func (r *ownReplica) seen() int64 { return int64(r.Revision() >> 21) }

// Leaderless returns for how long this instance has known no leader. Zero means that it knows one,
// or never did.
func (n *Instance) Leaderless() time.Duration {
	since := n.leading.without.Load()
	if since == 0 {
		return 0
	}
	return n.env.clock.Now().Sub(clock.Time(since))
}

// Picture is what an instance knows at one moment.
type Picture struct {
	ID      nodeid.ID
	Address string // advertised
	Tier    credentials.Tier
	Member  bool // it has a member's secret: it locks, and neither votes nor serves
	Err     error
	Now     clock.Time

	Sessions []client.Status // the instance's own first
	Votes    bool
	Leading  bool
	Term     uint64    // zero on an instance that does not vote
	Leader   nodeid.ID // zero: none is known

	Started bool           // the following five are known
	Cluster cluster.Status // who is here, by gossip and by the address book
	People  People         // of these instances
	Linked  func(nodeid.ID) bool
	Report  *voters.Report // how the voters stand; nil unless this instance leads
	Remarks []string       // settings that differ, if it leads

	// the first page that the leader has answered last; not to be changed; nil: there is none
	Members      *query.MemberList
	MembersAge   time.Duration
	MembersTotal int

	Durable   bool         // it has a directory; without one it has no disk
	Unread    error        // why the log of this voter cannot be used
	BadDisk   bool         // that is an error of the disk
	OnlyVoter bool         // no other instance votes, as far as is known here
	Disk      *DiskFault   // of this instance
	Disks     []FaultyDisk // of all, as far as is known here

	Age, Available time.Duration // since Start, and for how long of that locks could be granted
}

// Picture returns what the instance knows. It asks no other.
func (n *Instance) Picture() *Picture {
	p := &Picture{
		ID: n.instance(), Address: n.address, Tier: n.self.Tier, Member: n.isMember(), Err: n.Err(),
		Now: n.env.clock.Now(), Durable: n.dir != nil,
	}
	for _, c := range n.clients() {
		p.Sessions = append(p.Sessions, c.Status())
	}
	p.Age, p.Available = n.grantable.share(p.Now)
	p.Members, p.MembersAge = n.known.last(p.Now)
	p.MembersTotal = int(p.Members.GetTotal())
	p.Leader = p.Sessions[0].Leader.Peer
	if r := n.replica.Load(); r != nil {
		role := r.Role()
		p.Votes, p.Term, p.Leading = r.Votes(), role.Term, role.Leading
		if p.Leading {
			p.MembersTotal = r.core.Registry.Members()
		}
		p.Leader = r.Leader(n.cluster()).Instance
	}
	if c := n.cluster(); c != nil {
		p.Started, p.Cluster, p.Linked = true, c.Status(), n.linked
		p.People = n.people(&p.Cluster)
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

// Rights returns what the secret or certificate of this instance grants. Nil means everything.
func (n *Instance) Rights() *capability.Capability { return n.self.Capability }
