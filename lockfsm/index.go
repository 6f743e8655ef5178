package lockfsm

import "github.com/mortise-lock/mortise/internal/numbered"

// A walk over a few inside entries (see lock) is cheaper than an index. From indexFrom entries on,
// a lock has an index, so that no command visits all holders of a crowded lock. The lock loses the
// index when at most indexUntil are left. It is not replicated and never affects a result.
const (
	indexFrom  = 33
	indexUntil = 16

	// namedInside bounds the inside entries that a search for the holder to name visits.
	namedInside = 256
)

// insideIndex finds the inside entries of one lock. It has no map, because a map keeps its room
// when the entries leave, and a walk over it visits that room.
type insideIndex struct {
	granted numbered.Table[entry]  // by token
	stays   numbered.Table[entry]  // by token / StayTokens, which is different for each stay
	untold  numbered.Table[entry]  // by place: the granted entries that await a notice
	totals  numbered.Table[uint32] // by total: the number of entries that name it
	one     uint32                 // 1: most totals share it
}

// admit adds an inside entry.
func (x *insideIndex) admit(e *entry) {
	_, of := e.terms()
	switch n := x.totals.Get(uint64(of)); n {
	case nil:
		x.totals.Put(uint64(of), &x.one)
	case &x.one:
		x.totals.Put(uint64(of), new(uint32(2)))
	default:
		*n++
	}
	x.add(e)
}

// discharge is the opposite of admit.
func (x *insideIndex) discharge(e *entry) {
	_, of := e.terms()
	if n := x.totals.Get(uint64(of)); *n == 1 {
		x.totals.Delete(uint64(of))
	} else {
		*n--
	}
	x.drop(e)
}

// add adds an entry that is granted. It does nothing for any other entry.
func (x *insideIndex) add(e *entry) {
	if x == nil || e.token == 0 {
		return
	}
	x.granted.Put(uint64(e.token), e)
	if e.stays() {
		x.stays.Put(uint64(e.token/StayTokens), e)
	}
	if e.awaitsNotice() {
		x.untold.Put(uint64(e.rev), e)
	}
}

// drop must be called before the token or the stay of e changes.
func (x *insideIndex) drop(e *entry) {
	if x == nil || e.token == 0 {
		return
	}
	x.granted.Delete(uint64(e.token))
	x.untold.Delete(uint64(e.rev))
	if e.stays() {
		x.stays.Delete(uint64(e.token / StayTokens))
	}
}

func (x *insideIndex) told(e *entry) {
	if x != nil {
		x.untold.Delete(uint64(e.rev))
	}
}
