package check

import "slices"

// Groups judges that there are never two groups that could both grant: of all groups that are born,
// at most one has a majority of its voters alive, as the very lives that its charter, or its newest
// configuration, names. A voter in memory that has restarted is somebody else, and can never again
// take part in the old group; one with a directory is the same life as long as the directory is
// there, also while its process is down. The zero value is ready for use.
type Groups struct {
	rule
	born []group // in the order of birth
}

type group struct {
	id       uint64
	voters   []uint64 // instances
	outgoing []uint64 // of the other majority, while the configuration is joint
	at       uint64   // index of the configuration
	ended    map[uint64]bool
	founded  int64
	lost     bool // it had no majority once
}

// Born is told the birth of a group once, with the instances that vote in it and its founding time.
// Tokens start at the founding time, so it must be above that of every group before.
func (g *Groups) Born(id uint64, foundedUnixMS int64, voters ...uint64) error {
	if g.err != nil {
		return g.err
	}
	for _, other := range g.born {
		if other.id == id {
			return g.broken("groups: group %x is born twice", id)
		}
		if foundedUnixMS <= other.founded {
			return g.broken("groups: group %x starts its tokens at or below those of %x", id, other.id)
		}
	}
	if len(voters) == 0 || len(voters)%2 == 0 {
		return g.broken("groups: group %x has %d voters", id, len(voters))
	}
	g.born = append(g.born, group{id: id, voters: slices.Clone(voters), ended: map[uint64]bool{},
		founded: foundedUnixMS})
	return g.check()
}

// Configured is told that a configuration is applied somewhere, by the instances that vote in it;
// outgoing are those of the other majority while it is joint. Of two the one with the higher index
// counts.
func (g *Groups) Configured(id, at uint64, voters, outgoing []uint64) {
	for i := range g.born {
		if group := &g.born[i]; group.id == id && at > group.at {
			group.at, group.voters, group.outgoing = at, slices.Clone(voters), slices.Clone(outgoing)
			group.note()
		}
	}
}

// Able reports whether a majority of the voters of a group that is born is alive.
func (g *Groups) Able(id uint64) bool {
	return slices.ContainsFunc(g.born, func(group group) bool { return group.id == id && group.able() })
}

// Lost returns the groups that have no majority of their voters alive, in the order of their birth.
func (g *Groups) Lost() []uint64 {
	var lost []uint64
	for _, group := range g.born {
		if !group.able() {
			lost = append(lost, group.id)
		}
	}
	return lost
}

// Bears reports whether all groups that have a majority have one without that life too.
func (g *Groups) Bears(instance uint64) bool {
	for _, group := range g.born {
		if !group.able() || group.ended[instance] {
			continue
		}
		group.ended[instance] = true
		able := group.able()
		delete(group.ended, instance)
		if !able {
			return false
		}
	}
	return true
}

// Needless returns how many groups were given up though they had a majority of their voters alive
// all the time.
func (g *Groups) Needless() int {
	n := 0
	for _, group := range g.born[:max(0, len(g.born)-1)] {
		if !group.lost {
			n++
		}
	}
	return n
}

func (g *group) able() bool {
	return g.majority(g.voters) && (len(g.outgoing) == 0 || g.majority(g.outgoing))
}

func (g *group) majority(voters []uint64) bool {
	alive := 0
	for _, instance := range voters {
		if !g.ended[instance] {
			alive++
		}
	}
	return alive*2 > len(voters)
}

func (g *group) note() { g.lost = g.lost || !g.able() }

// Ended is told that the life of an instance is over for good in that group: its process ended and
// had no directory, it started anew in place, or its directory is lost.
func (g *Groups) Ended(id, instance uint64) {
	for i := range g.born {
		if group := &g.born[i]; group.id == id {
			group.ended[instance] = true
			group.note()
		}
	}
}

// EndedEverywhere is Ended for all groups.
func (g *Groups) EndedEverywhere(instance uint64) {
	for i := range g.born {
		g.born[i].ended[instance] = true
		g.born[i].note()
	}
}

// Count returns how many groups were born.
func (g *Groups) Count() int { return len(g.born) }

// check looks for two groups with a majority. It is enough to look at births: a life that is over
// does not come back.
func (g *Groups) check() error {
	var able []uint64
	for _, group := range g.born {
		if group.able() {
			able = append(able, group.id)
		}
	}
	if len(able) > 1 {
		return g.broken("groups: %d groups that are born could have a leader: %x", len(able), able)
	}
	return nil
}
