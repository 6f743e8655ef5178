package console

import (
	"slices"

	"github.com/mortise-lock/mortise"
)

// This file builds the graph of waits. A key on which no other wait depends is the top of a
// tree. Below it are its waiters in their order, and below each waiter the keys that it holds
// meanwhile and that others wait for. So the holder at the top blocks everything below it. A branch
// that returns to a key above it is a circle.

// Limits of the picture.
const (
	maxTrees   = 12
	maxRows    = 24 // of one tree
	maxWaiters = 4  // below one key, besides waiters that hold other keys
	maxDepth   = 10 // deeper keys begin a tree of their own
)

// tree is what depends on one key, from the top, row by row.
type tree struct {
	rows    []row
	circles [][]link
}

// link is one holder that may wait for another.
type link struct {
	Holder   string `json:"holder"`
	Holds    string `json:"holds"`
	WaitsFor string `json:"waits_for"`
}

// row is one line of a tree: a key, a waiter, or how many more wait.
type row struct {
	depth   int
	key     *key   // for a key
	waiter  string // for a waiter: its name
	value   string
	calls   int    // how many of its requests are here, one after the other
	back    int    // for a waiter that holds a key above: the row of that key; else -1
	again   string // for a waiter that holds a key elsewhere: that key
	more    int    // for the rest: how many
	parent  int    // the row that this one hangs on, or -1
	circled bool
}

type forester struct {
	scene *scene
	infos map[string]queued
	order []string            // keys with waiters, in the order in which they came to be
	holds map[string][]string // by session: the keys with waiters that it has held for long
	waits map[string]bool     // sessions that wait for a key that they do not hold themselves
	drawn map[string]bool
}

// waits returns the trees, those with the most waiters first, and how many keys are left out.
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
			if st.Token == 0 {
				f.waits[st.Session] = f.waits[st.Session] || !holdsIt(k, st.Session)
			} else if s.isLong(k) && s.age(st) >= s.long && !slices.Contains(f.holds[st.Session], k.Key) {
				f.holds[st.Session] = append(f.holds[st.Session], k.Key)
			}
		}
	}
	slices.SortStableFunc(f.order, func(a, b string) int { return f.infos[b].Waiting - f.infos[a].Waiting })
	for _, tops := range []bool{true, false} { // what remains after the tops hangs on a circle
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

// depends reports whether a session that has held the key for long waits for another key.
func (f *forester) depends(k queued) bool {
	return slices.ContainsFunc(k.Queue, func(st mortise.Standing) bool {
		return st.Token != 0 && f.waits[st.Session] && slices.Contains(f.holds[st.Session], k.Key)
	})
}

// grow adds a key and what hangs on it. above are the rows of the keys from the top to here.
func (f *forester) grow(t *tree, name string, depth, parent int, above []int) {
	k := f.infos[name]
	shown := f.scene.key(k.KeyInfo, queueShown)
	f.drawn[name] = true
	at := len(t.rows)
	t.rows = append(t.rows, row{depth: depth, key: &shown, back: -1, parent: parent})
	above = append(slices.Clone(above), at)
	plain, told := 0, 0
	met := map[string]bool{} // sessions whose own keys have been added
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
	if rest := k.Waiting - told; rest > 0 {
		t.rows = append(t.rows, row{depth: depth + 1, more: rest, back: -1, parent: at})
	}
}

// others returns the keys with waiters that a session has held for long, if it may wait for k under
// them. It returns none if the session holds k too: then another of its callers waits.
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

// queued returns a key if requests wait for it.
type queued struct{ mortise.KeyInfo }

// calls are one or more requests, one after the other, that look alike.
type calls struct {
	mortise.Standing
	calls int
}

// waiters returns the waiters for a key, in their order.
func (k queued) waiters() (all []calls) {
	for _, st := range k.Queue {
		if last := len(all) - 1; st.Token != 0 {
			continue
		} else if last >= 0 && all[last].Session == st.Session && all[last].Value == st.Value {
			all[last].calls++
			continue
		}
		all = append(all, calls{st, 1})
	}
	return all
}

// waiter adds a waiter for the key of row at, and the keys that it holds.
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

// circle records that the holders of the keys of these rows wait for each other, and that the
// waiter in row place closes the circle.
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
