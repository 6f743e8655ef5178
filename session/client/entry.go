package client

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Request is one call for a lock. The caller sets the exported fields. The core owns the Request
// from [Core.Acquire] until an outcome ends it.
type Request struct {
	Key    string
	Try    bool // the request must not wait for a holder
	Sticky bool // the request is for a stay
	asks   bool // a request with Try waits for the answer of a stay, or has waited
	stage  stage
	Terms  *Terms // nil means an exclusive lock of one key
	Caller any    // not used by the core

	mark  uint64 // see token and order
	entry *entry // sent or to be sent; nil after the request's end
	first entry  // saves an allocation
}

// token returns the token of the grant, also after the end of the hold. It must not be called
// before the grant.
func (r *Request) token() lockfsm.Token { return lockfsm.Token(r.mark) }

// order returns the place of a request that is not granted among the calls of this client.
func (r *Request) order() uint64 { return r.mark }

// tryWithout is how long a request with Try waits for a leader, or for the answer of a stay.
const tryWithout = 2 * time.Second

// Terms are the optional parts of a request, as in lockfsm.Command and lockfsm.Grant. The core owns
// them together with the request. A request without Terms is for an exclusive lock of one key.
type Terms struct {
	Keys        []string // further keys, ascending, each higher than the request's Key
	Permits, Of uint32
	Modes       []lockfsm.Mode // of the request's Key and Keys; nil means Permits and Of for all of them
	Most        uint32
	Value       []byte
	Notice      bool          // whether to report OutcomeWanted when another request waits
	Delay       time.Duration // how long the hold remains after this client has lost it; see WholeDelay
	// Resume is the token of the hold that the request resumes. Zero means none.
	Resume lockfsm.Token
	Under  *Request // the owner of this request, from the same core; nil means none
	// Longest limits a hold, measured from the arrival of the grant. Zero means no limit.
	Longest time.Duration
	// Idle is how long the hold goes on without a [Hold.Beat]. The hold ends up to a quarter of that
	// time later. Zero means no such end. Upgrades have none.
	Idle time.Duration
	// Grace is how long a hold can be in doubt after the deadline of the lease; see the package
	// comment. Zero means that it is lost at the deadline. The request must not be Sticky.
	Grace time.Duration
	// Upgrades makes the request an upgrade of the hold in Under; see [Hold.Upgrade].
	Upgrades bool
	Inner    *Request // of an upgrade, a second owner; nil means none

	limit     *limit         // of a hold; nil means none
	idle      *idle          // of a hold; nil means none
	beats     *beats         // of the hold; set before Acquire if Idle is
	granted   *lockfsm.Grant // what a resumed hold includes; set before its grant is reported, and never changed
	upgrade   *Request       // the upgrade of this hold that waits or is held
	owner     lockfsm.Number // the number of the request in Under, as sent to the group
	inner     lockfsm.Number // the number of the request in Inner, as sent to the group
	place     int            // index in limited; negative if it is no longer there
	doubtEnds clock.Time     // when a hold in doubt is lost
}

// UpgradedToken returns the token of the hold that the request upgrades. Zero means none.
func (t *Terms) UpgradedToken() lockfsm.Token {
	if !t.Upgrades {
		return 0
	}
	return t.Under.token()
}

// limited is a heap of requests, ordered by the time at which their holds end or are checked for
// beats.
type limited []*Request

func (l limited) Len() int           { return len(l) }
func (l limited) Less(a, b int) bool { return l[a].due().Before(l[b].due()) }
func (l limited) Swap(a, b int) {
	l[a], l[b] = l[b], l[a]
	l[a].Terms.place, l[b].Terms.place = a, b
}

// Push implements heap.Interface.
func (l *limited) Push(r any) {
	r.(*Request).Terms.place = len(*l)
	*l = append(*l, r.(*Request))
}

// Pop implements heap.Interface.
func (l *limited) Pop() any {
	last := len(*l) - 1
	r := (*l)[last]
	r.Terms.place = -1
	(*l)[last] = nil
	*l = (*l)[:last]
	return r
}

// due returns when a hold in limited ends or is to be checked.
func (r *Request) due() clock.Time {
	switch {
	case r.Terms.limit == nil:
		return r.Terms.idle.next
	case r.Terms.idle == nil:
		return r.Terms.limit.until
	}
	return min(r.Terms.limit.until, r.Terms.idle.next)
}

// limit returns the longest duration of the hold of r, or nil.
func (r *Request) limit() *limit {
	if r.Terms == nil {
		return nil
	}
	return r.Terms.limit
}

// idle returns what ends the hold of r without a beat, or nil.
func (r *Request) idle() *idle {
	if r.Terms == nil {
		return nil
	}
	return r.Terms.idle
}

// limits returns the limits of the hold of r, or nil if it has none.
func (r *Request) limits() *holdLimits {
	limit, idle := r.limit(), r.idling().idle()
	if limit == nil && idle == nil {
		return nil
	}
	return &holdLimits{limit: limit, idle: idle, beats: r.Terms.beats}
}

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

// Grant returns what the hold of r includes. If r resumes a hold, that is nothing until the group
// has reported it: the hold has the terms of an earlier request, and may have been changed since. A
// downgrade of the hold is not considered.
func (r *Request) Grant() lockfsm.Grant {
	t := r.Terms
	switch {
	case t == nil:
		return lockfsm.Grant{Key: r.Key}
	case t.granted != nil:
		return *t.granted
	case t.Resume != 0:
		return lockfsm.Grant{}
	}
	return t.asked(r.Key)
}

// asked returns what a request with the key and the terms asks for.
func (t *Terms) asked(key string) lockfsm.Grant {
	return lockfsm.Grant{Key: key, Keys: t.Keys, Permits: t.Permits, Of: t.Of, Modes: t.Modes, Delay: t.Delay,
		Value: t.Value}
}

// Shared reports whether the request is in shared mode.
func (r *Request) Shared() bool { return r.Terms != nil && r.Terms.Permits > 0 && r.Terms.Of == 0 }

// plain reports whether the keys are valid.
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

func plainKey(key string) bool {
	return key != "" && len(key) <= session.LongestKey && utf8.ValidString(key) && !containsControl(key)
}

func containsControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}

func (r *Request) command() lockfsm.Command {
	c := lockfsm.Command{Kind: lockfsm.Acquire, Key: r.Key, Try: r.Try}
	if r.Sticky {
		c.Sticky = true
	}
	if t := r.Terms; t != nil {
		c.Keys, c.Most, c.Value, c.Notice, c.Delay, c.Token = t.Keys, t.Most, t.Value, t.Notice, t.Delay, t.Resume
		asked := t.asked(r.Key)
		c.Ask(&asked)
		if t.Upgrades {
			c.Upgrades = true
		}
		if t.Under != nil && t.Under.stage.holds() {
			t.owner = t.Under.entry.number
		}
		if t.Inner != nil && t.Inner.stage.holds() {
			t.inner = t.Inner.entry.number
		}
		c.Owner, c.Inner = t.owner, t.inner
	}
	return c
}

func (r *Request) overdue() string {
	return fmt.Sprintf("it was held for %v, the longest that its request allows, and its holder had not unlocked it",
		r.Terms.Longest)
}

func (r *Request) idled() string {
	return fmt.Sprintf("it was idle: its holder had not called Beat for %v, the longest that its request allows",
		r.Terms.Idle)
}

// outlives reports whether a lost hold must remain in the group for its delay. A resumed hold may
// have a delay from its earlier request.
func (r *Request) outlives() bool {
	return r.Terms != nil && (r.Terms.Delay > 0 || r.Terms.Resume != 0)
}

func (r *Request) grace() time.Duration {
	if r.Terms == nil {
		return 0
	}
	return r.Terms.Grace
}

// doubts reports whether r, which may be nil, is a hold in doubt.
func (r *Request) doubts() bool { return r != nil && r.stage == stageDoubt }

// idling returns the request whose beats count for r: that of the hold that r upgrades, or r.
func (r *Request) idling() *Request {
	if r.upgrades() {
		return r.Terms.Under
	}
	return r
}

func (r *Request) upgrades() bool { return r.Terms != nil && r.Terms.Upgrades }

// refuseUpgrade returns why r, if it is an upgrade, cannot be sent.
func (r *Request) refuseUpgrade() error {
	switch {
	case !r.upgrades():
		return nil
	case !r.Terms.Under.stage.holds():
		return ErrNotHeld
	case r.Terms.Under.Terms.upgrade != nil:
		return ErrUpgraded
	}
	return nil
}

// unlink forgets r as the upgrade of its hold.
func (r *Request) unlink() {
	if r.upgrades() && r.Terms.Under.Terms.upgrade == r {
		r.Terms.Under.Terms.upgrade = nil
	}
}

type stage uint8

const (
	stageWaiting   stage = iota + 1 // the caller waits for an answer
	stageHeld                       // the caller holds the lock
	stageDoubt                      // the caller held the lock until the lease ended, and may hold it again
	stageReleasing                  // the caller waits for the confirmation of its release
	stageOver                       // the caller does not wait, and holds nothing
)

// detaches makes the hold be detached when the entry is freed. The reason lapsed may be empty.
func (e *entry) detaches(lapsed string) {
	if e.stays = true; lapsed != "" {
		e.rarely().lapsed = lapsed
	}
}

// named reports whether an Attach names the entry although it is being freed.
func (e *entry) named() bool { return e.stays || e.doubted }

func (s stage) holds() bool { return s == stageHeld || s == stageDoubt }

// entry is a request under one number. A request that is sent again gets a new entry. The core
// keeps the old entry until it has ended in the group. The number is zero until the entry is sent.
type entry struct {
	number lockfsm.Number
	req    *Request
	// freeing means that the request is no longer wanted. A Release, Cancel or Detach is due or was
	// sent, or the next Attach does not name the entry. An unsent entry never has freeing set.
	freeing bool
	// stays means that the hold must be detached instead of released when freeing is set. The next
	// Attach names the entry, and then its Detach is due again.
	stays bool
	// due means that the next frame contains the entry's Release, Cancel or Detach.
	due bool
	// doubted means that the caller has released the hold while it was in doubt. The next Attach
	// names the entry, and then its Release is due again. Without its answer the hold counts as
	// lost.
	doubted bool
	// open is the size of the entry's unanswered commands on this attachment, in bytes.
	open int32
	more *moreOfEntry // nil until a field of it is set
	// seen is the epoch in which the group last reported the entry's state.
	seen lockfsm.Epoch
	// asked is when the entry's last command was sent.
	asked      clock.Time
	prev, next *entry
}

// moreOfEntry has the fields of an entry that few entries need.
type moreOfEntry struct {
	// lapsed is the reason why a detached hold has ended without a release by its holder.
	lapsed string
	// lowered is the epoch in which the downgrade of the hold was sent, and zero after its answer.
	lowered lockfsm.Epoch
	// left is the epoch of the Attach that did not name the entry.
	left lockfsm.Epoch
}

// seldom returns the rare fields of e to be read.
func (e *entry) seldom() (m moreOfEntry) {
	if e.more != nil {
		m = *e.more
	}
	return m
}

// rarely returns the rare fields of e to be changed.
func (e *entry) rarely() *moreOfEntry {
	if e.more == nil {
		e.more = &moreOfEntry{}
	}
	return e.more
}

// entryList is a doubly linked list in ascending order: unsent entries by the order of their
// requests, sent entries by number.
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

func (l *entryList) insert(e *entry) {
	at := l.head
	for at != nil && at.req.order() < e.req.order() {
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

// merge inserts entries, which are in ascending order, in one pass.
func (l *entryList) merge(entries []*entry) {
	old := l.head
	*l = entryList{}
	for _, e := range entries {
		for old != nil && old.req.order() < e.req.order() {
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

// WholeDelay returns the delay in whole milliseconds, as the group counts it, and never a shorter
// time.
func WholeDelay(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
