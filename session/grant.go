package session

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// A grant is the first key, the number of further keys, these keys, permits, of, the number of
// modes, the modes (1 byte each), delay, value.

func appendGrant(b []byte, g *lockfsm.Grant) []byte {
	b = appendUvarints(appendSized(b, []byte(g.Key)), uint64(len(g.Keys)))
	for _, key := range g.Keys {
		b = appendSized(b, []byte(key))
	}
	b = appendUvarints(b, uint64(g.Permits), uint64(g.Of), uint64(len(g.Modes)))
	for _, mode := range g.Modes {
		b = append(b, byte(mode))
	}
	return appendSized(appendUvarints(b, uint64(g.Delay)), g.Value)
}

// grant reads a grant and copies it. The keys must ascend, and there must be no mode, or one for
// each key.
func (f *fields) grant() *lockfsm.Grant {
	g := &lockfsm.Grant{Key: f.keyAbove("")}
	last := g.Key
	for range f.most(lockfsm.MaxKeys - 1) {
		last = f.keyAbove(last)
		g.Keys = append(g.Keys, last)
	}
	g.Permits, g.Of = uint32(f.most(1<<32-1)), uint32(f.most(1<<32-1))
	modes := f.sized(lockfsm.MaxKeys)
	f.bad = f.bad || len(modes) > 0 && len(modes) != 1+len(g.Keys)
	for _, mode := range modes {
		f.bad = f.bad || lockfsm.Mode(mode) > lockfsm.ModeU
		g.Modes = append(g.Modes, lockfsm.Mode(mode))
	}
	g.Delay = time.Duration(f.most(uint64(lockfsm.MaxDelay)))
	g.Value = append([]byte(nil), f.sized(lockfsm.MaxValueBytes)...)
	return g
}

func (f *fields) keyAbove(last string) string {
	key := string(f.sized(LongestKey))
	f.bad = f.bad || key <= last
	return key
}

// most reads a number of at most limit.
func (f *fields) most(limit uint64) uint64 {
	v := f.uvarint()
	if v > limit {
		f.bad = true
		return 0
	}
	return v
}
