package history

import (
	"cmp"
	"math"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

type stream struct {
	calls   []call // by op; calls[0] is unused
	last    int64
	account *account // nil for a caller's stream
	run     int
}

// call is one call for keys, and the events of its lock. A missing event is -1.
type call struct {
	set                                 int32
	called, ret, unlock, unlocked, lost int32
	// the times of called, ret, unlock, lost and unlocked, in this order
	begun, returned, released, until, was int64

	downgrade int32 // the event from which on the caller acts as a reader
	lowered   int64 // its time
}

// entered is an event Enter, and what its stream had recorded of the call before it.
type entered struct {
	event int32
	op    call
}

func newCall() call {
	return call{
		set: -1, called: -1, ret: -1, unlock: -1, unlocked: -1, lost: -1,
		begun: math.MaxInt64, returned: math.MaxInt64, released: math.MaxInt64, until: math.MaxInt64,
		downgrade: -1, lowered: math.MaxInt64,
	}
}

// believed returns the time until which the caller believed that it held the lock, and the event
// that ended the belief, or -1.
func (c *call) believed() (int64, int32) {
	if c.released <= c.until {
		return c.released, c.unlock
	}
	return c.until, c.lost
}

// believedAlone returns what believed returns, for the belief that the caller holds the lock
// exclusively.
func (c *call) believedAlone() (int64, int32) {
	if at, because := c.believed(); at <= c.lowered {
		return at, because
	}
	return c.lowered, c.downgrade
}

// account is the log of one group, as its voters have recorded it.
type account struct {
	group  Group
	runs   []run
	steps  []step
	first  lockfsm.Revision
	held   bool // true if any voter begins its account with a lock that is already held
	last   int64
	covers lockfsm.Revision // the last revision that the account covers
}

func (a *account) silent() bool {
	return !a.held && !slices.ContainsFunc(a.runs, func(r run) bool { return len(r.steps) > 0 })
}

type run struct {
	from, to lockfsm.Revision
	steps    []step
}

type step struct {
	index uint64
	seq   uint32
	event int32
	at    int64
}

func (s step) compare(o step) int {
	return cmp.Or(cmp.Compare(s.index, o.index), cmp.Compare(s.seq, o.seq))
}
