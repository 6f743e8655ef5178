package lockfsm

import "slices"

// grant returns what the resumed hold of a session includes, or nil if the request is none.
func (t *twin) grant(id SessionID, n Number) *Grant {
	e := t.find(id, n)
	if e == nil || !e.resumed {
		return nil
	}
	g := &Grant{Key: e.keys[0], Keys: e.keys[1:], Delay: e.delay, Value: e.value}
	named := []share{ModeX: {1, 1}, ModeIS: {1, unlimited}, ModeIX: {1, 65_536}, ModeS: {65_536, 1<<32 - 1},
		ModeU: {1<<30 + 1, 1 << 31}}
	first := e.shares[0]
	mixed := slices.ContainsFunc(e.shares, func(one share) bool { return one != first })
	switch {
	case mixed, first == named[ModeS], first == named[ModeU]:
		for _, one := range e.shares {
			g.Modes = append(g.Modes, Mode(slices.Index(named, one)))
		}
	case first.of == unlimited:
		g.Permits = 1
	case first.of > 1:
		g.Permits, g.Of = uint32(first.permits), uint32(first.of)
	}
	return g
}
