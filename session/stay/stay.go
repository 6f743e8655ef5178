package stay

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file contains stays and their callers, and the lists of both.

// Caller is one call. The caller sets the exported fields.
type Caller struct {
	Key    string
	Try    bool
	Caller any // not used by the Set

	stay       *stay
	token      lockfsm.Token
	holds      bool
	order      uint64  // in the queue of the stay
	prev, next *Caller // in the queue of the stay
}

// Token returns the token of the pass, or of the holder that a call with Try has met.
func (c *Caller) Token() lockfsm.Token { return c.token }

// Request is a request of a stay in the queue of the group.
type Request struct {
	Key string
	Of  any // not used by the Set

	stay *stay
}

type stay struct {
	key         string
	request     *Request // the request in the group
	granted     bool
	first       lockfsm.Token // of the request; no caller gets it
	spare, last lockfsm.Token // the next token for a caller, and the last one
	reserved    clock.Time
	inside      *Caller // the caller that holds the lock
	queue       queue
	passes      int
	nested      bool // a request was made under the present pass
	behind      any  // what Behind was told

	recalled clock.Time // when the stay was first recalled; zero means never
	extra    int        // passes since the recall

	used       clock.Time
	isFree     bool
	isStalled  bool
	prev, next *stay // in the list of free stays
}

// Window is what a session may rely on at one moment.
type Window struct {
	Now      clock.Time
	Safe     clock.Time // passes are granted only before this time
	Deadline clock.Time // passes are lost at this time
	TTL      time.Duration
}

// usable reports whether a pass may be granted out of a granted stay.
func (st *stay) usable(w Window) bool { return st.fresh(w) && w.Now.Before(w.Safe) }

// fresh reports whether the stay has a token that was reserved less than a TTL ago. Tokens of all
// keys therefore rise with the time within a TTL, on which package fence relies.
func (st *stay) fresh(w Window) bool { return !st.usedUp() && w.Now.Sub(st.reserved) < w.TTL }

// usedUp reports whether no token is left.
func (st *stay) usedUp() bool { return st.spare > st.last }

const (
	recallPasses = 16                    // passes after a recall, for callers that waited before it
	recallTime   = 10 * time.Millisecond // after this time a recalled stay is given back
)

// over reports whether a stay was recalled and grants no further pass. In jeopardy, a recalled stay
// does not wait for a renewal.
func (st *stay) over(w Window) bool {
	return st.recalled != 0 && (st.queue.early == 0 || st.extra >= recallPasses ||
		w.Now.Sub(st.recalled) >= recallTime || !w.Now.Before(w.Safe))
}

// queue contains the callers that wait for one stay, in the order of their calls.
type queue struct {
	head, tail *Caller
	size       int
	order      uint64 // of the last caller that began to wait
	upTo       uint64 // the order of the last caller that waited before the recall
	early      int    // callers that have waited since before the recall
}

func (q *queue) push(c *Caller) {
	q.order++
	c.order = q.order
	c.prev, c.next = q.tail, nil
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail = c
	q.size++
}

// remove reports whether c waited.
func (q *queue) remove(c *Caller) bool {
	if q.head != c && c.prev == nil {
		return false
	}
	if c.order <= q.upTo {
		q.early--
	}
	if c.prev == nil {
		q.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	q.size--
	return true
}

// freeList contains the free stays, the longest unused first.
type freeList struct {
	first, last *stay
	size        int
}

func (l *freeList) push(st *stay) {
	st.isFree, st.prev, st.next = true, l.last, nil
	if l.last == nil {
		l.first = st
	} else {
		l.last.next = st
	}
	l.last = st
	l.size++
}

// remove does nothing if st is not free.
func (l *freeList) remove(st *stay) {
	if !st.isFree {
		return
	}
	if st.prev == nil {
		l.first = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		l.last = st.prev
	} else {
		st.next.prev = st.prev
	}
	st.prev, st.next, st.isFree = nil, nil, false
	l.size--
}
