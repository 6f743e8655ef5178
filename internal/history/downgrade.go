package history

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file judges downgrades. A downgrade makes an exclusive grant shared. The grant keeps its
// token. Its caller acts as a reader from the moment at which it sends the downgrade, so other
// readers may be granted the lock as soon as the state has changed.

// sheds reports whether e is of a lock that can become shared.
func (e *Event) sheds() bool { return e.Permits == 0 && e.Of == 0 && e.Upgrades == 0 }

// share replays that an exclusive grant becomes shared.
func (w *sweeper) share(s step) error {
	e := &w.events[s.event]
	i, known := w.byToken[uint64(e.Token)]
	if !known {
		return w.broken(Ends, []int32{s.event}, "%s becomes shared with token %d, which was never granted", e.asked(),
			e.Token)
	}
	g := &w.grants[i]
	current := func(key int32) bool { return slices.Contains(w.keys[key].current, i) }
	if lowers := w.as(g).sheds(); !lowers || g.stay != nil || !slices.ContainsFunc(w.sets[g.set].keys, current) {
		return w.broken(Ends, []int32{g.event, g.shared, g.end, s.event},
			"%s becomes shared with token %d, which does not hold it exclusively", e.asked(), e.Token)
	}
	had := w.as(g)
	g.shared = s.event
	for _, key := range w.sets[g.set].keys {
		if k := &w.keys[key]; current(key) {
			before, _ := w.sets[g.set].terms(had, key)
			permits, _ := w.sets[g.set].terms(w.as(g), key)
			k.taken += permits - before
		}
	}
	before, after := had.grant(), w.as(g).grant()
	raised := func(key string) bool {
		from, _ := before.Mode(key)
		to, is := after.Mode(key)
		return is && !from.Covers(to)
	}
	if raised(e.Key) || slices.ContainsFunc(e.Keys, raised) {
		return w.broken(Ends, []int32{g.event, s.event}, "%s with token %d gets modes that its own do not cover: %s",
			had.asked(), e.Token, e.asked())
	}
	if !w.as(g).alike(e) {
		return w.broken(Ends, []int32{g.event, s.event}, "%s becomes shared with token %d, which is of %s", e.asked(),
			e.Token, w.sets[g.set].name)
	}
	if c := g.owner; c != nil {
		at, because := c.believedAlone()
		w.notBefore(at, because, true)
	}
	return w.notAfter(s.at, s.event, s.event)
}

// grant returns what a request like e would include.
func (e *Event) grant() *lockfsm.Grant {
	g := &lockfsm.Grant{Key: e.Key, Keys: e.Keys, Permits: e.Permits, Of: e.Of}
	for _, mode := range e.Modes {
		g.Modes = append(g.Modes, lockfsm.Mode(mode-'0'))
	}
	return g
}

// reads reports whether a holder with the modes of e only reads.
func (e *Event) reads() bool { return e.Of == 0 && e.grant().Reads() }

// unasked judges a downgraded grant. If the owner's node ran for long enough after the downgrade,
// the owner must have recorded that it acts as a reader, or that its hold has ended.
func (j *judge) unasked(g *grant) error {
	if g.owner == nil || g.shared < 0 {
		return nil
	}
	_, because := g.owner.believedAlone()
	node := &j.streams[j.events[g.owner.ret].Stream]
	if because >= 0 || node.last <= j.events[g.shared].At+j.settle+j.uncertain {
		return nil
	}
	return j.broken(Zombie, []int32{g.owner.ret, g.event, g.shared},
		"%s with token %d has become shared, but its caller did not ask for it", j.sets[g.set].name,
		j.events[g.owner.ret].Token)
}

// lowers reports whether g can be the grant of the call c although g is shared and c asked for an
// exclusive lock. The voters know g only from a state after its downgrade.
func (j *judge) lowers(g *grant, c *call) bool {
	e, asked := &j.events[g.event], &j.events[c.called]
	return e.Seq == 0 && c.downgrade >= 0 && asked.sheds() && e.reads() && e.Key == asked.Key &&
		slices.Equal(e.Keys, asked.Keys)
}
