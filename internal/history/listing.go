package history

import (
	"cmp"
	"slices"
)

// listing lists the grants of all groups, in the order of the log.
type listing struct{ *evidence }

func (j listing) listGrants() error {
	n := 0
	for _, a := range j.groups {
		n += len(a.steps)/2 + 1
	}
	j.grants = make([]grant, 0, n)
	j.byToken = make(map[uint64]int32, n)
	for place, a := range j.groups {
		for _, i := range j.carried {
			e := &j.events[i]
			if _, known := j.byToken[uint64(e.Token)]; e.Group == a.group && e.Rev == a.first && !known {
				if err := j.list(int32(place), step{event: i, at: e.At}); err != nil {
					return err
				}
			}
		}
		for _, s := range a.steps {
			if j.events[s.event].Kind == Grant {
				if err := j.list(int32(place), s); err != nil {
					return err
				}
			}
		}
	}
	return j.listStays()
}

func (j listing) list(group int32, s step) error {
	e := &j.events[s.event]
	if before, twice := j.byToken[uint64(e.Token)]; twice {
		return j.broken(Tokens, []int32{j.grants[before].event, s.event}, "token %d is given twice", e.Token)
	}
	j.byToken[uint64(e.Token)] = int32(len(j.grants))
	g := newGrant(j.set(e), s.event, group)
	g.at = s.at
	j.grants = append(j.grants, g)
	return nil
}

func (j listing) listStays() error {
	stays := false
	for i := range j.grants {
		if g := &j.grants[i]; j.events[g.event].Last != 0 {
			g.stay, stays = &stay{because: -1}, true
		}
	}
	if !stays {
		return nil
	}
	j.ordered = make([]int32, len(j.grants))
	for i := range j.ordered {
		j.ordered[i] = int32(i)
	}
	slices.SortFunc(j.ordered, func(a, b int32) int { return cmp.Compare(j.granted(a).Token, j.granted(b).Token) })
	for n, i := range j.ordered[1:] {
		before, e := j.grants[j.ordered[n]].event, j.granted(i)
		if e.Token <= j.events[before].Last {
			return j.broken(Tokens, []int32{before, j.grants[i].event}, "token %d is given, and a stay has reserved it",
				e.Token)
		}
	}
	return nil
}
