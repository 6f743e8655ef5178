package voters

import (
	"cmp"
	"slices"
)

// choose returns the best voters that one change of the current configuration can produce, or nil
// if the current voters are as good.
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

// rank returns a number for each goal that justifies a change, most important goal first. The
// number is the distance of the voters from the goal.
func (s *survey) rank(list []*member) []int {
	even := 1 - len(list)%2
	return []int{even, max(len(list)-s.target, s.target-len(list)), len(list) - len(where(list, (*member).fit))}
}

// leads reports whether the leader may remain in the configuration. Otherwise it only prepares a
// successor (rule 12).
func (s *survey) leads() bool { return s.self.fit() }

// size returns the number of voters that one change can produce. A leader that leaves must not be
// the only voter.
func (s *survey) size() int {
	reach := len(s.voters)
	for _, l := range s.learners {
		if l.promotable() && !s.clash(s.voters, l.info, l.Instance) {
			reach++
		}
	}
	n := odd(min(s.target, reach))
	if n < 3 && !s.leads() {
		n = min(3, reach)
	}
	return n
}

// compose returns n voters including the leader, with a majority of them in contact, or nil if that
// is impossible. It minimises, in this order, the number of dead or leaving voters, the number of
// silent voters among the others, and the number of promotions.
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
	silent := n - max(0, n/2+1-len(chosen)) // more silent voters would leave no majority in contact
	chosen = s.take(chosen, silent, where(s.voters, fit(false)))
	chosen = s.take(chosen, n, where(s.voters, unfit(true)))
	chosen = s.take(chosen, n, where(s.voters, unfit(false)))
	if len(chosen) < n || !(majority(chosen)) {
		return nil
	}
	return s.even(chosen)
}

// take adds members to chosen until chosen has n members or no more can be added. Each new member
// comes from the zone with the fewest chosen members. A rival of a chosen member is not added,
// unless both are voters already.
func (s *survey) take(chosen []*member, n int, from []*member) []*member {
	for len(chosen) < n {
		free := where(from, func(m *member) bool {
			return !slices.Contains(chosen, m) && !slices.ContainsFunc(chosen, func(c *member) bool {
				return !(c.voter && m.voter) && s.rivals(c.info, m.info, c.Instance, m.Instance)
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

func burden(chosen []*member, m *member) int {
	if !m.known {
		return 0
	}
	return load(chosen, m.info.Zone)
}

func majority(list []*member) bool {
	return len(where(list, func(m *member) bool { return m.Active })) > len(list)/2
}
