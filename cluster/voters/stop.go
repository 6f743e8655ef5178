package voters

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// MayStop reports whether an instance that leaves may stop (rule 13). leaver is the raft ID of the
// instance's replica; zero means none. The replica must not be the leader, and the leader must have
// applied a configuration without it. A majority of the voters and every voter in contact must know
// that this configuration is committed; see the package comment.
//
// The parameter at is the index of the newest configuration that the leaving instance knows. If
// the leader has only an older one, MayStop returns false, since the leader may have been
// replaced without knowing this.
func MayStop(v View, leaver nodeid.ReplicaID, at uint64) bool {
	if leaver == 0 {
		return true
	}
	known := slices.Concat(v.Config.Voters, v.Config.Outgoing, v.Config.Learners)
	if v.Config.At < at || leaver == v.Self || slices.Contains(known, leaver) {
		return false
	}
	for _, m := range look(v).voters {
		if !m.self && m.Active && !m.Settled {
			return false
		}
	}
	return v.settled(v.Config.Voters) && v.settled(v.Config.Outgoing)
}

// settled reports whether a majority of the given voters know that the configuration is committed.
// For an empty list it returns true.
func (v View) settled(voters []nodeid.ReplicaID) bool {
	know := 0
	for _, r := range v.Replicas {
		if r.Settled && slices.Contains(voters, r.ID) {
			know++
		}
	}
	return len(voters) == 0 || know > len(voters)/2
}

// AllLeaving reports whether every instance in contact has announced that it leaves (rule 13). In
// this case no successor exists, and each instance closes its session and stops without delay. A
// voter in contact whose session has ended counts as staying.
func AllLeaving(v View) bool {
	s := look(v)
	for _, m := range slices.Concat(s.voters, s.learners) {
		if m.Active && !m.info.Leaving {
			return false
		}
	}
	some := false
	for _, r := range s.records() {
		if r.Session && r.Reachable && !r.Leaving {
			return false
		}
		some = some || r.Leaving
	}
	if v.Others == nil {
		return some
	}
	for r := range v.Others.All() {
		if r.Session && r.Reachable && !r.Leaving {
			return false
		}
		some = some || r.Leaving
	}
	return some
}
