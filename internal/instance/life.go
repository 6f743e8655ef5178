package instance

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
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
	if n.begins.run != nil {
		n.sessions.First.Follows(n.begins.run.joins(group, n.key.Load()))
	}
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

// Facts implements cluster.OwnState: it returns this replica's data about the voters if this
// replica leads.
func (l life) Facts() (voters.Facts, uint64, bool) {
	n := l.node()
	r := n.replica.Load()
	if r == nil {
		return voters.Facts{}, 0, false
	}
	survey := r.log.Survey()
	own := replica.Own{Settings: n.config.Group, Durable: n.dir != nil, Leaving: n.ending.isLeaving()}
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

// Refused stops the instance. The directory must not be used again, because another process may
// have the same raft ID.
func (l life) Refused(err error) {
	n := l.node()
	n.sessions.Rebind(nil, nil, nil)
	if r := n.replica.Load(); r != nil {
		r.stop()
	}
	n.bind(nil, 0)
	n.fail(fmt.Errorf("mortise: Config.Dir %q: %w", n.config.Dir, err))
}

// Unsaved ends the vote, because an instance that cannot write to its directory must not vote.
func (l life) Unsaved(err error) {
	n := l.node()
	n.diskFailed(DiskFailed, err)
	if r := n.replica.Load(); r != nil {
		r.stop()
		n.bind(nil, r.Group)
	}
}

func (n *Instance) replicaFailed(err error) {
	if n.isDisk(err) {
		n.diskFailed(DiskFailed, err)
		return
	}
	if errors.Is(err, storage.ErrLogOpen) && n.diskFault() != nil {
		return // the previous log is still open, because a call to the disk hangs
	}
	n.logger.Error("a replica could not be started: this instance goes on as a member", "dir", n.config.Dir, "why", err)
}
