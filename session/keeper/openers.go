package keeper

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// claim is what an Attach claims. The zero claim claims nothing.
type claim struct {
	since  uint64 // the first of the earlier starts of the same instance that have ended
	former []byte // that another instance has ended, see session.ClaimFormer
}

// made is a claim of an attached session, of the instance by and its start with the number life.
type made struct {
	claim
	by   nodeid.ID
	life uint64
}

// ends reports whether the claim says that the start that has opened s has ended. A start of a copy
// of the directory, at another site, may run.
func (m *made) ends(s *keptSession) bool {
	return m.since <= s.life && s.life < m.life && nodeid.SameSite(s.life, m.life)
}

// openers knows which sessions each instance has opened, without those that are gone.
type openers struct {
	first  map[nodeid.ID]*keptSession // of a list, the newest first
	count  map[nodeid.ID]int
	claims []made // of this turn, and while sessions of the state are still to be entered
}

func newOpeners() openers {
	return openers{first: make(map[nodeid.ID]*keptSession), count: make(map[nodeid.ID]int)}
}

func (o *openers) add(s *keptSession) {
	by := nodeid.ID(s.opener.Instance)
	if s.later = nil; by.IsZero() {
		return
	}
	s.earlier = o.first[by]
	if s.earlier != nil {
		s.earlier.later = s
	}
	o.first[by] = s
	o.count[by]++
}

func (o *openers) drop(s *keptSession) {
	by := nodeid.ID(s.opener.Instance)
	if by.IsZero() {
		return
	}
	if s.earlier != nil {
		s.earlier.later = s.later
	}
	if s.later != nil {
		s.later.earlier = s.earlier
	} else {
		o.first[by] = s.earlier
	}
	if o.count[by]--; o.count[by] == 0 {
		delete(o.count, by)
		delete(o.first, by)
	}
}

// lives reports whether an instance has a session whose end is not decided.
func (o *openers) lives(by nodeid.ID) bool {
	for s := o.first[by]; s != nil; s = s.earlier {
		if !s.expiring {
			return true
		}
	}
	return false
}
