package lockfsm

import (
	"cmp"
	"container/list"
	"slices"
)

// A request whose Acquire has ended its search for a deadlock at the bound waits, and is marked as
// unsearched. The leader continues these searches outside the replicated state, a request at a time
// ([Machine.Search]). If it finds a deadlock, it proposes Refuse with the proof, which every
// replica checks with little work. The marks are not replicated: a restored machine marks all
// requests that wait under an owner.

// maxSearches bounds the searches for one request. A search is repeated if an earlier deadlock
// delays the request, because the request may be in a deadlock of its own when that has ended. If
// it is on a circle and still delayed by the last search, it is refused: the other deadlock may be
// one that this request delays.
const maxSearches = 4

// The bounds of a continued search. A deadlock beyond them lasts until one of its requests ends.
const (
	searchVisits = 32_768
	searchSteps  = 4 * searchVisits // with the simulations, whose steps are short
)

// unsearched contains the sessions with unsearched requests, in the order in which they are served.
type unsearched struct{ sessions list.List }

// sessionSearches are the unsearched requests of one session.
type sessionSearches struct {
	at       *list.Element // of the session in unsearched; nil if it has no such request
	requests list.List
}

type pendingSearch struct {
	at       *list.Element
	searches int
}

func (u *unsearched) add(e *entry) {
	s := e.session
	e.extra.pending = &pendingSearch{at: s.unsearched.requests.PushBack(e)}
	if s.unsearched.at == nil {
		s.unsearched.at = u.sessions.PushBack(s)
	}
}

// drop removes the mark of e, if it has one.
func (u *unsearched) drop(e *entry) {
	if e.extra == nil || e.extra.pending == nil {
		return
	}
	s := &e.session.unsearched
	s.requests.Remove(e.extra.pending.at)
	if e.extra.pending = nil; s.requests.Len() == 0 {
		u.sessions.Remove(s.at)
		s.at = nil
	}
}

// BoundSearches sets the numbers of entries that a search in an Acquire visits, for tests and
// simulations. All replicas of a group must have the same bounds.
func (m *Machine) BoundSearches(walk, permits int) { m.walkVisits, m.permitVisits = walk, permits }

// Search is the result of [Machine.Search].
type Search struct {
	// Refuse is the command to propose, or nil.
	Refuse []byte
	// Steps is the work of the search, in steps of about 50 to 100 ns.
	Steps int
	// Again reports that a search of this request must be repeated, Left that there are searches
	// to continue.
	Again, Left bool
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
	if v == isDelayed && circle && e.extra.pending.searches == maxSearches {
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
	again := v == isCircle || v == isDelayed
	if result.Again = again && e.extra.pending.searches < maxSearches; !result.Again {
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

// judge decides whether the waiting request e is in a deadlock.
func (g *game) judge(e *entry, stuck func()) verdict {
	g.asked = g.join(e)
	switch {
	case !g.gather():
		return beyond
	case g.asked.above == nil: // the request waits for none of its owners
		return isFree
	}
	return g.decide(stuck)
}

// proof returns places of requests that have not ended, so that the places alone show why none of
// these requests can end: it waits behind others of them, or is an owner of one of them.
func (g *game) proof() []Place {
	var places []Place
	known := map[Place]bool{}
	added := map[*player]bool{}
	var due []*player
	add := func(p *player, key int) {
		place := Place{p.e.session.id, p.e.number, uint8(key)}
		if !known[place] {
			known[place] = true
			places = append(places, place)
		}
		if !added[p] {
			added[p] = true
			due = append(due, p)
		}
	}
	due, added[g.asked] = append(due, g.asked), true
	for at := 0; at < len(due) && len(places) <= MaxProof; at++ {
		p := due[at]
		if !g.behind(p, add) {
			g.under(p, add)
		}
		if p == g.asked {
			for _, owner := range p.above {
				add(owner, 0)
			}
		}
	}
	return places
}

// behind adds the place where p waits and the places of the requests before it that keep it there.
func (g *game) behind(p *player, add func(*player, int)) bool {
	if p.e.token != 0 || p.e.try {
		return false
	}
	for key, each := range p.e.all(new([1]*entry)) {
		at := p.places[key]
		taken, least := uint64(0), at.of
		var before []*entry
		for o := each.lock.first; o != each && g.steps < g.limit && len(before) <= MaxProof; o = o.after {
			g.steps++
			q := g.of[o.lead()]
			if q == nil || q.ended || q == at.own {
				continue
			}
			permits, of := o.terms()
			before, taken, least = append(before, o), taken+uint64(permits), min(least, of)
			if taken+uint64(at.permits) <= uint64(least) {
				continue
			}
			add(p, key)
			for _, o := range before {
				add(g.of[o.lead()], slices.Index(o.all(new([1]*entry)), o))
			}
			return true
		}
	}
	return false
}

// under adds a request that names p as its owner.
func (g *game) under(p *player, add func(*player, int)) {
	if add(p, 0); p == g.asked {
		return
	}
	for below := p.e.firstBelow(); below != nil && g.steps < g.limit; below = p.e.nextBelow(below) {
		if g.steps++; g.of[below] != nil && !g.of[below].ended {
			add(g.of[below], 0)
			return
		}
	}
}

// refuseLater applies a Refuse.
func (m *Machine) refuseLater(c *view, res *Result) {
	s := m.sessions[c.Session]
	if s == nil {
		res.Code = NoSession
		return
	}
	e := s.requests[c.Number]
	places := func(yield func(Place) bool) {
		for proof := c.proof; proof.left > 0 && yield(proof.next()); {
			continue
		}
	}
	if res.Code, res.Epoch = Finished, s.epoch; e == nil || !m.proves(e, places) {
		return
	}
	m.circle = m.circle[:0]
	places(func(p Place) bool {
		if o := m.at(p); o.token == 0 && len(m.circle) < maxLinks {
			m.circle = append(m.circle, Link{Session: p.Session, Record: o.session.record, Key: o.lock.key})
		}
		return true
	})
	res.Code, res.Circle = Deadlock, m.circle
	m.bump()
	m.remove(e)
	m.fire()
}

// at returns the entry at a place, or nil.
func (m *Machine) at(p Place) *entry {
	m.visits++
	s := m.sessions[p.Session]
	if s == nil || s.requests[p.Number] == nil {
		return nil
	}
	all := s.requests[p.Number].all(new([1]*entry))
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
		if m.visits++; i == 0 || all[i-1].lock != o.lock {
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
