package history

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// evidence contains the events of a history and what one call of Judge has derived from them.
// Events, sets, keys and grants are identified by their indexes in the slices, where -1 means none.
type evidence struct {
	events                 []Event
	uncertain, settle, end int64
	settled                bool

	keys    map[string]int32
	sets    []set
	mutexes map[string]int32 // by key, the index of the set of exclusive requests for only this key
	kinds   map[string]int32 // all other sets, by their keys and permits
	crowded []bool           // for each key, whether a request for several keys includes it
	streams []stream
	groups  []*account
	carried []int32 // Grant events without seq

	grants  []grant
	byToken map[uint64]int32
	ordered []int32 // all grants in the order of their tokens; nil if no grant is a stay
	// for each session, the first known return of one of its tokens
	sessions map[lockfsm.SessionID]int32
	holes    error
	entered  []entered
}

// broken returns a *Violation. It omits events that are -1.
func (j *evidence) broken(rule Rule, events []int32, format string, args ...any) error {
	v := &Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	for _, e := range events {
		if e >= 0 {
			v.Events = append(v.Events, j.events[e])
		}
	}
	return v
}

func (j *evidence) unsure(format string, args ...any) {
	if j.holes == nil {
		j.holes = unknown(format, args...)
	}
}

// set is the keys and permits of a request. Equal requests share one set.
type set struct {
	like *Event
	name string
	keys []int32
}

// terms returns the terms of a request with this set for the key.
func (s *set) terms(e *Event, key int32) (permits, of int64) {
	return e.TermsOf(slices.Index(s.keys, key))
}

func (j *evidence) set(e *Event) int32 {
	plain := len(e.Keys) == 0 && e.alone() && e.Upgrades == 0
	known, name := j.mutexes, e.Key
	if !plain {
		known, name = j.kinds, fmt.Sprintf("%d %d %s %d %q", e.Permits, e.Of, e.Modes, e.Upgrades,
			append([]string{e.Key}, e.Keys...))
	}
	n, found := known[name]
	if found {
		return n
	}
	n = int32(len(j.sets))
	known[name] = n
	s := set{like: e, name: e.asked(), keys: []int32{j.key(e.Key)}}
	for _, key := range e.Keys {
		s.keys = append(s.keys, j.key(key))
	}
	for _, key := range s.keys {
		j.crowded[key] = j.crowded[key] || len(s.keys) > 1
	}
	j.sets = append(j.sets, s)
	return n
}

func (j *evidence) key(name string) int32 {
	k, known := j.keys[name]
	if !known {
		k = int32(len(j.keys))
		j.keys[name] = k
		j.crowded = append(j.crowded, false)
	}
	return k
}

func (j *evidence) meet(a, b int32) bool {
	return a == b || slices.ContainsFunc(j.sets[a].keys,
		func(key int32) bool { return slices.Contains(j.sets[b].keys, key) })
}

// as returns the request of a grant as it is at this point of the log.
func (j *evidence) as(g *grant) *Event {
	like := j.sets[g.set].like
	if g.shared >= 0 {
		shared := *like
		shared.Permits, shared.Modes = j.events[g.shared].Permits, j.events[g.shared].Modes
		return &shared
	}
	return like
}

func (j *evidence) granted(i int32) *Event { return &j.events[j.grants[i].event] }

// told returns the grant or the pass with a token that a call has returned. It returns nil if there
// is neither a grant with this token nor a stay that has reserved it.
func (j *evidence) told(e *Event) *grant {
	token := e.Token
	if i, known := j.byToken[uint64(token)]; known {
		g := &j.grants[i]
		if e.Outcome == Granted && j.events[g.event].Last == token {
			return j.pass(g, token)
		}
		return g
	}
	n, _ := slices.BinarySearchFunc(j.ordered, token,
		func(i int32, token lockfsm.Token) int { return cmp.Compare(j.granted(i).Token, token) })
	if n == 0 || j.granted(j.ordered[n-1]).Last < token {
		return nil
	}
	return j.pass(&j.grants[j.ordered[n-1]], token)
}

// pass returns the pass with a token of the stay g.
func (j *evidence) pass(g *grant, token lockfsm.Token) *grant {
	s := g.stay
	n, known := slices.BinarySearchFunc(s.passes, token,
		func(p pass, token lockfsm.Token) int { return cmp.Compare(p.token, token) })
	if !known {
		s.passes = slices.Insert(s.passes, n, pass{newGrant(g.set, g.event, g.group), token})
	}
	return &s.passes[n].grant
}
