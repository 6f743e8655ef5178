package lockfsm

import (
	"cmp"
	"math"
	"slices"
)

// game finds deadlocks through permits, which circle.go cannot decide. It collects every request
// for which the new request could wait, through any number of steps. Then it simulates how these
// requests end. Before a request can end, all requests that name it as their owner must have ended.
// It must also be granted or fit into all its queues.
//
// If the new request does not end, it would wait forever. The simulation then runs again, without
// the owner of the new request, and without the delay that an upgrade causes to the requests behind
// it. If the new request ends in the second run, it causes the deadlock, and the machine refuses
// the request. Otherwise an earlier deadlock delays the request, and the machine accepts it.
//
// The set of requests and their order do not depend on the order of the search, so every replica
// gets the same result.
type game struct {
	players []*player
	of      map[*entry]*player
	rows    map[*lock]*row
	asked   *player
	owners  owners // of the new request, which its session does not list yet
	steps   int
	joins   int // the bound of steps until all players are known
	limit   int // the bound of all steps
}

type player struct {
	e      *entry    // nil for the new request
	rank   uint64    // see entry.rank
	places []place   // one for each queue; for the new request only the queues that exist
	above  []*player // its owners that are in the game
	owns   int       // the number of players with this owner
	left   int       // the number of players with this owner that have not ended
	ended  bool
}

// place is the place of a player in one queue.
type place struct {
	row         *row
	permits, of uint32  // as entry.terms returns them
	outside     bool    // only of the new request: it would not be inside
	own         *player // only of an upgrade: its hold
}

type row struct {
	lock    *lock
	scanned uint64 // all entries up to this rank are in the game
	taken   uint64 // permits of the earlier players that cannot end in this round
	least   uint32
}

// circularByPermits is like walk, but for deadlocks through permits.
func (m *Machine) circularByPermits(s *session, c *view) (path []Link, v verdict) {
	g := game{of: map[*entry]*player{}, rows: map[*lock]*row{}, asked: &player{rank: math.MaxUint64},
		owners: c.owners(s), joins: m.permitVisits, limit: m.permitVisits}
	defer func() { m.visit(g.steps) }()
	if c.upgrades {
		g.askUpgrade(s.request(c.owner))
	} else {
		g.ask(m.locks.byKey[string(c.key)], c.permits, c.of)
	}
	for more := c.more; more.left > 0; {
		permits, of := more.terms(c)
		g.ask(m.locks.byKey[string(more.next())], permits, of)
	}
	if !g.gather() {
		return nil, beyond
	}
	for _, e := range g.owners {
		if p := g.of[e]; e != nil && p != nil {
			g.asked.under(p)
		}
	}
	if len(g.asked.above) == 0 {
		return nil, isFree
	}
	if c.upgrades {
		g.asked.places[0].own = g.of[s.request(c.owner)]
	}
	g.players = append(g.players, g.asked)
	v = g.decide(func() { path = g.path(s) })
	return path, v
}

// under makes p a player that owner does not end before.
func (p *player) under(owner *player) {
	p.above = append(p.above, owner)
	owner.owns++
}

// decide simulates how the players end, with and without the owner of the new request. It calls
// stuck between the two.
func (g *game) decide(stuck func()) verdict {
	slices.SortFunc(g.players, func(a, b *player) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.place(), b.place()))
	})
	switch {
	case !g.play(true):
		return beyond
	case g.asked.ended:
		return isFree
	}
	stuck()
	for _, owner := range g.asked.above {
		owner.owns--
	}
	g.asked.above = nil
	switch {
	case !g.play(false):
		return beyond
	case !g.asked.ended:
		return isDelayed
	}
	return isCircle
}

func (g *game) ask(l *lock, permits, of uint32) {
	if l == nil {
		return
	}
	at := place{row: g.row(l)}
	at.permits, at.of = termsOf(permits, of)
	if at.outside = !l.takes(permits, of); at.outside {
		g.scan(l, l.tail())
	}
	g.asked.places = append(g.asked.places, at)
}

// askUpgrade is like ask for an upgrade of the hold, which waits for other inside entries.
func (g *game) askUpgrade(hold *entry) {
	l := hold.lock
	at := place{row: g.row(l), permits: 1, of: 1}
	at.outside = true
	g.scan(l, l.lastInside())
	g.asked.rank = 2*uint64(l.lastInside().rev) + 1
	g.asked.places = append(g.asked.places, at)
}

// place orders players with the same rank, which are never in one queue.
func (p *player) place() Revision {
	if p.e == nil {
		return maxRevision
	}
	return p.e.rev
}

func (g *game) place(e *entry) place {
	permits, of := e.terms()
	return place{row: g.row(e.lock), permits: permits, of: of}
}

func (g *game) row(l *lock) *row {
	r := g.rows[l]
	if r == nil {
		r = &row{lock: l}
		g.rows[l] = r
	}
	return r
}

func (g *game) gather() bool {
	next := 0
	for ; next < len(g.players) && g.steps <= g.joins; next++ {
		p := g.players[next]
		for _, each := range p.e.all(new([1]*entry)) {
			g.steps++
			p.places = append(p.places, g.place(each))
			if !each.holding && !p.e.try {
				g.scan(each.lock, each.ahead)
			}
		}
		for e := p.e.firstBelow(); e != nil; e = p.e.nextBelow(e) {
			g.steps++
			if g.join(e).under(p); g.steps > g.joins {
				return false
			}
		}
	}
	for _, p := range g.players[:next] {
		if p.e.upgrades() {
			p.places[0].own = g.of[p.e.upgraded()]
		}
	}
	return g.steps <= g.joins
}

func (g *game) scan(l *lock, e *entry) {
	if l.delaysNone(g.owners) {
		return
	}
	r := g.row(l)
	top := r.scanned
	if e != nil {
		r.scanned = max(top, e.rank())
	}
	for ; e != nil && e.rank() > top && g.steps <= g.joins; e = e.ahead {
		if g.steps++; !g.idle(e) {
			g.join(e)
		}
	}
}

// idle reports whether e needs no player. No request waits for e as its owner, and either e holds
// all its locks and so can end, or it ends exactly when the entry before it ends.
func (g *game) idle(e *entry) bool {
	switch {
	case slices.Contains(g.owners[:], e.lead()):
		return false
	case !e.alone():
		return e.token != 0 && !e.owns()
	case e.token != 0:
		return true
	}
	o := e.ahead
	if o == nil || slices.Contains(g.owners[:], o) || !o.alone() || e.holding || o.holding || e.try || o.try {
		return false
	}
	return !e.upgrades() && !o.upgrades() && (g.asked == nil || g.asked.e != o) && o.sharesLike(e)
}

func (g *game) join(e *entry) *player {
	e = e.lead()
	p := g.of[e]
	if p == nil {
		p = &player{e: e, rank: e.rank()}
		g.of[e] = p
		g.players = append(g.players, p)
	}
	return p
}

// play runs the simulation, and returns false if it exceeds its bound. delays means that the new
// request delays the requests behind it.
func (g *game) play(delays bool) bool {
	live := slices.Clone(g.players)
	for _, p := range live {
		p.left, p.ended = p.owns, false
	}
	for moved := true; moved; {
		moved = false
		for _, p := range live {
			p.clear()
		}
		left := live[:0]
		for _, p := range live {
			if g.steps += max(len(p.places), 1); g.steps > g.limit {
				return false
			}
			if p.left > 0 || !p.served() {
				if delays || p != g.asked {
					p.stay()
				}
				left = append(left, p)
				continue
			}
			p.ended, moved = true, true
			for _, owner := range p.above {
				owner.left--
			}
		}
		live = left // a round visits no player that has ended, because it would not count this work
	}
	return true
}

// clear prepares the rows of p for a round.
func (p *player) clear() {
	for _, at := range p.places {
		at.row.taken, at.row.least = 0, math.MaxUint32
	}
}

// served reports whether p is granted or could be granted. The latter means that p fits into each
// of its queues together with the earlier players that have not ended. A request with Try does not
// wait for another request to end.
func (p *player) served() bool {
	return p.e != nil && (p.e.token != 0 || p.e.try) || !slices.ContainsFunc(p.places, place.crowded)
}

func (p place) crowded() bool {
	taken := p.row.taken
	if p.own != nil && !p.own.ended {
		taken -= upgradablePermits
	}
	return taken > 0 && taken+uint64(p.permits) > uint64(min(p.row.least, p.of))
}

func (p *player) stay() {
	for _, at := range p.places {
		at.row.taken, at.row.least = at.row.taken+uint64(at.permits), min(at.row.least, at.of)
	}
}

// eachAbove adds the owners of p, their owners and so on to all.
func (p *player) eachAbove(all map[*player]bool) {
	for _, owner := range p.above {
		if !all[owner] {
			all[owner] = true
			owner.eachAbove(all)
		}
	}
}

// path returns the links of the shortest path from the new request to one of its owners, through
// players that have not ended.
func (g *game) path(s *session) []Link {
	type step struct {
		before int // the index of the previous step in ways
		p      *player
		link   *Link // nil if the player of the previous step is the owner of p
	}
	above := map[*player]bool{}
	g.asked.eachAbove(above)
	seen := map[*player]bool{g.asked: true}
	ways := []step{{p: g.asked}}
	for _, r := range g.rows {
		r.scanned = 0
	}
	behind := func(at int, l *lock, e *entry, s *session, except *entry) {
		r := g.rows[l]
		top := r.scanned
		if e != nil && except == nil { // otherwise a later walk may have to visit except
			r.scanned = max(top, e.rank())
		}
		for ; e != nil && e.rank() > top; e = e.ahead {
			g.steps++
			if p := g.of[e.lead()]; p != nil && e != except && !p.ended && !seen[p] {
				seen[p] = true
				ways = append(ways, step{at, p, &Link{Session: s.id, Record: s.record, Key: l.key}})
			}
		}
	}
	for at := 0; at < len(ways); at++ {
		p := ways[at].p
		if above[p] {
			var path []Link
			for ; at > 0; at = ways[at].before {
				if link := ways[at].link; link != nil {
					path = append(path, *link)
				}
			}
			slices.Reverse(path)
			return path[:min(len(path), maxLinks)]
		}
		if p.e == nil {
			for _, each := range p.places {
				if each.outside {
					last, hold := each.row.lock.tail(), (*entry)(nil)
					if each.own != nil {
						last, hold = each.row.lock.lastInside(), each.own.e
					}
					behind(at, each.row.lock, last, s, hold)
				}
			}
			continue
		}
		if p.e.token == 0 {
			for _, each := range p.e.all(new([1]*entry)) {
				if !each.holding {
					behind(at, each.lock, each.ahead, p.e.session, each.upgraded())
				}
			}
		}
		for e := p.e.firstBelow(); e != nil; e = p.e.nextBelow(e) {
			if below := g.of[e]; !below.ended && !seen[below] {
				seen[below] = true
				ways = append(ways, step{at, below, nil})
			}
		}
	}
	return nil
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
