package check

// Groups judges that there are never two groups that could both grant: of all groups that are born, at most one has a majority of its
// voters alive, as the very lives that its charter names. A voter in memory that has restarted is somebody else, and can never again
// take part in the old group; one with a directory is the same life as long as the directory is there, also while its process is
// down. The zero value is ready for use.
type Groups struct {
	rule
	born []group // in the order of birth
}

type group struct {
	id        uint64
	instances []uint64
	ended     map[uint64]bool
	founded   int64
}

// Born is told the birth of a group once, with the instances that vote in it and its founding time. Tokens start at the founding time,
// so it must be above that of every group before.
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
	g.born = append(g.born, group{id: id, instances: append([]uint64(nil), voters...), ended: map[uint64]bool{}, founded: foundedUnixMS})
	return g.check()
}

// Ended is told that the life of an instance is over for good in that group: its process ended and had no directory, it started anew
// in place, or its directory is lost.
func (g *Groups) Ended(id, instance uint64) {
	for _, group := range g.born {
		if group.id == id {
			group.ended[instance] = true
		}
	}
}

// EndedEverywhere is Ended for all groups.
func (g *Groups) EndedEverywhere(instance uint64) {
	for _, group := range g.born {
		group.ended[instance] = true
	}
}

// Count returns how many groups were born.
func (g *Groups) Count() int { return len(g.born) }

// check looks for two groups with a majority. It is enough to look at births: a life that is over does not come back.
func (g *Groups) check() error {
	var able []uint64
	for _, group := range g.born {
		alive := 0
		for _, instance := range group.instances {
			if !group.ended[instance] {
				alive++
			}
		}
		if alive*2 > len(group.instances) {
			able = append(able, group.id)
		}
	}
	if len(able) > 1 {
		return g.broken("groups: %d groups that are born could have a leader: %x", len(able), able)
	}
	return nil
}
