package voters

import (
	"cmp"
	"slices"
)

// choose returns the best voters that can be had by one change of what is in the configuration now,
// or nil if those that vote are as good.
func (s *survey) choose() []*member {
	now := s.rank(s.voters)
	for n := s.size(); n > 0; n -= 2 {
		if best := s.compose(n); best != nil {
			if s.leads() && slices.Compare(s.rank(best), now) >= 0 {
				return nil
			}
			return best
		}
	}
	return nil
}

// rank is by what a change is due: odd counts, the number that is wanted, nobody who is dead or
// goes. Lower is better. Being silent is not in it, nor zones: neither is a reason to change by
// itself.
func (s *survey) rank(list []*member) []int {
	even := 1 - len(list)%2
	return []int{even, max(len(list)-s.target, s.target-len(list)), len(list) - len(where(list, (*member).fit))}
}

// leads reports whether the leader may stay in the configuration. If it may not, all that it does
// is to find a successor (rule 12).
func (s *survey) leads() bool { return s.self.fit() }

// size is how many voters there can be after one change. A leader that goes is not alone among
// them.
func (s *survey) size() int {
	reach := len(s.voters)
	for _, l := range s.learners {
		if l.promotable() && !s.clash(s.voters, l.who, l.Instance) {
			reach++
		}
	}
	n := odd(min(s.target, reach))
	if n < 3 && !s.leads() {
		n = min(3, reach)
	}
	return n
}

// compose returns n voters: the leader, then as few as possible that are dead or go, of these as
// few as possible that are silent, and as few promotions as possible, in this order; a majority of
// them is active. It returns nil if that cannot be.
func (s *survey) compose(n int) []*member {
	fit := func(active bool) func(*member) bool {
		return func(m *member) bool { return m.fit() && m.Active == active }
	}
	unfit := func(active bool) func(*member) bool {
		return func(m *member) bool { return !m.fit() && m.Active == active }
	}
	chosen := []*member{s.self}
	chosen = s.take(chosen, n, where(s.voters, fit(true)))
	chosen = s.take(chosen, n, where(s.learners, (*member).promotable))
	silent := n - max(0, n/2+1-len(chosen)) // so many must leave room for active ones
	chosen = s.take(chosen, silent, where(s.voters, fit(false)))
	chosen = s.take(chosen, n, where(s.voters, unfit(true)))
	chosen = s.take(chosen, n, where(s.voters, unfit(false)))
	if len(chosen) < n || !(majority(chosen)) {
		return nil
	}
	return s.even(chosen)
}

// take adds members to those chosen until there are n, always from the emptiest zone, and none
// beside a rival if either is new.
func (s *survey) take(chosen []*member, n int, from []*member) []*member {
	for len(chosen) < n {
		free := where(from, func(m *member) bool {
			return !slices.Contains(chosen, m) && !slices.ContainsFunc(chosen, func(c *member) bool {
				return !(c.voter && m.voter) && s.rivals(c.who, m.who, c.Instance, m.Instance)
			})
		})
		if len(free) == 0 {
			break
		}
		chosen = append(chosen, slices.MinFunc(free, func(a, b *member) int {
			return cmp.Or(cmp.Compare(burden(chosen, a), burden(chosen, b)), cmp.Compare(a.ID, b.ID))
		}))
	}
	return chosen
}

// burden is with how many of those chosen a member would share its zone.
func burden(chosen []*member, m *member) int {
	if !m.known {
		return 0
	}
	return load(chosen, m.who.Zone)
}

// majority reports whether a majority of the members is active.
func majority(list []*member) bool {
	return len(where(list, func(m *member) bool { return m.Active })) > len(list)/2
}
