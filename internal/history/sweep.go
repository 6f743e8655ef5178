package history

import (
	"cmp"
	"math"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

type held struct {
	current []int32
	taken   int64
	last    int32 // the last grant of the key; -1 if none
	token   lockfsm.Token
	highest mark  // the grant with the highest place, except for upgrades
	alone   mark  // the exclusive grant with the highest place, except for upgrades
	single  int32 // the last grant of a request for this key only, no resumption; -1 if none
}

type mark struct {
	grant int32
	place lockfsm.Revision
}

func sweep(j *evidence) error {
	w := sweeper{evidence: j, keys: make([]held, len(j.keys)), point: math.MinInt64, because: -1}
	for i := range w.keys {
		w.keys[i] = held{last: -1, single: -1}
	}
	next := int32(0)
	for place, a := range j.groups {
		if place > 0 {
			w.groupEnds(a)
		}
		for int(next) < len(j.grants) && j.events[j.grants[next].event].Seq == 0 &&
			j.grants[next].group == int32(place) {
			if err := w.grant(next); err != nil {
				return err
			}
			next++
		}
		for _, s := range a.steps {
			var err error
			switch j.events[s.event].Kind {
			case Grant:
				err = w.grant(next)
				next++
			case Shared:
				err = w.share(s)
			default:
				err = w.end(s)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sweeper is the state of sweep.
type sweeper struct {
	*evidence
	keys    []held
	live    []int32
	point   int64 // the earliest possible time of the present step
	because int32 // the event that proves this time
	belief  bool
}

func (w *sweeper) notBefore(at int64, because int32, belief bool) {
	if because >= 0 && at > w.point {
		w.point, w.because, w.belief = at, because, belief
	}
}

func (w *sweeper) notAfter(at int64, seen, step int32) error {
	if seen < 0 || w.point <= at || w.point-at <= w.uncertain {
		return nil
	}
	rule, text := Real, "in the log it follows an event that began only after it was seen"
	if w.belief && w.events[seen].Outcome != Held && w.meet(w.asked(w.because), w.set(&w.events[step])) {
		rule, text = Belief, "the earlier holder still believed that it held the lock"
	}
	events := []int32{w.because, step, seen}
	return w.broken(rule, slices.Compact(events), "the %v of %s with token %d was seen %d ns too early: %s",
		w.events[step].Kind, w.events[step].asked(), cmp.Or(w.events[seen].Token, w.events[step].Token), w.point-at, text)
}

func (w *sweeper) asked(event int32) int32 {
	e := &w.events[event]
	return w.streams[e.Stream].calls[e.Op].set
}

func (w *sweeper) grant(i int32) error {
	g := &w.grants[i]
	for _, key := range w.sets[g.set].keys {
		if err := w.grantOne(i, key); err != nil {
			return err
		}
	}
	if c := g.owner; c != nil {
		w.notBefore(c.begun, c.called, false)
		if err := w.notAfter(c.returned, c.ret, g.event); err != nil {
			return err
		}
	}
	if err := w.notAfter(g.seenAt, g.seenBy, g.event); err != nil {
		return err
	}
	if err := w.notAfter(g.at, g.event, g.event); err != nil || g.stay == nil {
		return err
	}
	return w.passes(g)
}

// grantOne replays the grant of one key. A request that is exclusive or for one key must be
// granted before all later requests of the queue. A shared request for several keys may wait for
// another key, and later shared requests may be granted before it.
func (w *sweeper) grantOne(i, key int32) error {
	g, k := &w.grants[i], &w.keys[key]
	e, asked := &w.events[g.event], &w.sets[g.set]
	permits, least := asked.terms(e, key)
	alone := e.aloneAt(slices.Index(asked.keys, key))
	taken, current := k.taken, k.current
	if e.Upgrades != 0 {
		var err error
		if current, taken, err = w.upgrade(i, k); err != nil {
			return err
		}
	}
	for _, other := range current {
		o := &w.grants[other]
		_, of := w.sets[o.set].terms(w.as(o), key)
		least = min(least, of)
	}
	if len(current) > 0 && taken+permits > least {
		return w.broken(Overlap, w.eventsOf(append(slices.Clone(current[max(0, len(current)-3):]), i)...),
			"%s is granted with token %d while %d permits are taken, of %d", asked.name, e.Token, taken, least)
	}
	if k.last < 0 {
		w.live = append(w.live, key)
	} else if e.Token <= k.token {
		return w.broken(Tokens, w.eventsOf(k.last, i), "%s is granted with token %d after token %d", asked.name,
			e.Token, k.token)
	}
	before := &k.highest
	if !alone && len(asked.keys) > 1 {
		before = &k.alone
	}
	if e.Resumes != 0 && !w.resumes(g) {
		return w.broken(Ends, w.eventsOf(i),
			"%s is granted as a resumption of token %d, which has not just ended at this place", asked.name, e.Resumes)
	}
	if e.Resumes == 0 && e.Place <= before.place {
		return w.broken(Order, w.eventsOf(before.grant, i),
			"%s is granted to the request at place %d after the one at place %d", asked.name, e.Place, before.place)
	}
	k.current, k.taken, k.last, k.token = append(k.current, i), k.taken+permits, i, e.Token
	if e.Upgrades != 0 {
		return nil // the requests behind it came before it
	}
	if len(asked.keys) == 1 && e.Resumes == 0 {
		k.single = i
	}
	k.highest.raise(i, e.Place)
	if alone {
		k.alone.raise(i, e.Place)
	}
	return nil
}

// upgrade judges the grant of an upgrade. Its hold must hold the lock. Since the upgrade was
// requested, no other request for this key only may have been granted. It returns the other grants
// of the key and their permits.
func (w *sweeper) upgrade(i int32, k *held) (current []int32, taken int64, err error) {
	e := w.granted(i)
	hold, known := w.byToken[uint64(e.Upgrades)]
	at := slices.Index(k.current, hold)
	if !known || at < 0 || w.granted(hold).Session != e.Session || w.granted(hold).Modes != Modes(upgradable()) {
		return nil, 0, w.broken(Ends, w.eventsOf(i), "%s is granted with token %d, but token %d does not hold the lock "+
			"as upgradable", w.sets[w.grants[i].set].name, e.Token, e.Upgrades)
	}
	if k.single >= 0 && lockfsm.Revision(w.granted(k.single).Token) > e.Place {
		return nil, 0, w.broken(Order, w.eventsOf(k.single, i), "%s is granted with token %d while the upgrade at place %d "+
			"waited", w.granted(k.single).asked(), w.granted(k.single).Token, e.Place)
	}
	permits, _ := w.granted(hold).TermsOf(0)
	return slices.Delete(slices.Clone(k.current), at, at+1), k.taken - permits, nil
}

func upgradable() []lockfsm.Mode { return []lockfsm.Mode{lockfsm.ModeU} }

// resumes reports whether a grant correctly resumes the grant that it names. The named grant must
// have the same set and place, and must have ended by force in the same log entry.
func (w *sweeper) resumes(g *grant) bool {
	e := &w.events[g.event]
	i, known := w.byToken[uint64(e.Resumes)]
	if !known || w.grants[i].end < 0 {
		return false
	}
	before, end := &w.events[w.grants[i].event], &w.events[w.grants[i].end]
	return w.as(&w.grants[i]).alike(e) && before.Place == e.Place && end.Index == e.Index && end.How == ByForce
}

func (m *mark) raise(grant int32, place lockfsm.Revision) {
	if place > m.place {
		*m = mark{grant, place}
	}
}

func (w *sweeper) eventsOf(grants ...int32) (events []int32) {
	for _, i := range grants {
		events = append(events, w.grants[i].event)
	}
	return events
}

func (w *sweeper) ends(i int32) bool {
	g := &w.grants[i]
	for _, key := range w.sets[g.set].keys {
		k := &w.keys[key]
		at := slices.Index(k.current, i)
		if at < 0 {
			return false
		}
		permits, _ := w.sets[g.set].terms(w.as(g), key)
		k.current, k.taken = slices.Delete(k.current, at, at+1), k.taken-permits
	}
	return true
}

func (w *sweeper) end(s step) error {
	e := &w.events[s.event]
	i, known := w.byToken[uint64(e.Token)]
	if !known {
		return w.broken(Ends, []int32{s.event}, "%s ends with token %d, which was never granted", e.asked(), e.Token)
	}
	g := &w.grants[i]
	if !w.as(g).alike(e) || !w.ends(i) {
		return w.broken(Ends, []int32{g.event, g.end, s.event}, "%s ends with token %d, which does not hold it",
			e.asked(), e.Token)
	}
	g.end, g.ended = s.event, s.at
	w.notBefore(g.heldBehind, g.heldBy, false)
	if e.How != ByForce {
		w.stayEnds(g)
	}
	if c := g.owner; c != nil {
		if at, because := c.believed(); e.How != ByForce {
			w.notBefore(at, because, true)
		}
		if c.unlocked >= 0 && w.events[c.unlocked].Err == "" {
			if err := w.notAfter(c.was, c.unlocked, s.event); err != nil {
				return err
			}
		}
	}
	return w.notAfter(s.at, s.event, s.event)
}

// groupEnds ends the grants that a group still held when the next group began. The beliefs of their
// callers must have ended before the next group grants a lock.
func (w *sweeper) groupEnds(next *account) {
	for _, k := range w.live {
		for _, i := range w.keys[k].current {
			g := &w.grants[i]
			if len(next.steps) > 0 {
				g.ended = next.steps[0].at
			}
			w.notBefore(g.heldBehind, g.heldBy, false)
			w.stayEnds(g)
			if c := g.owner; c != nil {
				at, because := c.believed()
				w.notBefore(at, because, true)
			}
		}
		w.keys[k].current, w.keys[k].taken = w.keys[k].current[:0], 0
	}
}

// passes replays the passes of a stay when the stay is granted. Its point in time begins at that of
// the log, and then follows only the passes. A pass of a shared stay may begin before the earlier
// ones have ended. At the end of the stay, stayEnds raises the point of the log to the end of all
// passes.
func (w *sweeper) passes(g *grant) error {
	at, over := *w, *w
	for i := range g.stay.passes {
		p := &g.stay.passes[i]
		if c := p.owner; c != nil {
			at.notBefore(c.begun, c.called, false)
			if err := at.notAfter(c.returned, c.ret, p.event); err != nil {
				return err
			}
		}
		if err := at.notAfter(p.seenAt, p.seenBy, p.event); err != nil {
			return err
		}
		end, err := at.passEnds(p)
		if err != nil {
			return err
		}
		if over.notBefore(end.point, end.because, end.belief); w.events[g.event].alone() {
			at = end
		}
	}
	g.stay.point, g.stay.because, g.stay.belief = over.point, over.because, over.belief
	return nil
}

// passEnds returns a copy of w whose point in time is the earliest possible end of a pass.
func (w sweeper) passEnds(p *pass) (sweeper, error) {
	w.notBefore(p.heldBehind, p.heldBy, false)
	c := p.owner
	if c == nil {
		return w, nil
	}
	until, because := c.believed()
	w.notBefore(until, because, true)
	if c.unlocked >= 0 && w.events[c.unlocked].Err == "" {
		return w, w.notAfter(c.was, c.unlocked, p.event)
	}
	return w, nil
}

func (w *sweeper) stayEnds(g *grant) {
	if s := g.stay; s != nil {
		w.notBefore(s.point, s.because, s.belief)
	}
}

// share replays that an exclusive grant becomes shared. The grant keeps its token. Its caller acts
// as a reader from the moment at which it sends the downgrade, so other readers may be granted the
// lock as soon as the state has changed.
func (w *sweeper) share(s step) error {
	e := &w.events[s.event]
	i, known := w.byToken[uint64(e.Token)]
	if !known {
		return w.broken(Ends, []int32{s.event}, "%s becomes shared with token %d, which was never granted", e.asked(),
			e.Token)
	}
	g := &w.grants[i]
	current := func(key int32) bool { return slices.Contains(w.keys[key].current, i) }
	if lowers := w.as(g).sheds(); !lowers || g.stay != nil || !slices.ContainsFunc(w.sets[g.set].keys, current) {
		return w.broken(Ends, []int32{g.event, g.shared, g.end, s.event},
			"%s becomes shared with token %d, which does not hold it exclusively", e.asked(), e.Token)
	}
	had := w.as(g)
	g.shared = s.event
	for _, key := range w.sets[g.set].keys {
		if k := &w.keys[key]; current(key) {
			before, _ := w.sets[g.set].terms(had, key)
			permits, _ := w.sets[g.set].terms(w.as(g), key)
			k.taken += permits - before
		}
	}
	before, after := had.grant(), w.as(g).grant()
	raised := func(key string) bool {
		from, _ := before.Mode(key)
		to, is := after.Mode(key)
		return is && !from.Covers(to)
	}
	if raised(e.Key) || slices.ContainsFunc(e.Keys, raised) {
		return w.broken(Ends, []int32{g.event, s.event}, "%s with token %d gets modes that its own do not cover: %s",
			had.asked(), e.Token, e.asked())
	}
	if !w.as(g).alike(e) {
		return w.broken(Ends, []int32{g.event, s.event}, "%s becomes shared with token %d, which is of %s", e.asked(),
			e.Token, w.sets[g.set].name)
	}
	if c := g.owner; c != nil {
		at, because := c.believedAlone()
		w.notBefore(at, because, true)
	}
	return w.notAfter(s.at, s.event, s.event)
}
