package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Limits of stays. They do not depend on the load.
const (
	recallPasses = 16                    // passes after a recall, for callers that waited before it
	recallTime   = 10 * time.Millisecond // after this time a recalled stay is given back
	biasPasses   = 4                     // a stay with this many passes is worth its cost
	biasLongest  = 64                    // grants that are not kept, at most, after a stay of little use
	biasKeys     = 10_000                // keys whose stays were of little use
)

// This file is about the callers of stays. stayends.go is about the begin and the end of a stay in
// the group, and staylists.go about queues and lists.

// Stays decides about the stays of one session. A stay is a lock that the session keeps after its
// callers have unlocked, until another session wants it. A pass is a grant out of a stay to one
// caller of this session. It needs no message.
//
// A session has at most one request for a stay in the queue of the group, for all its callers. The
// callers wait in the queue of the stay. After a recall at most 16 callers that waited before the
// recall, for at most 10 ms, are granted the lock. Then the stay is given back, and one new request
// is made for all callers that are left. Without this rule each caller would wait in the group's
// queue after a recall, so no later stay could be kept (see package client).
//
// Stays has no goroutine and no clock. Commands and News are its output. It is not safe for
// concurrent use.
type Stays struct {
	Limit int           // the largest number of free stays
	Idle  time.Duration // a stay that was not used for this time is given back

	Commands []StayCommand // to be carried out in this order, and then emptied
	News     []StayNews    // to be delivered in this order, and then emptied

	stays       map[string]*stay
	first, last *stay // the free stays, the longest unused first
	free        int
	granted     int     // stays that the group has granted
	waiting     int     // callers that wait, for all stays
	stalled     []*stay // granted stays whose callers wait until the lease is renewed
	leaving     bool
	useless     map[string]*bias
}

// StayCommandKind is the kind of a StayCommand.
type StayCommandKind uint8

// The commands of stays.
const (
	StayAcquire StayCommandKind = iota + 1 // begin the request
	StayRelease                            // release the request, which is granted
	StayCancel                             // cancel the request, which waits
	StayInUse                              // answer the requests with Try up to Place
)

// StayCommand is a command to the core.
type StayCommand struct {
	Kind    StayCommandKind
	Request *Request
	Place   lockfsm.Revision // only with StayInUse, like Token
	Token   lockfsm.Token    // of the pass
}

// StayNews is a change for one caller. Exactly one of Granted, Wanted, Behind and Err is set.
type StayNews struct {
	Caller  *StayCaller
	Granted bool       // the caller holds the lock with its token
	Wanted  bool       // another request waits for the lock that the caller holds
	Behind  *HeldError // the holder for which the caller waits
	Err     error      // the call has failed, or its hold is lost
	Why     Loss       // of a lost hold
	Lost    bool       // Err is about a hold
}

// StayCaller is one call for a stay. The caller sets the exported fields.
type StayCaller struct {
	Key    string
	Try    bool
	Caller any // not used by Stays

	stay       *stay
	token      lockfsm.Token
	holds      bool
	order      uint64      // in the queue of the stay
	prev, next *StayCaller // in the queue of the stay
}

// Token returns the token of the pass, or of the holder that a Try has met.
func (l *StayCaller) Token() lockfsm.Token { return l.token }

type stay struct {
	key         string
	request     *Request // the request in the group
	granted     bool
	first       lockfsm.Token // of the request; no caller gets it
	spare, last lockfsm.Token // the next token for a caller, and the last one
	reserved    clock.Time
	inside      *StayCaller // the caller that holds the lock
	head, tail  *StayCaller // callers that wait
	waiting     int
	passes      int
	nested      bool // a request was made under the present pass
	behind      *HeldError

	order    uint64     // of the last caller that began to wait
	recalled clock.Time // when the stay was first recalled; zero means never
	upTo     uint64     // the order of the last caller that waited before the recall
	before   int        // callers that have waited since before the recall
	extra    int        // passes since the recall

	used       clock.Time
	isFree     bool
	isStalled  bool
	prev, next *stay // in the list of free stays
}

type bias struct{ skip, width int }

// NewStays returns an empty Stays.
func NewStays(limit int, idle time.Duration) *Stays {
	return &Stays{Limit: limit, Idle: idle, stays: map[string]*stay{},
		useless: map[string]*bias{}}
}

// StayAnswer is the result of [Stays.Lock].
type StayAnswer uint8

// The answers.
const (
	StayGranted  StayAnswer = iota + 1 // the caller holds the lock with its token
	StayWaits                          // News will tell the caller
	StayHeld                           // another caller of this session holds the lock, with the token of the caller
	StayOrdinary                       // the caller must ask the group with an ordinary request
	StayFull                           // too many callers wait
)

// Window is what a session may rely on at one moment.
type Window struct {
	Now      clock.Time
	Safe     clock.Time // passes are granted only before this time
	Deadline clock.Time // passes are lost at this time
	TTL      time.Duration
}

// Lock begins a call.
func (s *Stays) Lock(w Window, l *StayCaller) StayAnswer {
	st := s.stays[l.Key]
	switch {
	case s.leaving:
		return StayOrdinary
	case l.Try:
		return s.try(w, st, l)
	case s.waiting >= maxUnfinished:
		return StayFull
	case st == nil && s.skips(l.Key):
		return StayOrdinary
	case st == nil:
		st = &stay{key: l.Key}
		s.stays[l.Key] = st
		s.ask(st)
	case st.isFree && st.usable(w):
		s.pass(w, st, l)
		return StayGranted
	}
	l.stay = st
	s.push(st, l)
	if st.behind != nil {
		s.News = append(s.News, StayNews{Caller: l, Behind: st.behind})
	}
	if st.inside != nil {
		s.News = append(s.News, StayNews{Caller: st.inside, Wanted: true})
	} else if st.granted {
		s.settle(w, st)
	}
	return StayWaits
}

func (s *Stays) try(w Window, st *stay, l *StayCaller) StayAnswer {
	switch {
	case st == nil || !st.granted || st.recalled != 0:
		return StayOrdinary
	case st.inside != nil && w.Now.Before(w.Deadline):
		l.token = st.inside.token
		return StayHeld
	case st.isFree && st.usable(w):
		s.pass(w, st, l)
		return StayGranted
	}
	return StayOrdinary
}

// usable reports whether a pass may be granted out of a granted stay.
func (st *stay) usable(w Window) bool { return st.fresh(w) && w.Now.Before(w.Safe) }

// fresh reports whether the stay has a token that was reserved less than a TTL ago. Tokens of all
// keys therefore rise with the time within a TTL, on which package fence relies.
func (st *stay) fresh(w Window) bool { return !st.usedUp() && w.Now.Sub(st.reserved) < w.TTL }

func (s *Stays) pass(w Window, st *stay, l *StayCaller) {
	s.unfree(st)
	l.stay, l.holds = st, true
	l.token = st.spare
	st.spare++
	st.inside, st.nested = l, false
	st.passes++
}

// Nested reports that a request is made under owner. If owner is the request of a stay, the stay
// grants no further pass. The group knows only that the stay is the owner of the new request, and
// would take the stay's next callers for the owner, too.
func (s *Stays) Nested(owner *Request) {
	st, is := owner.Caller.(*stay)
	if !is || s.find(owner) == nil {
		return
	}
	st.nested = true
	if st.isFree { // its caller has unlocked meanwhile
		s.giveBack(st)
	}
}

// Request returns the request of the stay under whose pass the caller holds the lock, or nil.
func (s *Stays) Request(l *StayCaller) *Request {
	if l.stay == nil || l.stay.inside != l {
		return nil
	}
	return l.stay.request
}

// Unlock ends the pass of a caller. It does nothing if the pass has ended.
func (s *Stays) Unlock(w Window, l *StayCaller) {
	st := l.stay
	if st == nil || st.inside != l {
		return
	}
	l.holds, st.inside = false, nil
	s.settle(w, st)
}

// Cancel ends a call that waits, and unlocks if the call was granted the lock.
func (s *Stays) Cancel(w Window, l *StayCaller) {
	st := l.stay
	switch {
	case st == nil:
		return
	case l.holds:
		s.Unlock(w, l)
		return
	}
	if !s.remove(st, l) {
		return
	}
	switch {
	case st.waiting > 0 || st.inside != nil:
	case st.granted:
		s.settle(w, st)
	default:
		s.Commands = append(s.Commands, StayCommand{Kind: StayCancel, Request: st.request})
		s.drop(st)
	}
}

// settle decides what happens to a granted stay that no caller is inside of.
func (s *Stays) settle(w Window, st *stay) {
	s.unfree(st)
	switch {
	case s.leaving || st.nested || st.usedUp() || st.over(w) || st.waiting > 0 && !st.fresh(w):
		s.giveBack(st)
	case st.waiting == 0 && st.last == st.first: // the group would call it held, although it is free
		s.giveBack(st)
	case st.waiting == 0:
		s.setFree(w, st)
	case !w.Now.Before(w.Safe):
		s.stall(st)
	default:
		l := st.head
		s.remove(st, l)
		if st.recalled != 0 {
			st.extra++
		}
		s.pass(w, st, l)
		s.News = append(s.News, StayNews{Caller: l, Granted: true})
		if st.waiting > 0 || st.recalled != 0 {
			s.News = append(s.News, StayNews{Caller: l, Wanted: true})
		}
	}
}

// over reports whether a stay was recalled and grants no further pass. In jeopardy, a recalled stay
// does not wait for a renewal.
func (st *stay) over(w Window) bool {
	return st.recalled != 0 && (st.before == 0 || st.extra >= recallPasses ||
		w.Now.Sub(st.recalled) >= recallTime || !w.Now.Before(w.Safe))
}

// usedUp reports whether no token is left.
func (st *stay) usedUp() bool { return st.spare > st.last }
