package instance

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/transport"
)

// life implements cluster.Host. Its methods are called one at a time, on the cluster's owner
// goroutine.
type life struct{ n *Instance }

// node waits until Instance.members is set, because package cluster may call a method before
// cluster.Start has returned.
func (l life) node() *Instance {
	<-l.n.started
	return l.n
}

func (l life) Bound(c founding.Charter, raft uint64) {
	n := l.node()
	n.prefer(c.Voters)
	if raft == 0 {
		n.bind(nil, c.Group)
		return
	}
	r, err := foundReplica(n, c, raft)
	if err != nil && n.dir != nil {
		n.logUnread(err)
		n.bind(nil, c.Group)
		if unusable(true, err) {
			n.cluster().Retired(raft)
		}
		return
	}
	if err != nil {
		n.fail(fmt.Errorf("mortise: found group %s: %w", nodeid.Hex(c.Group), err))
		return
	}
	if !n.bind(r, c.Group) {
		r.stop()
		return
	}
	if len(c.Voters) == 1 {
		// No other voter can be elected, so there is no need to wait for an election timeout.
		r.log.Campaign()
	}
}

// AllBound informs the keeper that all instances on the group's list are bound. If this instance
// leads, the keeper then proposes the command Born.
func (l life) AllBound(uint64) {
	if r := l.node().replica.Load(); r != nil {
		r.keeper.AllBound()
	}
}

// Member connects the session of this instance, and the user's own sessions, to the group.
func (l life) Member(group uint64, voters []cluster.Voter) {
	n := l.node()
	n.bind(n.replica.Load(), group)
	n.prefer(voters)
	n.sessions.Rebind(n.record(), n.ownRecord(), replica.Targets(voters))
}

// Voters passes the addresses of the voters to the clients, and reports the leader again.
func (l life) Voters(voters []cluster.Voter) {
	n := l.node()
	n.prefer(voters)
	n.sessions.SetTargets(replica.Targets(voters))
	n.leaderMoved()
	if r := n.replica.Load(); r != nil {
		r.core.TellKeeper()
	}
}

// Restart implements the restart in place. The locks end first, so that no lock seems to be held
// while the instance gives up its group.
func (l life) Restart(key nodeid.Key, reason error) {
	n := l.node()
	n.logger.Warn("this instance starts anew: its locks have ended", "why", reason)
	n.prefer(nil)
	n.sessions.Rebind(nil, nil, nil)
	if r := n.replica.Load(); r != nil {
		r.stop()
	}
	n.dropLog()
	n.binding.Lock()
	n.key.Store(&key)
	n.binding.Unlock()
	n.unread.Store(nil)
	n.bind(nil, 0)
}

// bind makes r, which may be nil, this instance's replica, and announces the new identity on all
// streams. Meanwhile it holds the mutex binding, so that it never announces a replica that has
// retired. If the instance has ended, bind does nothing and returns false.
func (n *Instance) bind(r *ownReplica, group uint64) bool {
	n.binding.Lock()
	defer n.binding.Unlock()
	if n.ended {
		return false
	}
	if r != nil && r.retired {
		r = nil
	}
	if r != nil {
		n.unread.Store(nil)
	}
	n.replica.Store(r)
	if r != nil {
		n.diskWell(r)
	}
	n.identify(r, group)
	return true
}

// identify passes this instance's identity to the port. The caller must hold the mutex binding.
func (n *Instance) identify(r *ownReplica, group uint64) {
	id := transport.Self{Key: *n.key.Load(), Group: group, Addr: n.reach()}
	if r != nil {
		id.Raft = r.ID
	}
	n.port.Identify(id)
}

// retire ends a replica that can no longer work. If the replica's state machine is broken, the
// whole instance ends. Otherwise the instance continues without a vote.
func (n *Instance) retire(r *ownReplica, err error) {
	// isDisk is called before r.stop, because a call that hangs may return during r.stop.
	disk := n.isDisk(err)
	if disk {
		state := DiskFailed
		switch {
		case errors.Is(err, storage.ErrLost):
			state = DiskRemoved
		case errors.Is(err, raftlog.ErrHung):
			state = DiskHung
		}
		n.diskFailed(state, err)
	}
	r.stop()
	n.binding.Lock()
	r.retired = true
	mine := n.replica.CompareAndSwap(r, nil)
	if mine {
		n.sendRetired(r)
		n.identify(nil, r.Group)
	}
	n.binding.Unlock()
	n.leaderKnown() // the replica may have been the leader
	switch {
	case n.dir != nil && errors.Is(err, raftlog.ErrWentBack):
		n.cluster().WentBack(err)
	case errors.Is(err, raftlog.ErrBroken):
		n.fail(fmt.Errorf("mortise: the replicated state is broken, this node has stopped: %w", err))
	case mine:
		if n.dir == nil {
			n.cluster().Retired(r.ID)
		}
		log := n.logger.Error
		if disk {
			log = n.logger.Info // diskFailed has logged the error
		}
		log("this instance no longer votes; it goes on as a member", "why", err)
	}
}

// sendRetired informs the other replicas that this replica has retired, so that they need not wait
// for an election timeout. The frame is the last one under this raft ID.
func (n *Instance) sendRetired(r *ownReplica) {
	for _, v := range r.Others(n.instance()) {
		// If the frame is lost, the others wait for an election timeout.
		_ = n.port.Send(n.peer(v.Raft), transport.Frame{Retired: true})
	}
}

// fail ends the instance permanently, including its locks and its membership. The process
// continues.
func (n *Instance) fail(err error) {
	if n.failed.CompareAndSwap(nil, &err) {
		n.logger.Error("this node has failed and holds nothing any more", "why", err)
		n.spawn(func() { _ = n.shut() })
	}
}
