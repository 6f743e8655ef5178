package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// fates are what a member has observed of the replicas of its group while it has no leader.
type fates struct {
	list []*fate // known replicas, oldest first
	// the time since which all instances that a new group needs have answered without a break;
	// zero if some do not answer
	whole  time.Duration
	doubts doubts
}

type fate struct {
	voter Voter
	known time.Duration // answers to questions before this time prove nothing about the replica
	heard time.Duration // when the replica's incarnation last answered
	// the log is in a directory, so another process at the address does not prove that the replica
	// has ended
	durable bool
	over    bool // the replica can never vote again
}

type doubts struct {
	at    uint64 // number of the configuration
	since time.Duration
}

func (f *fates) of(raft uint64) *fate {
	at := slices.IndexFunc(f.list, func(f *fate) bool { return f.voter.Raft == raft })
	if at < 0 {
		return nil
	}
	return f.list[at]
}

// follow begins to track the replicas of a configuration, and returns those that are new.
func (f *fates) follow(voters []Voter, now time.Duration) (added []Voter) {
	for _, v := range voters {
		if known := f.of(v.Raft); known != nil {
			known.voter = known.voter.again(known.voter.Life, v.Addr)
			continue
		}
		if len(f.list) >= maxFates {
			f.list = slices.Delete(f.list, 0, 1)
		}
		f.list = append(f.list, &fate{voter: v, known: now})
		added = append(added, v)
	}
	return added
}

// attest records what the answer of an instance at addr to a question of the given time proves.
func (f *fates) attest(s *sight, addr string, who *InstanceInfo, asked time.Duration) {
	for _, known := range f.list {
		if asked <= known.known {
			continue
		}
		if who.Instance == known.voter.Instance {
			known.heard, known.durable = s.now, who.Durable
			known.over = who.Standing != nil && who.Standing.Raft != known.voter.Raft
			continue
		}
		if addr == known.voter.Addr && !known.durable || s.replaces(who.Name, known.voter.Instance) {
			known.over = true
		}
	}
}

// depart records that an instance has announced its exit, which ends its replica in memory.
func (f *fates) depart(instance nodeid.ID) {
	for _, known := range f.list {
		if known.voter.Instance == instance && !known.durable {
			known.over = true
		}
	}
}

// reach records whether all instances that a new group needs answer now.
func (f *fates) reach(now time.Duration, all bool) {
	switch {
	case !all:
		f.whole = 0
	case f.whole == 0:
		f.whole = now
	}
}

// doubt records whether the newest known configuration, with the number at, is refuted now.
func (f *fates) doubt(now time.Duration, at uint64, refuted bool) {
	switch {
	case !refuted:
		f.doubts = doubts{}
	case f.doubts.at != at:
		f.doubts = doubts{at: at, since: now}
	}
}
