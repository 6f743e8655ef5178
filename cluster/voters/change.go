package voters

import (
	"cmp"
	"slices"
	"strings"
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
	step.Why = s.sentence(step, said)
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

func (s *survey) sentence(step Step, said []*member) string {
	var parts []string
	slices.SortFunc(said, func(a, b *member) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range said {
		switch {
		case slices.Contains(step.Promote, m.ID):
			parts = append(parts, m.label()+" gets a vote")
		case slices.Contains(step.Demote, m.ID):
			parts = append(parts, m.label()+" becomes a learner")
		default:
			parts = append(parts, m.label()+" is removed"+m.reason())
		}
	}
	return strings.Join(parts, ", ")
}

func (m *member) reason() string {
	switch {
	case m.info.Leaving:
		return " (it leaves)"
	case m.dead && m.Renewed:
		return " (another instance uses its name and its address, without its directory)"
	case m.dead && m.LifeOver:
		return " (its process is gone)"
	case m.dead:
		return " (it is silent)"
	case m.foreign:
		return " (it is no founder)"
	case m.double:
		return " (its process has another replica)"
	}
	return " (it is not needed)"
}
