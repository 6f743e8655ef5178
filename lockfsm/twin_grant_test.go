package lockfsm

import "slices"

// grant returns what the resumed hold of a session includes, or nil if the request is none.
func (t *twin) grant(id SessionID, n Number) *Grant {
	e := t.find(id, n)
	if e == nil || !e.resumed {
		return nil
	}
	g := &Grant{Key: e.keys[0], Keys: e.keys[1:], Delay: e.delay, Value: e.value}
	plain := func(mode Mode) bool {
		return !slices.ContainsFunc(e.modes, func(each Mode) bool { return each != mode })
	}
	switch {
	case plain(ModeX):
	case plain(ModeIS):
		g.Permits = 1
	case plain(ModePermits):
		g.Permits, g.Of = uint32(e.shares[0].permits), uint32(e.shares[0].of)
	default:
		g.Modes = e.modes
	}
	return g
}
