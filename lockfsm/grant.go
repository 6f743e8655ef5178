package lockfsm

import (
	"slices"
	"strings"
	"time"
)

// Grant is what a hold includes. The session that resumes a hold learns its Grant from the group,
// because only the group knows it: the hold may have been requested by another build, downgraded,
// or given another value since. A Grant must not be changed. A zero Grant includes nothing.
type Grant struct {
	Key         string
	Keys        []string // the further keys, ascending and above Key
	Permits, Of uint32   // as in Command; used for all keys if Modes is nil
	Modes       []Mode   // of Key and Keys, in their order, or nil
	Delay       time.Duration
	Value       []byte
}

// Semaphore reports whether g is for permits of a semaphore.
func (g *Grant) Semaphore() bool { return g.Modes == nil && g.Of != 0 }

// Shared reports whether g is for shared keys without modes.
func (g *Grant) Shared() bool { return g.Modes == nil && g.Of == 0 && g.Permits != 0 }

// Upgradable reports whether g is for an upgradable key.
func (g *Grant) Upgradable() bool { return len(g.Modes) == 1 && g.Modes[0] == ModeU }

// Reads reports whether g lets its holder read only: each key is shared, and no permits count.
func (g *Grant) Reads() bool {
	exclusive := func(m Mode) bool { return m == ModeX || m == ModeU || m == ModeIX }
	return g.Shared() || g.Modes != nil && !slices.ContainsFunc(g.Modes, exclusive)
}

// Mode returns the mode in which g includes key. It reports false if g does not include key.
func (g *Grant) Mode(key string) (Mode, bool) {
	if g.Key == "" {
		return 0, false
	}
	if key == g.Key {
		return g.mode(0), true
	}
	i, found := slices.BinarySearch(g.Keys, key)
	if !found {
		return 0, false
	}
	return g.mode(1 + i), true
}

// mode returns the mode of the key at a place, which counts from zero for Key.
func (g *Grant) mode(place int) Mode {
	switch {
	case place < len(g.Modes):
		return g.Modes[place]
	case g.Of != 0:
		return ModePermits
	case g.Permits != 0:
		return ModeIS
	}
	return ModeX
}

// Readers returns the modes of a Downgrade after which g only reads its keys. With tree, the keys
// that g has locked alone or together with all keys below stay closed to writers of the keys below.
func (g *Grant) Readers(tree bool) []Mode {
	modes := make([]Mode, 1+len(g.Keys))
	for i := range modes {
		modes[i] = g.mode(i).reader(tree)
	}
	return modes
}

// Lowered returns g after a Downgrade to these modes.
func (g Grant) Lowered(modes []Mode) Grant {
	g.Permits, g.Of, g.Modes = 0, 0, modes
	switch plain := slices.Compact(slices.Clone(modes)); {
	case slices.Equal(plain, []Mode{ModeIS}):
		g.Permits, g.Modes = 1, nil
	case slices.Equal(plain, []Mode{ModeX}):
		g.Modes = nil
	}
	return g
}

// Parts returns the keys of g in ascending order, without those that have only an intention for a
// key below. The group has each key once, in the mode that includes all that the caller has asked
// for. So a shared key is omitted if it is also above a shared tree, and an exclusive key is a tree
// if it is also a node of one.
func (g *Grant) Parts() []Part {
	all := make([]Part, 0, 1+len(g.Keys))
	if g.Modes == nil {
		for i := range 1 + len(g.Keys) {
			p := Part{Key: g.key(i), Mode: g.mode(i)}
			if g.Semaphore() {
				p.Permits, p.Of = g.Permits, g.Of
			}
			all = append(all, p)
		}
		return all
	}
	reads := g.aboveReads()
	trees := make([]bool, len(g.Modes))
	for i, m := range g.Modes {
		if up := g.parent(i); m == ModeX && up >= 0 {
			trees[i] = g.Modes[up] == ModeIX || trees[up]
		}
		if m == ModeIX || m == ModeIS && reads[i] {
			continue
		}
		all = append(all, Part{Key: g.key(i), Mode: m, Tree: m == ModeS || trees[i]})
	}
	return all
}

// aboveReads reports for each key whether it is above a key with ModeS.
func (g *Grant) aboveReads() []bool {
	above := make([]bool, len(g.Modes))
	for i := len(g.Modes) - 1; i > 0; i-- { // a key is behind the keys above it
		if up := g.parent(i); up >= 0 && (above[i] || g.Modes[i] == ModeS) {
			above[up] = true
		}
	}
	return above
}

// parent returns the place of the key directly above the key at a place, or -1.
func (g *Grant) parent(place int) int {
	key := g.key(place)
	slash := strings.LastIndexByte(key, '/')
	if slash < 0 {
		return -1
	}
	if key = key[:slash]; key == g.Key {
		return 0
	}
	if i, found := slices.BinarySearch(g.Keys, key); found {
		return 1 + i
	}
	return -1
}

func (g *Grant) key(place int) string {
	if place == 0 {
		return g.Key
	}
	return g.Keys[place-1]
}
