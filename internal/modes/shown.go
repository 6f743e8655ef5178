package modes

import "github.com/mortise-lock/mortise/lockfsm"

// Shown returns the part that a caller has asked for, from the terms of the group. It is the
// inverse of Expand, as far as the group knows what was asked for: see lockfsm.Grant.Parts.
func Shown(p *lockfsm.Part) Part {
	s := Part{Key: p.Key, Tree: p.Tree}
	switch {
	case p.Of != 0:
		s.Mode = Permits(int(p.Permits), int(p.Of))
	case p.Mode == lockfsm.ModeIS || p.Mode == lockfsm.ModeS:
		s.Mode = Shared
	case p.Mode == lockfsm.ModeU:
		s.Mode = Upgradable
	}
	return s
}
