package stay

import (
	"time"
)

// Limits of a Set. They do not depend on the load.
const (
	maxWaiting  = 65_536
	maxKeyBytes = 8 << 20 // of the keys of waiting callers
)

// Set contains the stays of one session.
type Set struct {
	Limit int           // the largest number of free stays
	Idle  time.Duration // a stay that was not used for this time is given back

	commands []Command
	news     []News

	stays    map[string]*stay
	free     freeList
	granted  int     // stays that the group has granted
	waiting  int     // callers that wait, for all stays
	keyBytes int     // of the callers that wait
	stalled  []*stay // granted stays whose callers wait until the lease is renewed
	leaving  bool
	biases   biases
}

// NewSet returns an empty Set.
func NewSet(limit int, idle time.Duration) *Set {
	return &Set{Limit: limit, Idle: idle, stays: map[string]*stay{}, biases: newBiases()}
}

// Counts returns the number of free stays, the number of stays that wait in the group's queue, and
// the number of callers that wait.
func (s *Set) Counts() (free, asked, waiting int) {
	return s.free.size, len(s.stays) - s.granted, s.waiting
}

func (s *Set) pass(st *stay, c *Caller) {
	s.free.remove(st)
	c.stay, c.holds = st, true
	c.token = st.spare
	st.spare++
	st.inside, st.nested = c, false
	st.passes++
}

// settle decides what happens to a granted stay that no caller is inside of.
func (s *Set) settle(w Window, st *stay) {
	s.free.remove(st)
	waits := st.queue.size > 0
	switch {
	case s.leaving || st.nested || st.usedUp() || st.over(w) || waits && !st.fresh(w):
		s.giveBack(st)
	case !waits && st.last == st.first: // the group would call it held, although it is free
		s.giveBack(st)
	case !waits:
		s.keep(w, st)
	case !w.Now.Before(w.Safe):
		s.stall(st)
	default:
		c := st.queue.head
		s.unwait(st, c)
		if st.recalled != 0 {
			st.extra++
		}
		s.pass(st, c)
		s.tell(News{Kind: Granted, Caller: c})
		if st.queue.size > 0 || st.recalled != 0 {
			s.tell(News{Kind: Wanted, Caller: c})
		}
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
	st.recalled, st.extra, st.passes, st.nested, st.behind = 0, 0, 0, false, nil
	st.queue.upTo, st.queue.early = 0, 0
	s.ask(st)
}

func (s *Set) ask(st *stay) {
	st.request = &Request{Key: st.key, stay: st}
	s.do(Command{Kind: Acquire, Request: st.request})
}

func (s *Set) drop(st *stay) {
	if s.stays[st.key] == st {
		delete(s.stays, st.key)
	}
}

func (s *Set) wait(st *stay, c *Caller) {
	c.stay = st
	st.queue.push(c)
	s.waiting++
	s.keyBytes += len(c.Key)
}

// unwait reports whether c waited.
func (s *Set) unwait(st *stay, c *Caller) bool {
	if !st.queue.remove(c) {
		return false
	}
	s.waiting--
	s.keyBytes -= len(c.Key)
	return true
}

func (s *Set) do(c Command) { s.commands = append(s.commands, c) }
func (s *Set) tell(n News)  { s.news = append(s.news, n) }
