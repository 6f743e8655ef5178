package cluster

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Host carries out the decisions of the cluster. Its methods are called on the cluster's owner
// goroutine, one at a time and in the order of the decisions. No question is answered during a
// call, so each method must return soon. A method may call Voter, Members, Status, HasLeader,
// BornApplied, Configured, Retired, Look and RemovedPeer, but must not wait for Answer,
// QueryStatus, Recover, Leave or Close.
type Host interface {
	OwnState
	// Bound is called when this instance is bound to the charter c. The host starts raft with the
	// ID raft. If raft is zero, the charter lists this instance without a vote, and the host starts
	// nothing. The host must not modify the slices of c.
	Bound(c founding.Charter, raft uint64)
	// AllBound is called when all listed instances are bound. From then on the group's leader may
	// propose Born. AllBound is called at most once in an incarnation. It is called on every listed
	// instance except those that learn earlier that the group is born, so that a later leader may
	// propose Born too.
	AllBound(group uint64)
	// Member is called when this instance belongs to a group that is born. It has applied Born,
	// received a report from a member, or met a running group. The slice belongs to the host.
	Member(group uint64, voters []Voter)
	// Restart restarts this instance in place. It ends all locks, stops raft permanently, and
	// returns when nothing of the previous incarnation runs any more. key is the key of the new
	// incarnation, which belongs to no group.
	Restart(key nodeid.Key, reason error)
	// Voters is called when the address book has changed, in its replicas, including learners, or
	// in their addresses. The slice is the whole address book and belongs to the host.
	Voters(voters []Voter)
	// Prepared is called when the group's leader has asked this instance to start a replica with
	// the raft ID raft. The host starts an empty replica or, after a start with a directory,
	// resumes the log of that replica. An earlier replica must end first.
	Prepared(group, raft uint64)
	// Removed is called when a configuration without this instance's replica is committed. The
	// instance remains a member without a replica of the configuration. Other voters may still need
	// the replica's vote, so the host keeps it running until Dismissed. A host that does not run
	// the replica calls Retired. If the process ends before Dismissed, the next start with the
	// directory resumes the replica and calls Removed again.
	Removed(raft uint64)
	// Dismissed is called when a removed replica is no longer needed. The host ends the replica and
	// calls Retired.
	Dismissed(raft uint64)
	// Carry passes a step to the log: AddLearner, Change or Transfer. For AddLearner, about is the
	// new learner. The host ignores the step unless this replica still leads in that term. Carry
	// must not block. Its outcome is not reported; the next Facts show it.
	Carry(term uint64, step voters.Step, about Voter)
}

// DurableHost is a Host with a directory. Config.Host must implement it if Config.Records is set.
//
// Every call of Host is made after the decision that caused it was stored. After a start with a
// stored charter, Bound is called again, and Member too if the group is known to be born. Both
// calls come at most one and a half seconds after the start, and before all others except Restart,
// Refused and Unsaved. The replica then finds its log by group and raft ID. While Bound runs,
// Status reports PhaseMember if the group is known to be born. In that case the log must exist.
// Without the log this instance must not vote, since it has made promises under the raft ID. If the
// group is not known to be born, a missing log is created, because the process may have ended
// before creating it.
//
// Before Restart the charter and its raft ID are deleted from the records. The host must delete
// everything that the log still holds under that raft ID.
type DurableHost interface {
	Host
	// Refused is called when this instance may never take part again with this directory, because
	// the directory was copied or restored from an older copy. The node fails. When Refused
	// returns, raft must have stopped and all locks must have ended, since another process may have
	// the same raft ID. No other method is called afterwards. err wraps ErrDirectory and contains
	// the reason and what to do. Every later Start with the directory returns it too.
	Refused(err error)
	// Unsaved is called when the records cannot be written any more. A voter must stop voting
	// permanently before Unsaved returns. The instance remains a member without a vote until the
	// process is restarted. A Restart may follow. err wraps ErrUnsaved.
	Unsaved(err error)
}
