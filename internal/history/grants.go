package history

import (
	"math"

	"github.com/mortise-lock/mortise/lockfsm"
)

// A stay is a grant with reserved tokens, see lockfsm. A pass is a grant of one reserved token to
// one caller. The session of the stay grants its passes itself, so the log does not show them.
// Judge knows a pass only from the calls that returned its token.

type grant struct {
	set   int32
	event int32
	// The field at is the earliest time at which any voter recorded the grant. The field ended is
	// the same for the end of the grant, or for the first event of the next group.
	at, ended int64
	end       int32 // -1 if none
	shared    int32 // the event that made the exclusive grant shared; -1 if none
	group     int32

	owner *call // the call that returned its token, or nil
	stay  *stay // nil if the grant is no stay
	// A failed call with Try may return the token of this grant, because the lock was held. The
	// event seenBy is the earliest return of such a call, and seenAt is its time. The event heldBy
	// is the latest start of such a call, and heldBehind is its time.
	seenBy, heldBy     int32
	seenAt, heldBehind int64
}

func newGrant(set, event, group int32) grant {
	return grant{
		set: set, event: event, ended: math.MaxInt64, end: -1, shared: -1, group: group, seenBy: -1, heldBy: -1,
		seenAt: math.MaxInt64, heldBehind: math.MinInt64,
	}
}

type stay struct {
	passes []pass // in the order of their tokens

	// The earliest possible time at which all passes are over, and its proof, as in sweeper.
	point   int64
	because int32
	belief  bool
}

// pass embeds a grant whose field event is the grant of the stay.
type pass struct {
	grant
	token lockfsm.Token
}
