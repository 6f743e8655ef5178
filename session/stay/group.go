package stay

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// leastIdle is the shortest time between two Ticks while no stay is free.
const leastIdle = time.Millisecond

// find returns the stay of a request of the group, or nil if the stay has another request now.
func (s *Set) find(r *Request) *stay {
	if st := r.stay; st.request == r && s.stays[st.name] == st {
		return st
	}
	return nil
}

// IsFree reports whether r is the request of a free stay.
func (s *Set) IsFree(r *Request) bool { return r.stay.request == r && r.stay.isFree }

// Granted reports that the request of a stay is granted, with its first and its last token. If last
// is zero the group has reserved no tokens, and the only caller gets the first token.
func (s *Set) Granted(w Window, r *Request, first, last lockfsm.Token) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.granted, st.first, st.spare, st.last, st.reserved, st.behind = true, first, first+1, last, w.Now, nil
	s.granted++
	if last == 0 {
		st.spare, st.last = first, first
	}
	s.settle(w, st)
}

// Failed reports that the request of a stay has failed. All its callers fail.
func (s *Set) Failed(r *Request, err error) {
	if st := s.find(r); st != nil {
		s.fail(st, err)
		s.drop(st)
	}
}

func (s *Set) fail(st *stay, err error) {
	for st.queue.head != nil {
		c := st.queue.head
		s.unwait(c)
		s.tell(News{Kind: Failed, Caller: c, Err: err})
	}
}

// Lost reports that a granted request of a stay is lost. The callers inside have lost the lock, and
// the others wait for a new request. The callers get info with their news.
func (s *Set) Lost(r *Request, err error, info any) {
	st := s.find(r)
	if st == nil {
		return
	}
	for st.inside.head != nil {
		c := st.inside.head
		s.leave(c)
		s.tell(News{Kind: Lost, Caller: c, Err: err, Info: info})
	}
	s.again(st)
}

// Behind reports the holder for which the request of a stay waits. Callers get it with their news.
func (s *Set) Behind(r *Request, holder any) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.behind = holder
	for c := st.queue.head; c != nil; c = c.next {
		s.tell(News{Kind: Behind, Caller: c, Info: holder})
	}
}

// YieldWhenFree reports that another request is about to wait for the stay. As soon as the stay is
// free, it counts as recalled and is given back.
func (s *Set) YieldWhenFree(w Window, r *Request) {
	st := s.find(r)
	if st == nil || !st.granted {
		return
	}
	st.yields = true
	if st.isFree {
		s.settle(w, st)
	}
}

// Recalled reports that another request waits for the stay.
func (s *Set) Recalled(w Window, r *Request) {
	st := s.find(r)
	if st == nil || !st.granted {
		return
	}
	if st.recalled == 0 {
		st.recalled = w.Now
		st.queue.upTo, st.queue.early = st.queue.order, st.queue.size
	}
	s.wanted(st)
	if st.inside.size == 0 {
		s.settle(w, st)
	}
}

// Asked reports that requests with Try, up to place, wait for the answer of the stay.
func (s *Set) Asked(w Window, r *Request, place lockfsm.Revision) {
	s.Recalled(w, r)
	if st := s.find(r); st != nil && st.granted && st.inside.size > 0 {
		s.Totals.InUse++
		s.do(Command{Kind: InUse, Request: r, Place: place, Token: st.inside.head.token})
	}
}

// Renewed reports that the lease was renewed.
func (s *Set) Renewed(w Window) {
	stalled := s.stalled
	s.stalled = nil
	for _, st := range stalled {
		st.isStalled = false
		if s.stays[st.name] == st && st.granted && st.queue.size > 0 && (st.inside.size == 0 || st.shared) {
			s.settle(w, st)
		}
	}
}

// Leave gives back all stays that no caller is inside of, and the others when their caller has
// unlocked. Callers that wait for them fail with err. Later calls are ordinary.
func (s *Set) Leave(err error) {
	s.leaving = true
	s.giveBackFree()
	for _, name := range slices.SortedFunc(maps.Keys(s.stays), name.compare) { // the same order in each run
		st := s.stays[name]
		if !st.granted {
			continue // its request fails, too
		}
		s.fail(st, err)
		if st.inside.size == 0 {
			s.giveBack(st)
		}
	}
}

// giveBackFree gives back all free stays.
func (s *Set) giveBackFree() {
	for s.free.first != nil {
		s.giveBack(s.free.first)
	}
}

// GiveBackUnused gives back all stays that no caller is inside of, also those whose callers wait
// until the lease is renewed. These callers go on waiting.
func (s *Set) GiveBackUnused() {
	s.giveBackFree()
	for _, name := range slices.SortedFunc(maps.Keys(s.stays), name.compare) {
		if st := s.stays[name]; st.granted && st.inside.size == 0 {
			s.giveBack(st)
		}
	}
}

// Tick gives back the stays that were not used for the time Idle.
func (s *Set) Tick(now clock.Time) {
	for st := s.free.first; st != nil && now.Sub(st.used) >= s.Idle; st = s.free.first {
		s.giveBack(st)
	}
}

// Next returns the latest time of the next Tick. Zero means never. A stay that becomes free later
// does not need an earlier Tick.
func (s *Set) Next(now clock.Time) clock.Time {
	switch {
	case len(s.stays) == 0 || s.Limit <= 0:
		return 0
	case s.free.first == nil:
		return now.Add(max(s.Idle, leastIdle))
	}
	return s.free.first.used.Add(s.Idle)
}
