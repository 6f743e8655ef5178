package history

import (
	"math"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/lockfsm"
)

// entering judges the requests that entered a lock again. The product decides with the order of
// the modes whether a lock covers a request. This judge does not trust that order. It computes with
// permits: the lock must exclude everything that a grant of the request would exclude.
type entering struct{ *evidence }

type share struct{ permits, of int64 }

// beside reports whether a and b can hold a key together.
func (a share) beside(b share) bool { return a.permits+b.permits <= min(a.of, b.of) }

// excludes reports whether a holder with the terms a excludes all that one with the terms b does.
func (a share) excludes(b share) bool {
	for mode := lockfsm.ModeX; mode <= lockfsm.ModeU; mode++ {
		if third := shareOf(&Event{Modes: Modes([]lockfsm.Mode{mode})}, 0); a.beside(third) && !b.beside(third) {
			return false
		}
	}
	return true
}

func shareOf(e *Event, i int) share {
	permits, of := e.TermsOf(i)
	return share{permits, of}
}

func (j entering) inside() error {
	for _, in := range j.entered {
		e := &j.events[in.event]
		ret := in.op.ret
		if ret < 0 || j.events[ret].Outcome != Granted || in.op.unlock >= 0 {
			return j.broken(Inside, []int32{in.op.called, ret, in.op.unlock, in.event},
				"%s enters the lock of call %d, which does not hold it", e.asked(), e.Op)
		}
		g := j.told(&j.events[ret])
		if g == nil {
			continue // claim has judged the token
		}
		has := *j.sets[g.set].like
		if in.op.downgrade >= 0 {
			has = *j.as(g)
		}
		if !covers(&has, e) {
			return j.broken(Inside, []int32{in.op.called, ret, g.event, in.op.downgrade, in.event},
				"%s enters the lock of call %d, which is of %s", e.asked(), e.Op, has.asked())
		}
	}
	return nil
}

// covers reports whether the grant of has excludes all that a grant of want would exclude. Permits
// of a semaphore cover nothing. The keys of want with modes are the nodes of a path, from the root
// down. If the lock of a node leaves no place for an intention that conflicts with want, then no
// other request can lock a node below it.
func covers(has, want *Event) bool {
	if has.Of != 0 || want.Of != 0 {
		return false
	}
	keys, wanted := append([]string{has.Key}, has.Keys...), append([]string{want.Key}, want.Keys...)
	other := share{1, math.MaxInt64} // the intention of a reader below
	if reads := lockfsm.ModeS; strings.HasSuffix(want.Modes, Modes([]lockfsm.Mode{reads})) {
		other = shareOf(&Event{Modes: Modes([]lockfsm.Mode{lockfsm.ModeIX})}, 0)
	}
	for i, key := range wanted {
		at := slices.Index(keys, key)
		if at < 0 || !shareOf(has, at).excludes(shareOf(want, i)) {
			return false
		}
		if want.Modes != "" && !shareOf(has, at).beside(other) {
			return true
		}
	}
	return true
}
