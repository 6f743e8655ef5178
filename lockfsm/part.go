package lockfsm

import (
	"slices"
	"strings"
)

// Part is one key of a request, as its caller has asked for it.
type Part struct {
	Key         string
	Mode        Mode   // ModeIS if it is shared, ModeS if it is shared with all keys below; never ModeIX
	Permits, Of uint32 // with ModePermits, as in Command
	Tree        bool   // the request has an intention for each key above
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

// eachPart calls do for each part of e's request.
func (e *entry) eachPart(do func(Part)) {
	all := e.all(new([1]*entry))
	if len(all) > 1 && e.modes() != nil {
		for _, p := range e.grant().Parts() {
			do(p)
		}
		return
	}
	for _, each := range all { // equal modes of all keys
		if each.mode != ModeIX {
			do(each.part())
		}
	}
}

// part returns the only part of the request of e, or one of several with equal modes.
func (e *entry) part() Part {
	p := Part{Key: e.lock.key, Mode: e.mode, Tree: e.mode == ModeS}
	if e.mode == ModePermits {
		p.Permits, p.Of = e.permits, e.of
	}
	return p
}
