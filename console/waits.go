package console

import (
	"slices"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// This file builds the trees of waiting requests. The top of a tree is a key whose holders wait for
// no other key. Below a key are its waiters in the order of the queue. Below a waiter are the keys
// that it holds and that other requests wait for. If a waiter holds a key above itself in the tree,
// the keys between the two form a circle.

const (
	maxTrees   = 12
	maxRows    = 24
	maxWaiters = 4  // rows of waiters below a key; a further waiter has a row only if it holds a key
	maxDepth   = 10 // a key below this depth begins a tree of its own
)

// tree contains the requests and keys that are blocked by one key. The first row of the tree is
// that key.
type tree struct {
	rows    []row
	circles [][]link
}

type link struct {
	Holder   string `json:"holder"`
	Holds    string `json:"holds"`
	WaitsFor string `json:"waits_for"`
}

type row struct {
	depth   int
	key     *key   // set if the row is a key
	waiter  string // name, if the row is a waiter
	value   string
	calls   int    // number of requests of the waiter that follow each other in the queue
	back    int    // the row above this one whose key the waiter holds, or -1
	again   string // a key that the waiter holds and that is drawn elsewhere, or ""
	more    int    // if the row stands for several waiters, their number
	standby bool   // these waiters stand by: they have a purpose for which they wait long by design
	parent  int    // the row above to which this row is connected, or -1
	circled bool
}

type forester struct {
	scene *scene
	infos map[string]queued
	order []string            // keys with waiters; the key with the most waiters comes first
	holds map[string][]string // the keys that a session has held for long while others wait
	waits map[string]bool     // sessions that wait for a key that they do not hold
	drawn map[string]bool
}

func (s *scene) waits() (forest []tree, left int) {
	f := &forester{scene: s, infos: map[string]queued{}, holds: map[string][]string{}, waits: map[string]bool{},
		drawn: map[string]bool{}}
	for _, k := range s.all.keys {
		if k.Waiting == 0 {
			continue
		}
		f.infos[k.Key] = queued{k}
		f.order = append(f.order, k.Key)
		for _, st := range k.Queue {
			if standsBy(st) {
				continue // no work of the session waits behind it
			} else if st.Token == 0 {
				f.waits[st.Session] = f.waits[st.Session] || !holdsIt(k, st.Session)
			} else if s.isLong(k) && s.age(st) >= s.long && !slices.Contains(f.holds[st.Session], k.Key) {
				f.holds[st.Session] = append(f.holds[st.Session], k.Key)
			}
		}
	}
	slices.SortStableFunc(f.order, func(a, b string) int { return f.infos[b].active() - f.infos[a].active() })
	for _, tops := range []bool{true, false} { // the second pass draws keys that depend on a circle
		for _, name := range f.order {
			if f.drawn[name] || tops && f.depends(f.infos[name]) {
				continue
			}
			if len(forest) == maxTrees {
				break
			}
			t := tree{}
			f.grow(&t, name, 0, -1, nil)
			forest = append(forest, t)
		}
	}
	return forest, len(f.order) - len(f.drawn)
}

func (f *forester) depends(k queued) bool {
	return slices.ContainsFunc(k.Queue, func(st mortise.Standing) bool {
		return st.Token != 0 && f.waits[st.Session] && slices.Contains(f.holds[st.Session], k.Key)
	})
}

// grow adds a key and its waiters. The slice `above` contains the rows of the keys between the
// top of the tree and this key.
func (f *forester) grow(t *tree, name string, depth, parent int, above []int) {
	k := f.infos[name]
	shown := f.scene.key(k.KeyInfo, queueShown)
	f.drawn[name] = true
	at := len(t.rows)
	t.rows = append(t.rows, row{depth: depth, key: &shown, back: -1, parent: parent})
	above = append(slices.Clone(above), at)
	plain, told := 0, 0
	met := map[string]bool{} // sessions whose held keys have been added
	for _, same := range k.waiters() {
		held := f.others(k, same.Session)
		if met[same.Session] {
			held = nil
		}
		met[same.Session] = true
		if plain++; len(held) == 0 && plain > maxWaiters || len(t.rows) >= maxRows {
			continue
		}
		told += same.calls
		f.waiter(t, same, held, depth, at, above)
	}
	if rest := k.active() - told; rest > 0 {
		t.rows = append(t.rows, row{depth: depth + 1, more: rest, back: -1, parent: at})
	}
	if n := k.Waiting - k.active(); n > 0 {
		t.rows = append(t.rows, row{depth: depth + 1, more: n, standby: true, back: -1, parent: at})
	}
}

// others returns the keys that a session has held for long while other requests wait for them. It
// returns none if the session also holds k, because then another call of the session waits for k.
func (f *forester) others(k queued, session string) []string {
	if holdsIt(k.KeyInfo, session) {
		return nil
	}
	return f.holds[session]
}

func holdsIt(k mortise.KeyInfo, session string) bool {
	return slices.ContainsFunc(k.Queue, func(st mortise.Standing) bool {
		return st.Token != 0 &&
			st.Session == session
	})
}

type queued struct{ mortise.KeyInfo }

// standsBy reports whether a request waits long by design, as a candidate of an election or for the
// next tick. Its session does other work meanwhile, so it is no edge between the two.
func standsBy(st mortise.Standing) bool {
	is := st.Labels[shown.PurposeLabel]
	return st.Token == 0 && (is == shown.Election || is == shown.Tick)
}

// active returns the number of waiters that do not stand by, as far as the queue is known. Waiters
// beyond the known part are like the first one.
func (k queued) active() int {
	known, idle, all := 0, 0, false
	for _, st := range k.Queue {
		if st.Token != 0 {
			continue
		}
		known++
		if standsBy(st) {
			idle++
			all = all || known == 1
		}
	}
	if all {
		idle += k.Waiting - known
	}
	return max(k.Waiting-idle, 0)
}

type calls struct {
	mortise.Standing
	calls int
}

func (k queued) waiters() (all []calls) {
	for _, st := range k.Queue {
		if last := len(all) - 1; st.Token != 0 || standsBy(st) {
			continue
		} else if last >= 0 && all[last].Session == st.Session && all[last].Value == st.Value {
			all[last].calls++
			continue
		}
		all = append(all, calls{st, 1})
	}
	return all
}

func (f *forester) waiter(t *tree, st calls, held []string, depth, at int, above []int) {
	place := len(t.rows)
	t.rows = append(t.rows, row{depth: depth + 1, waiter: st.Holder, value: st.Value, calls: st.calls, back: -1,
		parent: at})
	for _, other := range held {
		from := slices.IndexFunc(above, func(i int) bool { return t.rows[i].key.Name == other })
		switch {
		case from >= 0:
			t.rows[place].back = above[from]
			t.circle(above[from:], place)
		case f.drawn[other], depth == maxDepth, len(t.rows) >= maxRows:
			t.rows[place].again = other
		default:
			f.grow(t, other, depth+2, place, above)
		}
	}
}

// circle records a circle of holders that wait for each other. The slice rows contains the rows
// of the keys in the circle. The waiter that holds the first key is in the row t.rows[place].
func (t *tree) circle(rows []int, place int) {
	name := func(at int) string { return t.rows[at].key.Name }
	var links []link
	for i, at := range rows {
		who, next := t.rows[place].waiter, rows[len(rows)-1]
		if i > 0 {
			who, next = t.rows[t.rows[at].parent].waiter, rows[i-1]
		}
		links = append(links, link{Holder: who, Holds: name(at), WaitsFor: name(next)})
	}
	for at := place; at >= rows[0]; at = t.rows[at].parent {
		t.rows[at].circled = true
	}
	t.circles = append(t.circles, links)
}

func circlesOf(forest []tree) [][]link {
	all := [][]link{}
	for _, t := range forest {
		all = append(all, t.circles...)
	}
	return all
}
