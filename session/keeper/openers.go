package keeper

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// claim is what the Attach of a session claims: that the starts of the instance by, from since on
// and before the start that has opened the session, have ended.
type claim struct {
	by            nodeid.ID
	since, before uint64
}

// openers knows which sessions each instance has opened, without those that are gone.
type openers struct {
	first  map[nodeid.ID]*keptSession // of a list, the newest first
	count  map[nodeid.ID]int
	claims []claim // of this turn, and while sessions of the state are still to be entered
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
