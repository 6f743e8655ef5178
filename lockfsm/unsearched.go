package lockfsm

import (
	"cmp"
	"slices"
)

// A request whose Acquire has ended its search for a deadlock at the bound waits, and is marked as
// unsearched. The leader continues these searches outside the replicated state, a request at a time
// ([Machine.Search]). If it finds a deadlock, it proposes Refuse with the proof, which every
// replica checks with little work. The marks are not replicated: a restored machine marks all
// requests that wait under an owner.

// maxSearches bounds the searches for one request that an earlier deadlock delays. Such a search is
// repeated, because the request may be in a deadlock of its own when the earlier one has ended. If
// it is on a circle and still delayed by the last search, it is refused: the other deadlock may be
// one that this request delays. A request that is to be refused is searched until it has ended,
// since its Refuse changes nothing if another one has ended a request of its proof before.
const maxSearches = 4

// The bounds of a continued search. A deadlock beyond them lasts until one of its requests ends.
const (
	searchVisits = 32_768
	searchSteps  = 4 * searchVisits // with the simulations, whose steps are short
)

// Search is the result of [Machine.Search].
type Search struct {
	// Refuse is the command to propose, or nil.
	Refuse []byte
	// Steps is the work of the search, in steps of about 50 to 100 ns.
	Steps int
	// Again reports that a search of this request must be repeated, Left that there are searches
	// to continue.
	Again, Left bool
	// Tries counts the searches of this request beyond maxSearches, which only a request that is to be
	// refused has.
	Tries int
}

// Unsearched reports whether there are searches to continue.
func (m *Machine) Unsearched() bool { return m.unsearched.sessions.Len() > 0 }

// Search continues the search for a deadlock of one request. It serves the sessions in turn. It
// does not change the replicated state, and it takes some milliseconds at most.
func (m *Machine) Search() (result Search) {
	m.dropFree()
	first := m.unsearched.sessions.Front()
	if first == nil {
		return result
	}
	s := first.Value.(*session)
	e := s.unsearched.requests.Front().Value.(*entry)
	g := game{of: map[*entry]*player{}, rows: map[*lock]*row{}, joins: searchVisits, limit: searchSteps}
	var places []Place
	circle := false
	v := g.judge(e, func() { places, circle = g.proof(), g.path(s) != nil })
	e.extra.pending.searches++
	if v == isDelayed && circle && e.extra.pending.searches >= maxSearches {
		v = isCircle // two requests that were unsearched together can delay each other
	}
	if v == isCircle && !m.proves(e, slices.Values(places)) {
		v = beyond // too many requests for a proof
	}
	result.Steps = g.steps
	m.unsearched.sessions.MoveToBack(first)
	s.unsearched.requests.MoveToBack(e.extra.pending.at)
	if v == isCircle {
		result.Refuse = Command{Kind: Refuse, Session: s.id, Epoch: s.epoch, Number: e.number,
			Proof: places}.Append(nil)
	}
	result.Again = v == isCircle || v == isDelayed && e.extra.pending.searches < maxSearches
	if result.Tries = max(e.extra.pending.searches-maxSearches, 0); !result.Again {
		m.unsearched.drop(e)
	}
	result.Left = m.Unsearched()
	return result
}

// maxFree bounds the requests that one Search finds free by their counts alone.
const maxFree = 1024

// dropFree drops the marks of requests that need no search. After a restore, all that wait under an
// owner are marked, and a real deadlock must not wait for their turns.
func (m *Machine) dropFree() {
	for range maxFree {
		first := m.unsearched.sessions.Front()
		if first == nil {
			return
		}
		e := first.Value.(*session).unsearched.requests.Front().Value.(*entry)
		if !e.isFree() {
			return
		}
		m.unsearched.drop(e)
	}
}

// refuseLater applies a Refuse.
func (m *Machine) refuseLater(c *view, res *Result) {
	s := m.sessions.byID[c.Session]
	if s == nil {
		res.Code = NoSession
		return
	}
	e := s.request(c.Number)
	places := func(yield func(Place) bool) {
		for proof := c.proof; proof.left > 0 && yield(proof.next()); {
			continue
		}
	}
	if res.Code, res.Epoch = Finished, s.epoch; e == nil || !m.proves(e, places) {
		return
	}
	var circle []Link
	places(func(p Place) bool {
		if o := m.at(p); o.token == 0 && len(circle) < maxLinks {
			circle = append(circle, Link{Session: p.Session, Record: o.session.record, Key: o.lock.key})
		}
		return true
	})
	res.Code, res.Circle = Deadlock, circle
	m.bump()
	m.remove(e)
	m.fire()
}

// at returns the entry at a place, or nil.
func (m *Machine) at(p Place) *entry {
	m.visit(1)
	s := m.sessions.byID[p.Session]
	if s == nil || s.request(p.Number) == nil {
		return nil
	}
	all := s.request(p.Number).all(new([1]*entry))
	if int(p.Key) >= len(all) {
		return nil
	}
	return all[p.Key]
}

// proves reports whether the places prove that e waits forever. None of their requests may be able
// to end before another one of them. A request cannot end while it waits behind others of them that
// leave no room for it, nor while it is an owner of one of them. The request of e must be one of
// them, and one of its owners too.
func (m *Machine) proves(e *entry, places func(func(Place) bool)) bool {
	if e.token != 0 || e.try || e.owners() == (owners{}) {
		return false
	}
	var all []*entry
	kept := map[*entry]bool{} // whether a request, by its lead entry, cannot end
	for p := range places {
		o := m.at(p)
		if o == nil || len(all) == MaxProof {
			return false
		}
		all = append(all, o)
		kept[o.lead()] = false
	}
	of := e.owners()
	_, asked := kept[e]
	_, owner := kept[of[0]]
	if _, inner := kept[of[1]]; !asked || !owner && !inner {
		return false
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.lock.position, b.lock.position), cmp.Compare(a.rank(), b.rank()))
	})
	all = slices.Compact(all)
	taken, least := uint64(0), uint32(noTotal)
	for i, o := range all {
		if m.visit(1); i == 0 || all[i-1].lock != o.lock {
			taken, least = 0, noTotal
		}
		permits, of := o.terms()
		before := taken
		if hold := o.upgraded(); hold != nil && slices.Contains(all[:i], hold) {
			before -= upgradablePermits
		}
		if o.token == 0 && !o.try && before > 0 && before+uint64(permits) > uint64(min(least, of)) {
			kept[o.lead()] = true
		}
		for _, owner := range o.owners() {
			if _, known := kept[owner]; known {
				kept[owner] = true
			}
		}
		taken, least = taken+uint64(permits), min(least, of)
	}
	for _, o := range all {
		if !kept[o.lead()] {
			return false
		}
	}
	return true
}
