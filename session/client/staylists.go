package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// This file contains the list of free stays, and the queue of callers of each stay.

// leastIdle is the shortest time between two Ticks while no stay is free.
const leastIdle = time.Millisecond

// Tick gives back the stays that were not used for the time Idle.
func (s *Stays) Tick(now clock.Time) {
	for s.first != nil && now.Sub(s.first.used) >= s.Idle {
		s.giveBack(s.first)
	}
}

// Next returns the latest time of the next Tick. Zero means never. A stay that becomes free later
// does not need an earlier Tick.
func (s *Stays) Next(now clock.Time) clock.Time {
	switch {
	case len(s.stays) == 0 || s.Limit <= 0:
		return 0
	case s.first == nil:
		return now.Add(max(s.Idle, leastIdle))
	}
	return s.first.used.Add(s.Idle)
}

// Counts returns the number of free stays, the number of stays that wait in the group's queue, and
// the number of callers that wait.
func (s *Stays) Counts() (free, asked, waiting int) {
	return s.free, len(s.stays) - s.granted, s.waiting
}

// isFree reports whether r is the request of a free stay.
func (s *Stays) isFree(r *Request) bool {
	st, is := r.Caller.(*stay)
	return is && st.request == r && st.isFree
}

func (s *Stays) setFree(w Window, st *stay) {
	if s.free >= s.Limit {
		if s.first == nil {
			s.giveBack(st)
			return
		}
		s.giveBack(s.first)
	}
	st.used, st.isFree, st.prev, st.next = w.Now, true, s.last, nil
	if s.last == nil {
		s.first = st
	} else {
		s.last.next = st
	}
	s.last = st
	s.free++
}

func (s *Stays) unfree(st *stay) {
	if !st.isFree {
		return
	}
	if st.prev == nil {
		s.first = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		s.last = st.prev
	} else {
		st.next.prev = st.prev
	}
	st.prev, st.next, st.isFree = nil, nil, false
	s.free--
}

func (s *Stays) push(st *stay, l *StayCaller) {
	st.order++
	l.order = st.order
	l.prev, l.next = st.tail, nil
	if st.tail == nil {
		st.head = l
	} else {
		st.tail.next = l
	}
	st.tail = l
	st.waiting++
	s.waiting++
}

// remove reports whether l waited.
func (s *Stays) remove(st *stay, l *StayCaller) bool {
	if st.head != l && l.prev == nil {
		return false
	}
	if l.order <= st.upTo {
		st.before--
	}
	if l.prev == nil {
		st.head = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		st.tail = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
	st.waiting--
	s.waiting--
	return true
}
