package history

import (
	"math"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// grant is one grant of one key, from the account.
type grant struct {
	key       int32
	event     int32
	at, ended int64 // when the first voter had applied it, and its end
	end       int32 // the event that ended it; -1: none
	group     int32 // place in judge.groups

	owner *call // who was told of it; nil: nobody
	// Tries that were told of it: they came after the grant and before the end.
	seenBy, heldBy     int32 // the return that saw it first; the call that began last and still saw it
	seenAt, heldBehind int64
}

// key of the replay.
type held struct {
	current int32 // grant; -1: free
	token   lockfsm.Token
	place   lockfsm.Revision
	last    int32 // the last grant; -1: none
}

// listGrants makes the list of grants, in the order of the log.
func (j *judge) listGrants() error {
	n := 0
	for _, a := range j.groups {
		n += len(a.steps)/2 + 1
	}
	j.grants = make([]grant, 0, n)
	j.byToken = make(map[uint64]int32, n)
	for place, a := range j.groups {
		for _, i := range j.carried { // what was held when the recording began
			e := &j.events[i]
			if _, known := j.byToken[uint64(e.Token)]; e.Group == a.group && e.Rev == a.first && !known {
				if err := j.list(int32(place), step{event: i, at: e.At}); err != nil {
					return err
				}
			}
		}
		for _, s := range a.steps {
			if j.events[s.event].Kind == Grant {
				if err := j.list(int32(place), s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (j *judge) list(group int32, s step) error {
	e := &j.events[s.event]
	if before, twice := j.byToken[uint64(e.Token)]; twice {
		return j.broken(Tokens, []int32{j.grants[before].event, s.event}, "token %d is given twice", e.Token)
	}
	j.byToken[uint64(e.Token)] = int32(len(j.grants))
	j.grants = append(j.grants, grant{
		key: j.key(e.Key), event: s.event, at: s.at, ended: math.MaxInt64, end: -1, group: group, seenBy: -1, heldBy: -1, seenAt: math.MaxInt64, heldBehind: math.MinInt64,
	})
	return nil
}

// claim finds for each answer with a token the grant that it tells of.
func (j *judge) claim() error {
	for s := range j.streams {
		calls := j.streams[s].calls
		for i := range calls {
			c := &calls[i]
			if c.ret < 0 {
				continue
			}
			e := &j.events[c.ret]
			if e.Outcome == Failed {
				continue
			}
			g, known := j.byToken[uint64(e.Token)]
			if !known {
				if err := j.phantom(c, e); err != nil {
					return err
				}
				continue
			}
			if err := j.tell(&j.grants[g], c, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell notes that the answer e to call c tells of grant g.
func (j *judge) tell(g *grant, c *call, e *Event) error {
	switch {
	case g.key != c.key:
		return j.broken(Phantom, []int32{c.called, c.ret, g.event}, "call %d for %q was told of token %d, which is of %q", e.Op, j.names[c.key], e.Token, j.names[g.key])
	case e.Outcome == Held:
		if c.returned < g.seenAt {
			g.seenAt, g.seenBy = c.returned, c.ret
		}
		if c.begun > g.heldBehind {
			g.heldBehind, g.heldBy = c.begun, c.called
		}
	case g.owner != nil:
		return j.broken(Tokens, []int32{g.owner.ret, c.ret, g.event}, "two callers were granted %q with token %d", j.names[g.key], e.Token)
	default:
		g.owner = c
	}
	return nil
}

// phantom judges an answer that tells of a grant that is in no account.
func (j *judge) phantom(c *call, e *Event) error {
	for _, a := range j.groups {
		if uint64(a.first) < uint64(e.Token) && uint64(e.Token) <= uint64(a.covers) {
			return j.broken(Phantom, []int32{c.called, c.ret}, "call %d was told that %q is held with token %d, which the state never granted", e.Op, j.names[c.key], e.Token)
		}
	}
	j.unsure("no voter's account comes to token %d, which %s was told of: is a file missing?", e.Token, e.Node)
	return nil
}

// sweep replays the account and gives every step the earliest time that is possible.
func (j *judge) sweep() error {
	w := sweeper{judge: j, keys: make([]held, len(j.names)), point: math.MinInt64, because: -1}
	for i := range w.keys {
		w.keys[i] = held{current: -1, last: -1}
	}
	next := int32(0) // grants come in the order of the list
	for place, a := range j.groups {
		if place > 0 {
			w.groupEnds(a)
		}
		for int(next) < len(j.grants) && j.events[j.grants[next].event].Seq == 0 && j.grants[next].group == int32(place) {
			if err := w.grant(next); err != nil {
				return err
			}
			next++
		}
		for _, s := range a.steps {
			var err error
			if j.events[s.event].Kind == Grant {
				err = w.grant(next)
				next++
			} else {
				err = w.end(s)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sweeper walks through the log. point is the earliest time at which the step that it stands at can have happened, because of an event.
type sweeper struct {
	*judge
	keys    []held
	live    []int32 // keys that may be held
	point   int64
	because int32
	belief  bool // because ends a belief
}

// notBefore moves the point.
func (w *sweeper) notBefore(at int64, because int32, belief bool) {
	if because >= 0 && at > w.point {
		w.point, w.because, w.belief = at, because, belief
	}
}

// notAfter fails if the step e was seen before the point.
func (w *sweeper) notAfter(at int64, seen, step int32) error {
	if seen < 0 || w.point <= at || w.point-at <= w.uncertain {
		return nil
	}
	rule, text := Real, "in the log it comes behind something that began later than it was seen"
	if w.belief && w.events[seen].Outcome != Held && w.ofKey(w.because) == w.events[step].Key {
		rule, text = Belief, "the holder believed longer in his lock"
	}
	events := []int32{w.because, step, seen}
	return w.broken(rule, slices.Compact(events), "the %v of %q with token %d was seen %d ns too early: %s",
		w.events[step].Kind, w.events[step].Key, w.events[step].Token, w.point-at, text)
}

// ofKey returns the key of the call that an event belongs to.
func (w *sweeper) ofKey(event int32) string {
	e := &w.events[event]
	return w.names[w.streams[e.Stream].calls[e.Op].key]
}

// grant is one step that grants.
func (w *sweeper) grant(i int32) error {
	g := &w.grants[i]
	e, k := &w.events[g.event], &w.keys[g.key]
	last := int32(-1)
	if k.last >= 0 {
		last = w.grants[k.last].event
	}
	switch {
	case k.current >= 0:
		return w.broken(Overlap, []int32{last, g.event}, "%q is granted with token %d while it is held with token %d", e.Key, e.Token, k.token)
	case e.Token <= k.token:
		return w.broken(Tokens, []int32{last, g.event}, "%q is granted with token %d after token %d", e.Key, e.Token, k.token)
	case e.Place <= k.place:
		return w.broken(Order, []int32{last, g.event}, "%q is granted to the request at place %d after the one at place %d", e.Key, e.Place, k.place)
	}
	if k.last < 0 {
		w.live = append(w.live, g.key)
	}
	k.current, k.last, k.token, k.place = i, i, e.Token, e.Place
	if c := g.owner; c != nil {
		w.notBefore(c.begun, c.called, false)
		if err := w.notAfter(c.returned, c.ret, g.event); err != nil {
			return err
		}
	}
	if err := w.notAfter(g.seenAt, g.seenBy, g.event); err != nil {
		return err
	}
	return w.notAfter(g.at, g.event, g.event)
}

// end is one step that ends a lock.
func (w *sweeper) end(s step) error {
	e := &w.events[s.event]
	i, known := w.byToken[uint64(e.Token)]
	if !known {
		return w.broken(Ends, []int32{s.event}, "%q ends with token %d, which was never granted", e.Key, e.Token)
	}
	g := &w.grants[i]
	if w.names[g.key] != e.Key || w.keys[g.key].current != i {
		return w.broken(Ends, []int32{g.event, g.end, s.event}, "%q ends with token %d, which does not hold it", e.Key, e.Token)
	}
	w.keys[g.key].current = -1
	g.end, g.ended = s.event, s.at
	w.notBefore(g.heldBehind, g.heldBy, false)
	if c := g.owner; c != nil {
		at, because := c.believed()
		w.notBefore(at, because, true)
		if c.unlocked >= 0 && w.events[c.unlocked].Err == "" {
			if err := w.notAfter(c.was, c.unlocked, s.event); err != nil {
				return err
			}
		}
	}
	return w.notAfter(s.at, s.event, s.event)
}

// groupEnds ends what a group still held when the next one began: nothing of it may be believed in any more when that one grants.
func (w *sweeper) groupEnds(next *account) {
	for _, k := range w.live {
		i := w.keys[k].current
		if i < 0 {
			continue
		}
		g := &w.grants[i]
		w.keys[k].current = -1
		if len(next.steps) > 0 {
			g.ended = next.steps[0].at
		}
		w.notBefore(g.heldBehind, g.heldBy, false)
		if c := g.owner; c != nil {
			at, because := c.believed()
			w.notBefore(at, because, true)
		}
	}
}
