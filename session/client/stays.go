package client

import (
	"maps"
	"slices"
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

	recalled clock.Time // zero means not recalled
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
)

// Window is what a session may rely on at one moment.
type Window struct {
	Now  clock.Time
	Safe clock.Time // passes are granted only before this time
	TTL  time.Duration
}

// Lock begins a call.
func (s *Stays) Lock(w Window, l *StayCaller) StayAnswer {
	st := s.stays[l.Key]
	switch {
	case s.leaving:
		return StayOrdinary
	case l.Try:
		return s.try(w, st, l)
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
	st.push(l)
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
	case st.inside != nil:
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
func (st *stay) fresh(w Window) bool { return st.spare <= st.last && w.Now.Sub(st.reserved) < w.TTL }

func (s *Stays) pass(w Window, st *stay, l *StayCaller) {
	s.unfree(st)
	l.stay, l.holds = st, true
	l.token = st.spare
	st.spare++
	st.inside, st.nested = l, false
	st.passes++
}

// Nested reports that a request is made under owner. If owner is the request of a stay, the present
// pass is the last one. The group knows only that the stay is the owner of the new request, and
// would take the owner's next callers for its owner, too.
func (s *Stays) Nested(owner *Request) {
	if st, is := owner.Caller.(*stay); is && st.request == owner && st.inside != nil {
		st.nested = true
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
	if !st.remove(l) {
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
	over := st.recalled != 0 && (st.before == 0 || st.extra >= recallPasses || w.Now.Sub(st.recalled) >= recallTime)
	switch {
	case over || st.nested || !st.fresh(w) && (st.waiting > 0 || st.last == st.first) || s.leaving:
		s.giveBack(st)
	case st.waiting == 0 && st.recalled != 0:
		s.giveBack(st)
	case st.waiting == 0:
		s.setFree(w, st)
	case !w.Now.Before(w.Safe):
		s.stall(st)
	default:
		l := st.head
		st.remove(l)
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

// giveBack releases a stay, and makes one new request for the callers that wait.
func (s *Stays) giveBack(st *stay) {
	s.unfree(st)
	s.learn(st)
	s.Commands = append(s.Commands, StayCommand{Kind: StayRelease, Request: st.request})
	s.again(st)
}

// again makes a new request for the callers of a stay that has ended.
func (s *Stays) again(st *stay) {
	if st.waiting == 0 {
		s.drop(st)
		return
	}
	st.granted, st.recalled, st.before, st.extra, st.passes, st.nested, st.behind = false, 0, 0, 0, 0, false, nil
	s.ask(st)
}

func (s *Stays) ask(st *stay) {
	st.request = &Request{Key: st.key, Sticky: true, Caller: st}
	s.Commands = append(s.Commands, StayCommand{Kind: StayAcquire, Request: st.request})
}

func (s *Stays) drop(st *stay) {
	if s.stays[st.key] == st {
		delete(s.stays, st.key)
	}
}

// find returns the stay of a request of the group, or nil if the stay has another request now.
func (s *Stays) find(r *Request) *stay {
	if st := r.Caller.(*stay); st.request == r && s.stays[st.key] == st {
		return st
	}
	return nil
}

// Granted reports that the request of a stay is granted, with its first and its last token. If last
// is zero the group has reserved no tokens, and the only caller gets the first token.
func (s *Stays) Granted(w Window, r *Request, first, last lockfsm.Token) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.granted, st.first, st.spare, st.last, st.reserved, st.behind = true, first, first+1, last, w.Now, nil
	if last == 0 {
		st.spare, st.last = first, first
	}
	s.settle(w, st)
}

// Failed reports that the request of a stay has failed. All its callers fail.
func (s *Stays) Failed(r *Request, err error) {
	if st := s.find(r); st != nil {
		s.fail(st, err)
		s.drop(st)
	}
}

func (s *Stays) fail(st *stay, err error) {
	for st.head != nil {
		l := st.head
		st.remove(l)
		s.News = append(s.News, StayNews{Caller: l, Err: err})
	}
}

// Lost reports that a granted request of a stay is lost. The caller inside has lost the lock, and
// the others wait for a new request.
func (s *Stays) Lost(r *Request, err error, why Loss) {
	st := s.find(r)
	if st == nil {
		return
	}
	s.unfree(st)
	if l := st.inside; l != nil {
		l.holds, st.inside = false, nil
		s.News = append(s.News, StayNews{Caller: l, Err: err, Why: why, Lost: true})
	}
	s.again(st)
}

// Behind reports the holder for which the request of a stay waits.
func (s *Stays) Behind(r *Request, behind *HeldError) {
	st := s.find(r)
	if st == nil {
		return
	}
	st.behind = behind
	for l := st.head; l != nil; l = l.next {
		s.News = append(s.News, StayNews{Caller: l, Behind: behind})
	}
}

// Recalled reports that another request waits for the stay.
func (s *Stays) Recalled(w Window, r *Request) {
	st := s.find(r)
	if st == nil || !st.granted {
		return
	}
	if st.recalled == 0 {
		st.recalled, st.before, st.extra = w.Now, st.waiting, 0
	}
	if st.inside == nil {
		s.settle(w, st)
	} else {
		s.News = append(s.News, StayNews{Caller: st.inside, Wanted: true})
	}
}

// Asked reports that requests with Try, up to place, wait for the answer of the stay.
func (s *Stays) Asked(w Window, r *Request, place lockfsm.Revision) {
	s.Recalled(w, r)
	if st := s.find(r); st != nil && st.granted && st.inside != nil {
		s.Commands = append(s.Commands, StayCommand{Kind: StayInUse, Request: r, Place: place,
			Token: st.inside.token})
	}
}

// Yield gives back a free stay before this session sends a request for the key to the group.
func (s *Stays) Yield(key string) {
	if st := s.stays[key]; st != nil && st.isFree {
		s.giveBack(st)
	}
}

// Renewed reports that the lease was renewed.
func (s *Stays) Renewed(w Window) {
	stalled := s.stalled
	s.stalled = nil
	for _, st := range stalled {
		if st.isStalled = false; s.stays[st.key] == st && st.granted && st.inside == nil && !st.isFree {
			s.settle(w, st)
		}
	}
}

func (s *Stays) stall(st *stay) {
	if !st.isStalled {
		st.isStalled = true
		s.stalled = append(s.stalled, st)
	}
}

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
	case len(s.stays) == 0:
		return 0
	case s.first == nil:
		return now.Add(s.Idle)
	}
	return s.first.used.Add(s.Idle)
}

// Free returns the number of free stays.
func (s *Stays) Free() int { return s.free }

// Leave gives back all stays that no caller is inside of, and the others when their caller has
// unlocked. Waiting callers fail with ErrLeaving.
func (s *Stays) Leave() {
	s.leaving = true
	s.GiveBackFree()
	for _, key := range slices.Sorted(maps.Keys(s.stays)) { // in an order that is the same in each run
		st := s.stays[key]
		if !st.granted {
			continue // the core fails the request
		}
		s.fail(st, ErrLeaving)
		if st.inside == nil {
			s.giveBack(st)
		}
	}
}

// GiveBackFree gives back all free stays.
func (s *Stays) GiveBackFree() {
	for s.first != nil {
		s.giveBack(s.first)
	}
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

func (st *stay) push(l *StayCaller) {
	l.prev, l.next = st.tail, nil
	if st.tail == nil {
		st.head = l
	} else {
		st.tail.next = l
	}
	st.tail = l
	st.waiting++
}

// remove reports whether l waited.
func (st *stay) remove(l *StayCaller) bool {
	if st.head != l && l.prev == nil {
		return false
	}
	if st.before > 0 && st.rank(l) < st.before {
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
	return true
}

// rank returns the number of callers before l, counted up to those before the recall.
func (st *stay) rank(l *StayCaller) (n int) {
	for at := l.prev; at != nil && n < st.before; at = at.prev {
		n++
	}
	return n
}

// skips reports whether the next grant of the key shall not be kept.
func (s *Stays) skips(key string) bool {
	b := s.useless[key]
	if b == nil || b.skip == 0 {
		return false
	}
	b.skip--
	return true
}

// learn notes whether a stay was worth its cost. A stay that ended by a recall after one pass costs
// a recall and serves nobody, so the next grants of its key are not kept: 1, then 2, and so on up
// to 64.
func (s *Stays) learn(st *stay) {
	switch {
	case st.passes >= biasPasses:
		delete(s.useless, st.key)
	case st.recalled != 0 && st.passes < 2:
		b := s.useless[st.key]
		if b == nil {
			if len(s.useless) >= biasKeys {
				clear(s.useless)
			}
			b = &bias{}
			s.useless[st.key] = b
		}
		b.width = min(max(1, 2*b.width), biasLongest)
		b.skip = b.width
	}
}
