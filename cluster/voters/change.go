package voters

import (
	"cmp"
	"slices"
)

// change returns the step that makes the given members the voters (rule 10). It removes replicas
// that may not remain. The other replicas become or remain learners, up to the wanted number of
// replicas. A learner above that number remains only if spare or spreads requires it.
func (s *survey) change(voters []*member) Step {
	step := Step{Kind: Change, Next: again}
	var rest, said []*member
	for _, m := range slices.Concat(s.voters, s.learners) {
		switch in := slices.Contains(voters, m); {
		case in && !m.voter:
			step.Promote = append(step.Promote, m.ID)
			said = append(said, m)
		case in:
		case m.fit():
			rest = append(rest, m)
		default:
			step.Remove = append(step.Remove, m.ID)
			said = append(said, m)
		}
	}
	slices.SortFunc(rest, func(a, b *member) int { return cmp.Or(s.worth(b)-s.worth(a), cmp.Compare(a.ID, b.ID)) })
	room, spare := s.wanted-len(where(voters, (*member).fit)), s.spare(voters)
	for i, m := range rest {
		switch {
		case i < room && m.voter:
			step.Demote = append(step.Demote, m.ID)
		case m.voter:
			step.Remove = append(step.Remove, m.ID)
		case i < room || spare || s.spreads(m):
			continue
		default:
			step.Remove = append(step.Remove, m.ID)
		}
		said = append(said, m)
	}
	slices.Sort(step.Promote)
	slices.Sort(step.Demote)
	slices.Sort(step.Remove)
	step.Why = step.changes(said).String()
	return step
}

// spare reports whether to keep a learner that is not needed. It is kept if a voter may not
// remain, is silent, or was lost recently.
func (s *survey) spare(voters []*member) bool {
	return slices.ContainsFunc(voters, func(m *member) bool { return !m.fit() || !m.Active || m.info.Lost > 0 })
}

// worth ranks replicas that may remain as learners. Replicas that have the log come first.
func (s *survey) worth(m *member) int {
	switch {
	case m.Active && (m.voter || m.promotable()):
		return 2
	case m.Active:
		return 1
	}
	return 0
}

// changes returns what the step makes of the given members.
func (s Step) changes(of []*member) (all changes) {
	slices.SortFunc(of, func(a, b *member) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range of {
		as := removed
		switch {
		case slices.Contains(s.Promote, m.ID):
			as = promoted
		case slices.Contains(s.Demote, m.ID):
			as = demoted
		}
		all = append(all, changed{m, as})
	}
	return all
}
