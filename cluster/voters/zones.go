package voters

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The spread of voters is better if fewer pairs of them share a zone. A replica of an unknown
// instance shares no zone, because missing information must not cause a change.

func load(list []*member, zone string) int {
	n := 0
	for _, m := range list {
		if m.known && m.info.Zone == zone {
			n++
		}
	}
	return n
}

func pairs(list []*member) int {
	n := 0
	for i, m := range list {
		if m.known {
			n += load(list[:i], m.info.Zone)
		}
	}
	return n
}

// settled reports whether the voters are complete and healthy, so that only their zones may need
// a change.
func (s *survey) settled() bool {
	return len(s.voters) == s.target &&
		len(where(s.voters, func(m *member) bool { return m.fit() && m.Active && m.info.Lost == 0 })) == len(s.voters)
}

// displaced returns the voter that an instance should replace to improve the zones, or nil. It
// never returns the leader. An instance that was lost recently replaces no voter, since it could
// be lost again and would then be replaced itself.
func (s *survey) displaced(r Registered, who nodeid.ID) *member {
	if !s.settled() || r.Lost > 0 {
		return nil
	}
	var out *member
	best := 0
	for i, v := range s.voters {
		if v.self || !v.known {
			continue
		}
		others := make([]*member, 0, len(s.voters))
		others = append(append(others, s.voters[:i]...), s.voters[i+1:]...)
		if gain := load(others, v.info.Zone) - load(others, r.Zone); gain > best && !s.clash(others, r, who) {
			out, best = v, gain
		}
	}
	return out
}

func (s *survey) clash(list []*member, r Registered, who nodeid.ID) bool {
	for _, m := range list {
		if s.rivals(r, m.info, who, m.Instance) {
			return true
		}
	}
	return false
}

// swap exchanges one voter for a learner to improve the zones. It returns the new voters, or nil if
// no exchange is possible.
func (s *survey) swap() []*member {
	var in, out *member
	best := pairs(s.voters)
	for _, l := range s.learners {
		if !l.promotable() {
			continue
		}
		if v := s.displaced(l.info, l.Instance); v != nil {
			if n := pairs(exchange(s.voters, v, l)); n < best {
				in, out, best = l, v, n
			}
		}
	}
	if in == nil {
		return nil
	}
	return exchange(s.voters, out, in)
}

func exchange(list []*member, out, in *member) []*member {
	changed := make([]*member, 0, len(list))
	for _, m := range list {
		if m == out {
			m = in
		}
		changed = append(changed, m)
	}
	return changed
}

// even takes the chosen members, and returns them after exchanges that improve their zones. It
// exchanges one or two members at a time, each for a member of the same kind. This is needed
// because the method take chooses the members of each kind separately, so members of two kinds
// can be crowded into one zone.
func (s *survey) even(chosen []*member) []*member {
	for pairs(chosen) > 0 {
		better := s.better(chosen, pairs(chosen), 2)
		if better == nil {
			break
		}
		chosen = better
	}
	return chosen
}

// better makes at most the given number of exchanges in a copy of list, so that fewer than n
// pairs share a zone. It returns that copy, or nil if this is impossible.
func (s *survey) better(list []*member, n, exchanges int) []*member {
	for _, out := range list {
		for _, in := range slices.Concat(s.voters, s.learners) {
			alike := !out.self && in.voter == out.voter && in.fit() == out.fit() && in.Active == out.Active &&
				(in.voter || in.promotable())
			if !alike || slices.Contains(list, in) {
				continue
			}
			next := exchange(list, out, in)
			if pairs(next) < n && len(s.take(nil, len(next), next)) == len(next) {
				return next
			}
			if exchanges > 1 {
				if next = s.better(next, n, exchanges-1); next != nil {
					return next
				}
			}
		}
	}
	return nil
}
