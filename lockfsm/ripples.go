package lockfsm

import (
	"cmp"
	"slices"
)

// ripples has the requests on which the present command may have an effect, and the effects so far.
type ripples struct {
	touched   []*entry
	visited   []*entry
	contested []*lock  // locks that were granted while requests with Try waited
	fired     []Change // see Result.Fired
	ended     []Change // requests with Try that have ended
}

func (r *ripples) begin() { r.fired, r.ended = emptied(r.fired), emptied(r.ended) }

// all returns the effects of the command, which has ended: those on requests that are live before
// those on requests with Try that have ended.
func (r *ripples) all() []Change {
	r.fired = append(r.fired, r.ended...)
	return r.fired
}

func (r *ripples) touch(e *entry)   { r.touched = append(r.touched, e.lead()) }
func (r *ripples) visit(e *entry)   { r.visited = append(r.visited, e) }
func (r *ripples) contest(l *lock)  { r.contested = append(r.contested, l) }
func (r *ripples) changed(c Change) { r.fired = append(r.fired, c) }
func (r *ripples) end(c Change)     { r.ended = append(r.ended, c) }

func (r *ripples) isCalm() bool { return len(r.touched) == 0 && len(r.contested) == 0 }

func (r *ripples) touchedInOrder() []*entry { return inOrderOfPlace(r.touched) }
func (r *ripples) visitedInOrder() []*entry { return inOrderOfPlace(r.visited) }

// contestedInOrder returns the contested locks in the order of their creation.
func (r *ripples) contestedInOrder() []*lock {
	slices.SortFunc(r.contested, func(a, b *lock) int { return cmp.Compare(a.position, b.position) })
	return slices.Compact(r.contested)
}

func (r *ripples) forgetTouched() {
	clear(r.touched)
	r.touched = emptied(r.touched)
}

func (r *ripples) forgetVisited() {
	clear(r.visited)
	r.visited = emptied(r.visited)
}

func (r *ripples) forgetContested() {
	clear(r.contested)
	r.contested = emptied(r.contested)
}

// inOrderOfPlace sorts the requests that still exist, each once, to the front of all.
func inOrderOfPlace(all []*entry) []*entry {
	live := all[:0]
	for _, e := range all {
		if e.lock != nil {
			live = append(live, e)
		}
	}
	slices.SortFunc(live, byPlace)
	return slices.Compact(live)
}
