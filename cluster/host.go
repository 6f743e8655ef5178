package cluster

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Host carries out the decisions. Its methods are called on the cluster's owner goroutine, one at a
// time and in the order of the decisions. No question is answered while one runs, so each must
// return soon. They may call Voter, Members, Status, HasLeader, BornApplied, Configured, Retired,
// Look and RemovedPeer, but must not wait for Answer, QueryStatus, Recover, Leave or Close.
type Host interface {
	OwnState
	// Bound is called when this instance is bound to the charter. The host starts raft with the ID
	// raft. Zero means that the instance is listed without a vote: the host starts nothing. The
	// charter's slices must not be modified.
	Bound(c founding.Charter, raft uint64)
	// AllBound is called when all listed instances are bound: the group's leader may propose Born. It
	// is called at most once in a life, on every listed instance that does not first learn that the
	// group is born, so that a later leader knows it too.
	AllBound(group uint64)
	// Member is called when the group is born and this instance belongs to it: the instance has
	// applied Born, has learned it from a member, or has met a running group. The slice belongs to
	// the host.
	Member(group uint64, voters []Voter)
	// Restart is the restart in place. It ends all locks, stops raft permanently, and returns when
	// no part of the old life runs. The key belongs to the new life, which is newborn.
	Restart(key nodeid.Key, reason error)
	// Voters is called when the address book has changed: its replicas, including learners, or their
	// addresses. The slice is the whole book and belongs to the host.
	Voters(voters []Voter)
	// Prepared is called when the group's leader has asked this instance for a replica under that
	// raft ID. The host starts an empty replica or, after a start with a directory, resumes its
	// log. An earlier replica must end first.
	Prepared(group, raft uint64)
	// Removed is called when a configuration without this instance's replica is committed. The
	// instance continues as a plain member. Other voters may still need the replica's vote, so it runs
	// until Dismissed. A host that does not run it calls Retired. If the process ends first, the next
	// start with the directory resumes the replica and calls Removed again.
	Removed(raft uint64)
	// Dismissed is called when a removed replica is no longer needed. The host ends it and calls
	// Retired.
	Dismissed(raft uint64)
	// Carry passes a step to the log: AddLearner, where about is the new learner, Change or
	// Transfer. The step takes effect only if the replica still leads in that term. It must not
	// block. The outcome is not reported; the next Facts show it.
	Carry(term uint64, step voters.Step, about Voter)
}

// DurableHost is a Host with a directory. Config.Host must implement it if Config.Records is set.
//
// Every call of Host is made after its cause was stored. After a start with a stored charter Bound
// is called again, and Member too if the group is known to be born. Both calls come after settling,
// which takes at most one and a half seconds, and before all others except Restart, Refused and
// Unsaved. The replica then finds its log by group and raft ID. While Bound runs, Status reports
// PhaseMember if the group is known to be born. In that case the log must exist: without it this
// instance must not vote, because votes were given under this raft ID before. In the other case a
// missing log is created, because the process may have ended before it was created.
//
// Before Restart the charter and its raft ID are deleted from the records. The host must delete
// what the log still holds of that ID.
type DurableHost interface {
	Host
	// Refused is called when this instance may never take part again with this directory, because it
	// was copied or restored from an older copy. The node fails. When Refused returns, raft must have
	// stopped and all locks must have ended, since another process may have the same raft ID. It is
	// the last call. err wraps ErrDirectory and contains the reason and what to do; every later Start
	// returns it too.
	Refused(err error)
	// Unsaved is called when the records cannot be written any more. A voter must stop voting
	// permanently before Unsaved returns. The instance continues as a member without a vote until it
	// is restarted. A Restart may follow. err wraps ErrUnsaved.
	Unsaved(err error)
}
