package cluster

import (
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Host is told what has been decided and carries it out. Its methods are called on the cluster's
// owner goroutine, one at a time and in the order of the decisions. While one runs, no question is
// answered, so each returns soon. They may call Voter, Members, Status, HasLeader, BornApplied,
// Configured, Retired, Look and Stray, but must not wait for Answer, Consult, Recover, Leave or
// Close.
type Host interface {
	Sight
	// Bound says that this instance is bound to the charter: start raft with the ID raft, or, if it
	// is 0, nothing, since it is listed and has no vote. The charter's slices must not be modified.
	Bound(c founding.Charter, raft uint64)
	// AllBound says that everybody on the group's list is bound: whoever leads it may propose Born.
	// It is said on every listed instance that does not learn first that the group is born, at most
	// once in a life, so that a later leader knows it too.
	AllBound(group uint64)
	// Member says that the group is born and that this instance belongs to it: by its own apply of
	// Born, because a member said so, or because it met a running group. The slice belongs to the
	// host.
	Member(group uint64, voters []Voter)
	// Restart is the restart in place: it ends all locks and stops raft for good, and returns when
	// nothing of the old life runs any more. key is that of the new life, which is newborn.
	Restart(key nodeid.Key, reason error)
	// Voters says that the address book has changed: who has a replica, learners included, or where
	// they are. The slice is the whole book and belongs to the host.
	Voters(voters []Voter)
	// Prepared says that the group's leader has asked this instance for a replica under that raft
	// ID: start an empty one, or, after a start with a directory, go on with its log. An earlier
	// replica ends before.
	Prepared(group, raft uint64)
	// Removed says that a configuration without this instance's replica is committed. The instance
	// goes on as a plain member. The vote of the replica may be needed by voters that do not know
	// yet what is committed, so it goes on, until Dismissed. A host that does not run it calls
	// Retired. If the process ends before, the next start with the directory goes on with it, and
	// says Removed again.
	Removed(raft uint64)
	// Dismissed says that a replica that was removed is not needed any more: the host ends it, and
	// calls Retired.
	Dismissed(raft uint64)
	// Carry hands a step to the log: AddLearner, where about says who that is, Change or Transfer.
	// It counts only if the replica still leads in that term. It must not block, and nobody is told
	// what became of it: the next Facts show it.
	Carry(term uint64, step voters.Step, about Voter)
}

// DurableHost is a Host with a directory: what Config.Host has to be if Config.Records is set.
//
// Every call of Host rests on what is stored. After a start with a stored charter Bound is called
// again with it, and Member too if the group is known to be born; both before any other call but
// Restart, Refused and Unsaved, and after a look around of at most one and a half seconds. The
// replica then finds its log by group and raft ID. Status says PhaseMember while Bound runs if the
// group is known to be born: then the log must be there, and without it this instance must not
// vote, since the raft ID has promised something before. Otherwise a log that is missing is
// founded, because the process may have died before it was.
//
// Before Restart the charter and its raft ID are gone from the records: what the log still holds of
// that ID is to be removed.
type DurableHost interface {
	Host
	// Refused says that this instance may never take part again with this directory: it was copied
	// or restored from an older copy. The node fails: raft must have stopped and all locks must
	// have ended when it returns, since another process may have the same raft ID. It is the last
	// call. err wraps ErrDirectory, says why and what to do, and every later Start returns it too.
	Refused(err error)
	// Unsaved says that the records cannot be written any more: a voter must stop to vote, for good
	// and before it returns. The instance goes on as a member that does not vote, until it is
	// started again. A Restart may follow. err wraps ErrUnsaved.
	Unsaved(err error)
}
