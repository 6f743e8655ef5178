package check

import "slices"

// Groups checks that two groups can never both grant locks: at most one founded group has a
// majority of voters that have not ended. The voters of a group are the incarnations in its
// charter or its newest configuration. A voter with a directory does not end while its directory
// exists, even if its process is down.
type Groups struct {
	rule
	born []group
}

type group struct {
	id       uint64
	voters   []uint64
	outgoing []uint64 // voters of the outgoing majority of a joint configuration
	at       uint64
	ended    map[uint64]bool
	founded  int64
	lost     bool // the group had no majority at some time
}

// Born records the founding of a group, with its voting instances and its founding time. It must be
// called once for each group. The founding time must be higher than that of every earlier group,
// because the tokens of a group start there.
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

// Configured records that a replica has applied a configuration with these voting instances. For a
// joint configuration, voters has the voters of its incoming half, and outgoing those of its
// outgoing half. The configuration with the highest index counts.
func (g *Groups) Configured(id, at uint64, voters, outgoing []uint64) {
	for i := range g.born {
		if group := &g.born[i]; group.id == id && at > group.at {
			group.at, group.voters, group.outgoing = at, slices.Clone(voters), slices.Clone(outgoing)
			group.note()
		}
	}
}

// Able reports whether a majority of the voters of a group has not ended.
func (g *Groups) Able(id uint64) bool {
	return slices.ContainsFunc(g.born, func(group group) bool { return group.id == id && group.able() })
}

// Lost returns the groups for which Able is false, in the order of their foundings.
func (g *Groups) Lost() []uint64 {
	var lost []uint64
	for _, group := range g.born {
		if !group.able() {
			lost = append(lost, group.id)
		}
	}
	return lost
}

// MaySpare reports whether no group would lose its majority without that instance.
func (g *Groups) MaySpare(instance uint64) bool {
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

// Needless returns how many groups were replaced although Able was always true for them.
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

// Ended records that an incarnation can never take part in the group again: its process ended
// without a directory, it restarted in place, or its directory is lost.
func (g *Groups) Ended(id, instance uint64) {
	for i := range g.born {
		if group := &g.born[i]; group.id == id {
			group.ended[instance] = true
			group.note()
		}
	}
}

// EndedEverywhere calls Ended for all groups.
func (g *Groups) EndedEverywhere(instance uint64) {
	for i := range g.born {
		g.born[i].ended[instance] = true
		g.born[i].note()
	}
}

// Count returns the number of founded groups.
func (g *Groups) Count() int { return len(g.born) }

// check is called only after a founding. At other times no second group can get a majority, because
// an ended incarnation does not return.
func (g *Groups) check() error {
	var able []uint64
	for _, group := range g.born {
		if group.able() {
			able = append(able, group.id)
		}
	}
	if len(able) > 1 {
		return g.broken("groups: %d born groups could have a leader: %x", len(able), able)
	}
	return nil
}
