package mortise

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/birth"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/transport"
)

// life implements cluster.Host: it carries out what the cluster room has decided about this instance, from newborn to member and,
// by a restart in place, back to newborn. Its methods are called one at a time, on the cluster's owner goroutine.
type life struct{ n *Node }

// node waits until the node can find its cluster room, which may call before its Start has returned.
func (l life) node() *Node {
	<-l.n.started
	return l.n
}

// Bound starts the replica of a voter. A listed instance that is no voter has nothing to start: it waits for Born.
func (l life) Bound(c birth.Charter, raft uint64) {
	n := l.node()
	n.identify(c.Group, raft)
	if raft == 0 {
		return
	}
	r, err := newReplica(n, c, raft)
	if err != nil {
		n.fail(fmt.Errorf("mortise: found group %016x: %w", c.Group, err))
		return
	}
	n.replica.Store(r)
	if len(c.Voters) == 1 {
		r.log.Campaign() // nobody else can: no need to wait for an election timeout
	}
}

// AllBound lets the tentative group's leader propose Born.
func (l life) AllBound(uint64) {
	if r := l.node().replica.Load(); r != nil {
		r.allBound.Store(true)
		r.proposeBorn()
	}
}

// Member opens the session.
func (l life) Member(group uint64, voters []cluster.Voter) {
	n := l.node()
	if r := n.replica.Load(); r != nil && r.group == group {
		n.identify(group, r.id)
	} else {
		n.identify(group, 0)
	}
	n.client.Rebind(n.record(), targets(voters))
}

// Voters tells the client whom to ask, and the keeper where the leader is.
func (l life) Voters(voters []cluster.Voter) {
	n := l.node()
	n.client.SetTargets(targets(voters))
	if r := n.replica.Load(); r != nil {
		r.tellKeeper()
	}
}

// Restart is the restart in place: as safe as kill -9, since nothing of the old life is left when the new one begins. The locks end
// first, so that nobody believes in one while its group is forgotten.
func (l life) Restart(instance uint64, reason error) {
	n := l.node()
	n.logger.Warn("this instance starts anew: its locks have ended", "why", reason)
	n.client.Rebind(nil, nil)
	if r := n.replica.Swap(nil); r != nil {
		r.stop()
	}
	n.instance.Store(instance)
	n.identify(0, 0)
}

// identify says on all streams who this instance is now.
func (n *Node) identify(group, raft uint64) {
	n.port.Identify(transport.Identity{
		Cluster: n.config.Cluster, Instance: transport.Instance(n.instance.Load()), Group: group, Raft: raft, Addr: n.address,
	})
}

// retire ends a replica that has retired. If the state machine itself is broken the node ends with it: what it said can no longer be
// trusted. Otherwise the instance goes on as a member that does not vote.
func (n *Node) retire(r *replica, err error) {
	r.stop()
	if !n.replica.CompareAndSwap(r, nil) {
		return // the old life ended meanwhile
	}
	if errors.Is(err, raftlog.ErrBroken) {
		n.fail(fmt.Errorf("mortise: the replicated state is broken, this node has stopped: %w", err))
		return
	}
	n.logger.Error("this instance no longer votes; it goes on as a member", "why", err)
	n.identify(r.group, 0)
}

// fail ends the node's locks for good. The process goes on; Err says why.
func (n *Node) fail(err error) {
	if n.failed.CompareAndSwap(nil, &err) {
		n.logger.Error("this node has failed and holds nothing any more", "why", err)
		n.spawn(n.client.Close)
	}
}
