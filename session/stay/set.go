package stay

import (
	"time"
)

// Limits of a Set. They do not depend on the load.
const (
	maxWaiting  = 65_536
	maxKeyBytes = 8 << 20 // of the keys of waiting callers
)

// Set contains stays of one session, all with the same key or with different keys.
type Set struct {
	Limit int           // the largest number of free stays
	Idle  time.Duration // a stay that was not used for this time is given back

	Totals Totals

	commands []Command
	news     []News

	stays    map[name]*stay
	recent   *stay // the stay of the last call that found one; nil after its end
	free     freeList
	granted  int     // stays that the group has granted
	inside   int     // callers that hold a lock
	waiting  int     // callers that wait, for all stays
	keyBytes int     // of the callers that wait
	stalled  []*stay // granted stays whose callers wait until the lease is renewed
	leaving  bool
	biases   biases
}

// NewSet returns an empty Set.
func NewSet(limit int, idle time.Duration) *Set {
	return &Set{Limit: limit, Idle: idle, stays: map[name]*stay{}, biases: newBiases()}
}

// Totals count what has happened to the stays of a Set.
type Totals struct {
	Passes     uint64        // grants without a message: all passes of a stay but its first one
	Recalls    uint64        // recalled stays that were given back
	RecallTime time.Duration // from the recall of each of these stays to its end
	InUse      uint64        // answers that a caller holds the lock
}

// Plus adds the totals of another Set.
func (t Totals) Plus(o Totals) Totals {
	return Totals{Passes: t.Passes + o.Passes, Recalls: t.Recalls + o.Recalls, RecallTime: t.RecallTime + o.RecallTime,
		InUse: t.InUse + o.InUse}
}

// Counts are the sizes of a Set.
type Counts struct {
	Granted, Asked  int // stays that the group has granted, and that wait in its queue
	Free            int // granted stays that no caller holds or waits for
	Inside, Waiting int // callers that hold a lock, and that wait
}

// Plus adds the sizes of another Set.
func (c Counts) Plus(o Counts) Counts {
	return Counts{Granted: c.Granted + o.Granted, Asked: c.Asked + o.Asked, Free: c.Free + o.Free,
		Inside: c.Inside + o.Inside, Waiting: c.Waiting + o.Waiting}
}

// Counts returns the sizes of the set.
func (s *Set) Counts() Counts {
	return Counts{Granted: s.granted, Asked: len(s.stays) - s.granted, Free: s.free.size, Inside: s.inside,
		Waiting: s.waiting}
}

func (s *Set) pass(st *stay, c *Caller) {
	s.free.remove(st)
	c.stay, c.holds = st, true
	c.token = st.spare
	st.spare++
	st.inside.add(c)
	s.inside++
	if st.passes > 0 {
		s.Totals.Passes++
	}
	st.passes++
}

// leave ends a pass, and returns its stay.
func (s *Set) leave(c *Caller) *stay {
	s.inside--
	c.holds = false
	st := c.forget()
	st.inside.remove(c)
	return st
}

// settle decides what happens to a granted stay. If the stay is not shared, no caller is inside.
func (s *Set) settle(w Window, st *stay) {
	s.free.remove(st)
	waits := st.queue.size > 0
	if st.yields && !waits && st.inside.size == 0 && st.recalled == 0 {
		st.recalled = w.Now
	}
	over := s.leaving || st.nested || st.usedUp() || st.over(w) || waits && !st.fresh(w)
	switch {
	case st.refuses(w):
		s.refer(st)
	case st.inside.size > 0 && (over || !waits): // the last caller that unlocks settles it
	case over:
		if st.recalled != 0 {
			s.Totals.Recalls++
			s.Totals.RecallTime += w.Now.Sub(st.recalled)
		}
		s.giveBack(st)
	case !waits && st.last == st.first: // the group would call it held, although it is free
		s.giveBack(st)
	case !waits:
		s.keep(w, st)
	case !w.Now.Before(w.Safe):
		s.stall(st)
	default:
		s.next(st)
		if st.shared {
			s.settle(w, st)
		}
	}
}

// next grants a pass to the caller that has waited longest.
func (s *Set) next(st *stay) {
	c := st.queue.head
	s.unwait(c)
	if st.recalled != 0 {
		st.extra++
	}
	s.pass(st, c)
	s.tell(News{Kind: Granted, Caller: c})
	if st.recalled != 0 || st.queue.size > 0 && !st.shared {
		s.tell(News{Kind: Wanted, Caller: c})
	}
}

// refer makes all callers that wait ask the group.
func (s *Set) refer(st *stay) {
	for st.queue.head != nil {
		c := st.queue.head
		s.unwait(c)
		s.tell(News{Kind: Referred, Caller: c})
	}
}

// wanted tells the callers inside that another request waits.
func (s *Set) wanted(st *stay) {
	for c := st.inside.head; c != nil; c = c.next {
		s.tell(News{Kind: Wanted, Caller: c})
	}
}

func (s *Set) keep(w Window, st *stay) {
	if s.free.size >= s.Limit {
		if s.free.first == nil {
			s.giveBack(st)
			return
		}
		s.giveBack(s.free.first)
	}
	st.used = w.Now
	s.free.push(st)
}

func (s *Set) stall(st *stay) {
	if !st.isStalled {
		st.isStalled = true
		s.stalled = append(s.stalled, st)
	}
}

// giveBack releases a stay, and makes one new request for the callers that wait.
func (s *Set) giveBack(st *stay) {
	s.biases.learn(st.key, st.passes, st.recalled != 0)
	s.do(Command{Kind: Release, Request: st.request})
	s.again(st)
}

// again ends a granted stay, and makes one new request for the callers that wait.
func (s *Set) again(st *stay) {
	s.free.remove(st)
	if st.granted {
		st.granted = false
		s.granted--
	}
	if st.queue.size == 0 {
		s.drop(st)
		return
	}
	st.yields, st.recalled, st.extra, st.passes, st.nested, st.behind = false, 0, 0, 0, false, nil
	st.queue.upTo, st.queue.early = 0, 0
	s.ask(st)
}

func (s *Set) ask(st *stay) {
	st.request = &Request{Key: st.key, Shared: st.shared, stay: st}
	s.do(Command{Kind: Acquire, Request: st.request})
}

// named returns the stay with a name, or nil.
func (s *Set) named(n name) *stay {
	if st := s.recent; st != nil && st.name == n { // calls for one key often follow each other
		return st
	}
	st := s.stays[n]
	if st != nil {
		s.recent = st
	}
	return st
}

func (s *Set) drop(st *stay) {
	delete(s.stays, st.name)
	if s.recent == st {
		s.recent = nil
	}
}

func (s *Set) wait(st *stay, c *Caller) {
	c.stay = st
	st.queue.push(c)
	s.waiting++
	s.keyBytes += len(c.Key)
}

func (s *Set) unwait(c *Caller) {
	c.forget().queue.remove(c)
	s.waiting--
	s.keyBytes -= len(c.Key)
}

func (s *Set) do(c Command) { s.commands = append(s.commands, c) }
func (s *Set) tell(n News)  { s.news = append(s.news, n) }
