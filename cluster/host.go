package cluster

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Host carries out the decisions of a Cluster. The owner goroutine calls its methods one at a time,
// in the order of the decisions. Each method must return soon, since no question is answered
// meanwhile. The methods may call Voter, Members, Status, HasLeader, BornApplied, Configured,
// Retired, Look and RemovedPeer. They must not wait for Answer, QueryStatus, Recover, Leave or
// Close.
type Host interface {
	OwnState
	// Bound is called when this instance is bound to the charter. The host starts raft with the ID
	// raft. If raft is zero, the instance has no vote, and the host starts nothing. The charter's
	// slices must not be modified.
	Bound(c founding.Charter, raft uint64)
	// AllBound is called when all listed instances are bound, so that the group's leader may
	// propose Born. It is called on every listed instance, and at most once in an incarnation.
	// AllBound is not called if the instance has already learned that the group is born.
	AllBound(group uint64)
	// Member is called when this instance belongs to a group that is born: the instance has applied
	// Born, or another member has reported it. The slice belongs to the host.
	Member(group uint64, voters []Voter)
	// Restart is called for a restart in place. The host ends all locks, stops raft permanently,
	// and returns when nothing of the old incarnation runs any more. The new incarnation has the
	// given key and no group.
	Restart(key nodeid.Key, reason error)
	// Voters is called when replicas, including learners, or their addresses have changed. The
	// slice is the whole address book and belongs to the host.
	Voters(voters []Voter)
	// Prepared is called when the group's leader has asked this instance for a replica with the
	// given raft ID. The host starts an empty replica, or resumes the replica if the directory
	// contains its log. An earlier replica must end first.
	Prepared(group, raft uint64)
	// Removed is called when a configuration without this instance's replica is committed. The
	// instance remains a member. Other voters may still need the replica's vote, so the replica
	// runs until Dismissed. If the replica does not run, the host calls Retired. If the process
	// ends before Dismissed, the next start with the directory resumes the replica and calls
	// Removed again.
	Removed(raft uint64)
	// Dismissed is called when a removed replica is no longer needed. The host ends the replica and
	// calls Retired.
	Dismissed(raft uint64)
	// Carry hands a step to the log: AddLearner, Change or Transfer. For AddLearner, the last
	// argument is the new learner. The host ignores the step unless the replica leads in the given
	// term. Carry must not block. Only the next Facts show the outcome.
	Carry(term uint64, step voters.Step, about Voter)
}

// DurableHost is a Host with a directory. Config.Host must implement it if Config.Records is set.
//
// Every method is called after its decision was stored. After a start with a stored charter, Bound
// is called again, and so is Member if the group is known to be born. These calls come at most one
// and a half seconds after the start. Only Restart, Refused and Unsaved may be called earlier.
//
// The host finds the replica's log by group and raft ID. If Status reports PhaseMember while Bound
// runs, the log must exist. If that log is missing, this instance must not vote, since it has made
// promises with the raft ID. If Status does not report PhaseMember, the host creates a missing log,
// because the process may have ended before it created the log.
//
// Before a call of Restart, the charter and its raft ID are deleted from the records. If the
// directory still contains a log of that ID, the host must delete it.
type DurableHost interface {
	Host
	// Refused is called when this directory was copied or restored from an older copy. The
	// directory must never be used again, and every later Start fails. When Refused returns, raft
	// must have stopped and all locks must have ended, since another process may have the same raft
	// ID. No other method is called after Refused. err wraps ErrDirectory and contains the reason
	// and what to do.
	Refused(err error)
	// Unsaved is called when the records cannot be written any more. A voter must stop voting
	// permanently before Unsaved returns. The instance remains a member without a vote until it is
	// started again. A Restart may follow. err wraps ErrUnsaved.
	Unsaved(err error)
}
