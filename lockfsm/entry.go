package lockfsm

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// entry is the place of one live request in one queue. A request for several keys has one entry in
// the queue of each key, with the same revision and token. Only its lead entry, the entry with the
// lowest key, is in the session's table of requests.
type entry struct {
	lock         *lock // nil after the entry has been removed
	ahead, after *entry
	session      *session
	number       Number
	rev          Revision
	token        Token  // 0 while it waits
	mark         uint64 // see watch and sinceUnixMS
	of           uint16 // see shares
	permits      uint8
	mode         Mode   // of its key
	holding      bool   // see lock.boundary
	notice       bool   // it asks for a notice
	told         bool   // it has received the notice
	try          bool   // it waits for the answer of a stay; see stay.go
	extra        *extra // nil for most entries
}

// watch returns the Change.Watch that the session of a waiting request last received. Only the lead
// entry has it.
func (e *entry) watch() Revision {
	if e.token != 0 {
		return 0
	}
	return Revision(e.mark)
}

// sinceUnixMS returns the time of the grant, or 0.
func (e *entry) sinceUnixMS() int64 {
	if e.token == 0 {
		return 0
	}
	return int64(e.mark)
}

// noTotal is the total of an entry that names none.
const noTotal = math.MaxUint32

// extra holds the fields that few requests have. All entries of a request share it.
type extra struct {
	entries  []*entry // ascending by key; nil for a single key
	owner    Number
	inner    Number // of an upgrade, see Command.Inner
	value    []byte // never changed, so results may share it
	seq      uint64 // the Seq of the last SetValue; zero means none
	delayMS  uint32
	upgrades bool           // see Machine.upgradable
	resumed  bool           // its session has resumed it, and learns from each Change what it includes
	inside   uint16         // see Machine.stuck; not replicated
	pending  *pendingSearch // nil if no search for a deadlock is to be continued
	// the requests of the session that are listed for the same one, with lower and higher numbers
	elder, younger *entry
	stay           *stay  // nil unless the request is sticky
	permits, of    uint32 // see entry.shares
}

type pendingSearch struct {
	at       *list.Element
	searches int
}

// owners are the requests that do not end before a request which was made under them. Nil means
// that there is none.
type owners [2]*entry

// fewShares reports whether an entry has room for the permits. If not, they are in extra, which all
// entries of the request share.
func fewShares(permits, of uint32) bool { return permits <= math.MaxUint8 && of <= math.MaxUint16 }

// setMode sets the mode of e, and its permits if that is ModePermits. It must be called after extra
// is set.
func (e *entry) setMode(mode Mode, permits, of uint32) {
	e.mode, e.permits, e.of = mode, 0, 0
	switch {
	case mode != ModePermits:
	case fewShares(permits, of):
		e.permits, e.of = uint8(permits), uint16(of)
	default:
		if e.extra == nil {
			e.extra = &extra{}
		}
		e.extra.permits, e.extra.of = permits, of
	}
}

// shares returns the permits of e and their total, as in Command.
func (e *entry) shares() (permits, of uint32) {
	switch {
	case e.mode != ModePermits:
		return e.mode.Terms()
	case e.of != 0:
		return uint32(e.permits), uint32(e.of)
	}
	return e.extra.permits, e.extra.of
}

func (e *entry) terms() (permits, of uint32) {
	if e.mode == ModeX {
		return 1, 1
	}
	return termsOf(e.shares())
}

// termsOf returns how many permits of which total a request takes.
func termsOf(permits, of uint32) (uint32, uint32) {
	switch {
	case of != 0:
		return permits, of
	case permits != 0:
		return 1, noTotal
	}
	return 1, 1
}

func (e *entry) resumed() bool { return e.extra != nil && e.extra.resumed }

// all returns the entries of e's request. If there is only one, the result is a slice of room, so
// that the call does not allocate.
func (e *entry) all(room *[1]*entry) []*entry {
	if e.extra != nil && e.extra.entries != nil {
		return e.extra.entries
	}
	room[0] = e
	return room[:]
}

func (e *entry) lead() *entry { return e.all(new([1]*entry))[0] }

func (e *entry) places() uint32 { return uint32(len(e.all(new([1]*entry)))) }

func (e *entry) several() bool { return e.extra != nil && e.extra.entries != nil }

func (e *entry) owner() *entry {
	if e.extra == nil {
		return nil
	}
	return e.session.request(e.extra.owner)
}

func (e *entry) owners() owners {
	if e.extra == nil {
		return owners{}
	}
	return owners{e.session.request(e.extra.owner), e.session.request(e.extra.inner)}
}

// listedFor returns the number of the request in whose list the request is.
func (x *extra) listedFor() Number {
	if x.inner != 0 {
		return x.inner
	}
	return x.owner
}

// firstBelow returns the first request of which e is an owner, or nil.
func (e *entry) firstBelow() *entry {
	if first := e.session.under(e.number).first; first != nil {
		return first
	}
	return e.unlisted()
}

// nextBelow returns the request after below, see firstBelow.
func (e *entry) nextBelow(below *entry) *entry {
	switch {
	case below.extra.listedFor() != e.number:
		return nil
	case below.extra.younger != nil:
		return below.extra.younger
	}
	return e.unlisted()
}

// unlisted returns the upgrade of e that is listed for another request, or nil.
func (e *entry) unlisted() *entry {
	if u := e.upgrade(); u != nil && u.extra.inner != 0 {
		return u
	}
	return nil
}

// owns reports whether a request names e as its owner.
func (e *entry) owns() bool { return e.firstBelow() != nil }

// alone reports whether e has one key and owns nothing.
func (e *entry) alone() bool { return (e.extra == nil || e.extra.entries == nil) && !e.owns() }

// rank orders entries like every queue. It is not the revision, because an upgrade is before older
// entries.
func (e *entry) rank() uint64 {
	if e.upgrades() && e.ahead != nil {
		return 2*uint64(e.ahead.rev) + 1
	}
	return 2 * uint64(e.rev)
}

func byPlace(a, b *entry) int { return cmp.Compare(a.rev, b.rev) }

// isAwaited reports whether another entry waits behind e in its queue.
func (e *entry) isAwaited() bool {
	if e.holding {
		return e.lock.boundary != nil
	}
	return e.after != nil
}

// awaitsNotice reports whether e is granted, asked for a notice and has not received it.
func (e *entry) awaitsNotice() bool { return e.notice && !e.told && e.token != 0 }

// An upgrade is an exclusive request that names an upgradable hold of its session as its owner. It
// has its own number, place and token. Its entry is directly behind the inside entries (see lock),
// before all that wait, and fits beside nothing but its hold. So no new request gets in while the
// upgrade waits for the readers, nor while it is granted. When it ends, the hold is upgradable
// again. An upgrade never outlives its hold.

func (e *entry) isUpgradable() bool { return e.mode == ModeU }

func (e *entry) upgrades() bool { return e.extra != nil && e.extra.upgrades }

// upgraded returns the hold that e upgrades. It returns nil if e is no upgrade, or if the hold has
// been removed by the same command that removes e.
func (e *entry) upgraded() *entry {
	if !e.upgrades() {
		return nil
	}
	if hold := e.owner(); hold != nil && hold.lock == e.lock && hold.isUpgradable() {
		return hold
	}
	return nil
}

// upgrade returns the upgrade of the hold e, or nil. An upgrade is the last inside entry or the
// first outside.
func (e *entry) upgrade() *entry {
	if !e.isUpgradable() {
		return nil
	}
	l := e.lock
	last := l.lastInside()
	for _, each := range [...]*entry{last, l.boundary} {
		if each != nil && each.upgrades() && each.upgraded() == e {
			return each
		}
	}
	return nil
}

func (e *entry) value() []byte {
	if e.extra == nil {
		return nil
	}
	return e.extra.value
}

func (e *entry) stay() *stay {
	if e.extra == nil {
		return nil
	}
	return e.extra.stay
}

func (e *entry) sticky() bool { return e.stay() != nil }

// stays reports whether e is a granted stay with tokens for callers.
func (e *entry) stays() bool { return e.sticky() && e.extra.stay.last != 0 }

// mayStay reports whether e is a stay, or is not granted yet and asks for one.
func (e *entry) mayStay() bool { return e.stays() || e.sticky() && e.token == 0 }

// granted reports whether the session of e may have granted the token to a caller. Without reserved
// tokens, the only caller has the token of the request.
func (e *entry) granted(token Token) bool {
	if e.stays() {
		return e.token < token && token <= e.extra.stay.last
	}
	return e.sticky() && e.token == token
}

func (e *entry) delay() time.Duration {
	if !e.delayed() {
		return 0
	}
	return time.Duration(e.extra.delayMS) * time.Millisecond
}

func (e *entry) delayed() bool { return e.token != 0 && e.extra != nil && e.extra.delayMS != 0 }

// modes returns the modes of e's request in the order of its keys, or nil if Permits and Of state
// them: if all its keys are exclusive or shared, or if it is for permits.
func (e *entry) modes() (modes []Mode) {
	all := e.all(new([1]*entry))
	other := func(o *entry) bool { return o.mode != e.mode }
	if e.mode == ModePermits || (e.mode == ModeX || e.mode == ModeIS) && !slices.ContainsFunc(all, other) {
		return nil
	}
	for _, each := range all {
		modes = append(modes, each.mode)
	}
	return modes
}

// permitsLike reports whether two entries of one request are for the same permits of a semaphore,
// or both for none.
func (e *entry) permitsLike(o *entry) bool {
	return e.mode != ModePermits && o.mode != ModePermits || e.mode == o.mode && e.sharesLike(o)
}

func (e *entry) sharesLike(o *entry) bool {
	permits, of := e.shares()
	others, total := o.shares()
	return permits == others && of == total
}

// grant returns what the hold e includes.
func (e *entry) grant() *Grant {
	all := e.all(new([1]*entry))
	g := &Grant{Key: all[0].lock.key, Modes: e.modes(), Delay: e.delay(), Value: e.value()}
	if g.Modes == nil {
		g.Permits, g.Of = e.shares()
	}
	for _, each := range all[1:] {
		g.Keys = append(g.Keys, each.lock.key)
	}
	return g
}

// eachPart calls do for each part of e's request.
func (e *entry) eachPart(do func(Part)) {
	all := e.all(new([1]*entry))
	if len(all) > 1 && e.modes() != nil {
		for _, p := range e.grant().Parts() {
			do(p)
		}
		return
	}
	for _, each := range all { // equal modes of all keys
		if each.mode != ModeIX {
			do(each.part())
		}
	}
}

// part returns the only part of the request of e, or one of several with equal modes.
func (e *entry) part() Part {
	p := Part{Key: e.lock.key, Mode: e.mode, Tree: e.mode == ModeS}
	if e.mode == ModePermits {
		p.Permits, p.Of = e.shares()
	}
	return p
}

func (e *entry) change() Change {
	c := Change{Session: e.session.id, Number: e.number, Token: e.token, Watch: e.watch(), Wanted: e.told}
	if s := e.stay(); s != nil {
		c.Last, c.Asked = s.last, s.asked
	}
	if e.resumed() {
		c.Grant = e.grant()
	}
	return c
}

func (e *entry) describe() Holder {
	return Holder{
		Session: e.session.id, Record: e.session.record, Token: e.token, SinceUnixMS: e.sinceUnixMS(),
		Waiters: int(e.lock.waiting), Value: e.value(), Kept: e.stays(),
	}
}

// endsUnder reports whether the rights, or nil for all, allow to end a hold of another.
func (e *entry) endsUnder(rights *capability.Capability) bool {
	if rights == nil {
		return true
	}
	for _, each := range e.all(new([1]*entry)) {
		if !rights.Ends(each.lock.key) {
			return false
		}
	}
	return true
}

func (e *entry) hash() uint64 {
	return mixed(uint64(e.session.id)^uint64(e.mode)<<56^uint64(e.number)*hash2, uint64(e.rev)^uint64(e.token)*hash2)
}

// Each lock counts the entries that can connect its queue with another one, so that most searches
// for a deadlock end without a visit. With nested limits, thousands of requests may wait, and no
// circle is possible: the innermost limit has no request below it, and no request of the outermost
// one waits under an owner.
//
//   - An entry leads on if its request has several keys, owns a request, or is an upgrade. If no
//     entry of a queue does, they all end one after the other, and no other queue delays them.
//   - A waiting entry links back if its request has several keys, or an owner. If no entry behind a
//     hold does, these entries delay only their own queue.

// leadsOn reports whether e's request waits in another queue, or for the end of another request.
func (e *entry) leadsOn() bool {
	return e.several() || e.upgrades() || e.session.under(e.number).first != nil
}

// linksBack reports whether the wait of e's request can delay another queue.
func (e *entry) linksBack() bool {
	return e.token == 0 && e.extra != nil && (e.extra.entries != nil || e.extra.owner != 0)
}

// connect counts the entries of e's request, which joins a session, or uncounts them with by -1.
func (e *entry) connect(by int32) {
	leads, links := e.leadsOn(), e.linksBack()
	if !leads && !links {
		return
	}
	for _, each := range e.all(new([1]*entry)) {
		each.lock.own()
		if leads {
			each.lock.leads += by
		}
		if links {
			each.lock.links += by
		}
	}
}

// ownsFirst counts the request for which e is listed, if e is the only one of its list. See
// connect.
func (e *entry) ownsFirst(by int32) {
	if o := e.session.request(e.extra.listedFor()); o != nil && !o.several() && !o.upgrades() {
		o.lock.own()
		o.lock.leads += by
	}
}

// isFree reports whether the counts show that the waiting request e is in no deadlock. A false
// result shows nothing.
func (e *entry) isFree() bool {
	switch {
	case e.upgrades():
		return false
	case !e.leadsOn() && e.lock.delaysNone(owners{}):
		return true
	}
	for above, n := e.owner(), 0; above != nil; above = above.owner() {
		if n++; n > maxLinks || above.several() || above.upgrades() || above.lock.links > 0 {
			return false // e counts, too, if it waits for a key of its owner
		}
	}
	return true
}
