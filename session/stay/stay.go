package stay

import (
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file contains stays and their callers, and the lists of both.

// Caller is one call. The caller sets the exported fields.
type Caller struct {
	Key         string
	Caller      any // not used by the Set
	Shared, Try bool
	Notice      bool // not used by the Set

	waits, holds bool
	stay         *stay
	token        lockfsm.Token
	order        uint64  // in the queue of the stay
	prev, next   *Caller // in the queue of the stay, or among the callers inside
}

// forget returns the stay of the caller. Afterwards the caller does not refer to the stay, so a
// Caller that is kept after its call does not keep it.
func (c *Caller) forget() *stay {
	st := c.stay
	c.stay = nil
	return st
}

// Token returns the token of the pass, or of the holder that a call with Try has met.
func (c *Caller) Token() lockfsm.Token { return c.token }

// Request is a request of a stay in the queue of the group.
type Request struct {
	Key    string
	Shared bool
	Of     any // not used by the Set

	stay *stay
}

// name identifies a stay among those of its session.
type name struct {
	key    string
	shared bool
}

func (n name) compare(o name) int {
	if n.key == o.key && n.shared != o.shared {
		if o.shared {
			return -1
		}
		return 1
	}
	return strings.Compare(n.key, o.key)
}

type stay struct {
	name
	request     *Request // the request in the group
	granted     bool
	first       lockfsm.Token // of the request; no caller gets it
	spare, last lockfsm.Token // the next token for a caller, and the last one
	reserved    clock.Time
	inside      callers // those that hold the lock: at most one, unless the stay is shared
	queue       queue
	passes      int
	nested      bool // a request was made under one of the present passes
	behind      any  // what Behind was told

	yields   bool       // see YieldWhenFree
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

// open reports whether the next caller holds the lock at once.
func (st *stay) open(w Window) bool {
	return st.granted && (st.inside.size == 0 || st.shared) && st.queue.size == 0 && st.recalled == 0 &&
		!st.nested && st.fresh(w) && w.Now.Before(w.Safe)
}

// refuses reports whether a shared stay grants no pass until all its callers have unlocked,
// although the group would grant a further request at once.
func (st *stay) refuses(w Window) bool {
	return st.shared && st.inside.size > 0 && st.recalled == 0 && (st.nested || !st.fresh(w))
}

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

// callers is a list of callers, in the order in which they were added.
type callers struct {
	head, tail *Caller
	size       int
}

func (l *callers) add(c *Caller) {
	c.prev, c.next = l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
	l.size++
}

func (l *callers) remove(c *Caller) {
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.size--
}

// queue contains the callers that wait for one stay, in the order of their calls.
type queue struct {
	callers
	order uint64 // of the last caller that began to wait
	upTo  uint64 // the order of the last caller that waited before the recall
	early int    // callers that have waited since before the recall
}

func (q *queue) push(c *Caller) {
	q.order++
	c.order, c.waits = q.order, true
	q.add(c)
}

func (q *queue) remove(c *Caller) {
	if c.order <= q.upTo {
		q.early--
	}
	c.waits = false
	q.callers.remove(c)
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
