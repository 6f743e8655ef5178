package stay

// This file is about callers. group.go is about what the group and the lease report.

// Answer is the result of [Set.Lock].
type Answer uint8

// The answers.
const (
	Passed   Answer = iota + 1 // the caller holds the lock with its token
	Waits                      // News will tell the caller
	Held                       // another caller of this session holds the lock, with the token of the caller
	Ordinary                   // the caller must ask the group with an ordinary request
	Full                       // too many callers wait
)

// Lock begins a call.
func (s *Set) Lock(w Window, c *Caller) Answer {
	st := s.named(name{c.Key, c.Shared})
	switch {
	case s.leaving || st != nil && st.refuses(w):
		return Ordinary
	case c.Try:
		return s.try(w, st, c)
	case s.waiting >= maxWaiting || s.keyBytes >= maxKeyBytes:
		return Full
	case st == nil && s.biases.skips(c.Key):
		return Ordinary
	case st == nil:
		s.Yield(c.Key)
		st = &stay{name: name{c.Key, c.Shared}}
		s.stays[st.name] = st
		s.ask(st)
	case st.open(w):
		s.pass(st, c)
		return Passed
	}
	s.wait(st, c)
	if st.behind != nil {
		s.tell(News{Kind: Behind, Caller: c, Info: st.behind})
	}
	if st.granted && (st.inside.size == 0 || st.shared) {
		s.settle(w, st)
	} else {
		s.wanted(st)
	}
	return Waits
}

func (s *Set) try(w Window, st *stay, c *Caller) Answer {
	switch {
	case st == nil || !st.granted || st.recalled != 0:
		return Ordinary
	case !st.shared && st.inside.size > 0 && w.Now.Before(w.Deadline):
		c.token = st.inside.head.token
		return Held
	case st.open(w):
		s.pass(st, c)
		return Passed
	}
	return Ordinary
}

// Request returns the request of the stay under whose pass the caller holds the lock, or nil.
func (s *Set) Request(c *Caller) *Request {
	if !c.holds {
		return nil
	}
	return c.stay.request
}

// Unlock ends the pass of a caller. It does nothing if the pass has ended.
func (s *Set) Unlock(w Window, c *Caller) {
	if c.holds {
		s.settle(w, s.leave(c))
	}
}

// Lapse is like Unlock, for a caller that has ended without an unlock. The group records the
// reason.
func (s *Set) Lapse(w Window, c *Caller, why string) {
	if c.holds {
		s.do(Command{Kind: Lapse, Request: c.stay.request, Token: c.token, Why: why})
		s.Unlock(w, c)
	}
}

// Cancel ends a call that waits, and unlocks if the call was granted the lock.
func (s *Set) Cancel(w Window, c *Caller) {
	if !c.waits {
		s.Unlock(w, c)
		return
	}
	st := c.stay
	s.unwait(c)
	switch {
	case st.queue.size > 0 || st.inside.size > 0:
	case st.granted:
		s.settle(w, st)
	default:
		s.do(Command{Kind: Cancel, Request: st.request})
		s.drop(st)
	}
}

// Nested reports that a request is made under the stay of owner. The stay grants no further pass.
// The group knows only that the stay is the owner of the new request, and would take the stay's
// next callers for the owner, too.
func (s *Set) Nested(owner *Request) {
	st := s.find(owner)
	if st == nil {
		return
	}
	st.nested = true
	if st.isFree { // its caller has unlocked meanwhile
		s.giveBack(st)
	}
}

// Yield gives back the free stays of a key before this session sends a request for the key to the
// group.
func (s *Set) Yield(key string) {
	for _, shared := range [...]bool{false, true} {
		if st := s.stays[name{key, shared}]; st != nil && st.isFree {
			s.giveBack(st)
		}
	}
}
