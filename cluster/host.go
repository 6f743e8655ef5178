package cluster

import "github.com/mortise-lock/mortise/cluster/birth"

// Host is told what has been decided and carries it out. Its methods are called on the cluster's owner goroutine, one at a time and in
// the order of the decisions. While one runs, no question is answered, so each returns soon. They may call Voter, Members, Status,
// HasLeader and BornApplied, but must not wait for Answer, Leave or Close.
type Host interface {
	// Bound says that this instance is bound to the charter: start raft with the ID raft, or, if it is 0, nothing, since it is listed
	// and has no vote. The charter's slices must not be modified.
	Bound(c birth.Charter, raft uint64)
	// AllBound says that everybody on the group's list is bound: whoever leads it may propose Born. It is said on every listed instance
	// that does not learn first that the group is born, at most once in a life, so that a later leader knows it too.
	AllBound(group uint64)
	// Member says that the group is born and that this instance belongs to it: by its own apply of Born, because a member said so, or
	// because it met a running group. The slice belongs to the host.
	Member(group uint64, voters []Voter)
	// Restart is the restart in place: it ends all locks and stops raft for good, and returns when nothing of the old life runs any
	// more. instance is the ID of the new life, which is newborn.
	Restart(instance uint64, reason error)
	// Voters says that addresses of voters have changed. The slice belongs to the host.
	Voters(voters []Voter)
}
