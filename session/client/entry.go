package client

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Request is one call for a lock, from the call to its end. Whoever makes one fills in the exported
// fields and gives it to [Core.Acquire]; from then on it belongs to the core until an outcome ends
// it.
type Request struct {
	Key    string
	Try    bool   // never queue
	Terms  *Terms // nil: the lock alone, as a mutex
	Caller any    // for whoever made the request; the core only hands it back

	stage stage
	token lockfsm.Token
	entry *entry     // what stands for the request in the group, or will; nil when over
	order uint64     // its place among the calls of this client: it keeps it when it is asked anew
	since clock.Time // when it was made
	until clock.Time // when the hold ends by itself; zero: never
	first entry      // what entry is before the request is asked anew
}

// Terms is what makes a request another one than that of a mutex. It belongs to the core with its
// request. The fields are those of lockfsm.Command.
type Terms struct {
	Keys        []string // further keys, ascending, above the request's Key
	Permits, Of uint32
	Most        uint32
	Value       []byte
	Notice      bool          // OutcomeWanted tells when somebody waits
	Delay       time.Duration // how long the hold stays when this end is gone or has lost it
	// Resume is the token of a hold that is to be taken up, with all its keys, instead of a lock to
	// be waited for; 0: none.
	Resume lockfsm.Token
	Under  *Request // under whose lock the request is made, of the same core; nil: none
	// Longest is after how long the hold ends by itself, counted from the moment at which this core
	// hears of the grant; 0: never.
	Longest time.Duration

	owner lockfsm.Number // Under's, as the group was told
	place int            // in limited
}

// limited is a heap of requests by when their holds end by themselves, each of which knows its
// place.
type limited []*Request

func (l limited) Len() int           { return len(l) }
func (l limited) Less(a, b int) bool { return l[a].until.Before(l[b].until) }
func (l limited) Swap(a, b int) {
	l[a], l[b] = l[b], l[a]
	l[a].Terms.place, l[b].Terms.place = a, b
}

// Push and Pop are for package heap.
func (l *limited) Push(r any) {
	r.(*Request).Terms.place = len(*l)
	*l = append(*l, r.(*Request))
}

// Pop removes the last one.
func (l *limited) Pop() any {
	last := len(*l) - 1
	r := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return r
}

// bytes returns about how many bytes of keys and value the request has.
func (r *Request) bytes() int {
	n := len(r.Key)
	if r.Terms != nil {
		for _, key := range r.Terms.Keys {
			n += len(key)
		}
		n += len(r.Terms.Value)
	}
	return n
}

// Shared reports whether the request shares its lock with any number of others.
func (r *Request) Shared() bool { return r.Terms != nil && r.Terms.Permits > 0 && r.Terms.Of == 0 }

// plain reports whether the keys are what a group may take. The others are refused here, without a
// way there and back.
func (r *Request) plain() bool {
	if !plainKey(r.Key) || r.Terms == nil {
		return plainKey(r.Key)
	}
	before := r.Key
	for _, key := range r.Terms.Keys {
		if !plainKey(key) || key <= before {
			return false
		}
		before = key
	}
	return len(r.Terms.Keys) < lockfsm.MaxKeys
}

// command returns the Acquire of the request, without what names its session and number.
func (r *Request) command() lockfsm.Command {
	c := lockfsm.Command{Kind: lockfsm.Acquire, Key: r.Key, Try: r.Try}
	if t := r.Terms; t != nil {
		c.Keys, c.Permits, c.Of, c.Most, c.Value, c.Notice, c.Delay = t.Keys, t.Permits, t.Of, t.Most, t.Value,
			t.Notice, t.Delay
		c.Token = t.Resume
		if t.Under != nil && t.Under.stage == stageHeld {
			t.owner = t.Under.entry.number
		}
		c.Owner = t.owner
	}
	return c
}

// overdue says why a hold of the request has ended that has lasted as long as it may.
func (r *Request) overdue() string {
	return fmt.Sprintf("it was held for %v, the longest that its request allows, and its holder had not unlocked it",
		r.Terms.Longest)
}

// outlives reports whether a hold of the request is to stay in the group when this end cannot go on
// with it: others expect that it does for its delay, and one that was taken up may have a delay
// from before.
func (r *Request) outlives() bool {
	return r.Terms != nil && (r.Terms.Delay > 0 || r.Terms.Resume != 0)
}

// stage says what a request's caller waits for.
type stage uint8

const (
	stageWaiting   stage = iota + 1 // for an answer
	stageHeld                       // for nothing: it holds the lock
	stageReleasing                  // for the confirmation of its release
	stageOver                       // nobody waits, and nothing is held
)

// entry is one numbered request as the group knows it. A request that is asked anew gets a new
// entry; the old one stays until it is known to be gone from the group. Invariants: number == 0 as
// long as the entry is in the unsent queue; freeing entries were sent; an entry that is not freeing
// has a request that waits or holds.
type entry struct {
	number lockfsm.Number
	req    *Request
	order  uint64
	// freeing: nobody wants it any more. Its Release or Cancel is due, or sent, or left to the next
	// Attach, which does not name it.
	freeing bool
	// stays: of a freeing entry, its hold is let go of without ending it. The next Attach does name
	// it, and then it is due again.
	stays bool
	// lapsed is why the hold of an entry that stays has ended, if its holder has not given it back.
	lapsed string
	// due: its Release, Cancel or Detach leaves with the next frame.
	due bool
	// left is the epoch of the Attach that did not name it.
	left lockfsm.Epoch
	// seen is the epoch on which the group last said what has become of it.
	seen lockfsm.Epoch
	// asked is when its last command was sent.
	asked clock.Time
	// open is the size of a command that was sent on this attachment and is not answered; it counts
	// against the window.
	open int

	prev, next *entry
}

// entryList is a list in ascending order, by place for the unsent queue and by number for what was
// sent. Being intrusive it needs no allocation, and an entry leaves it from the middle at no cost.
type entryList struct {
	head, tail *entry
	size       int
}

func (l *entryList) pushBack(e *entry) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.size++
}

// insert puts e behind all entries whose order is lower. It looks from the front, where requests
// that are asked anew belong.
func (l *entryList) insert(e *entry) {
	at := l.head
	for at != nil && at.order < e.order {
		at = at.next
	}
	if at == nil {
		l.pushBack(e)
		return
	}
	e.prev, e.next = at.prev, at
	if at.prev == nil {
		l.head = e
	} else {
		at.prev.next = e
	}
	at.prev = e
	l.size++
}

func (l *entryList) remove(e *entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.size--
}

// merge puts entries, ascending by order, into the list in one pass.
func (l *entryList) merge(entries []*entry) {
	old := l.head
	*l = entryList{}
	for _, e := range entries {
		for old != nil && old.order < e.order {
			next := old.next
			l.pushBack(old)
			old = next
		}
		l.pushBack(e)
	}
	for old != nil {
		next := old.next
		l.pushBack(old)
		old = next
	}
}
