package historytest

import (
	"maps"
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// stay is a lock that the session of a caller keeps after an unlock. A pass is a grant of one of
// its reserved tokens to a call of this caller.
type stay struct {
	key         string
	number      lockfsm.Number
	token, last lockfsm.Token // the token of the latest pass, and the last reserved token
	inside      bool          // a call holds the lock
	wanted      bool          // another request waits for the lock
}

// begin begins a stay with its first pass.
func (c *caller) begin(op uint64, key string, f lockfsm.Change) *stay {
	st := &stay{key: key, number: f.Number, token: f.Token, last: f.Last}
	c.stays[key] = st
	c.enter(op, st)
	return st
}

func (c *caller) enter(op uint64, st *stay) {
	st.token++
	st.inside = true
	c.hold(op, st.number, st.token, st)
}

// pass grants a call the lock out of a stay, and reports whether there was such a stay. If there
// was none, pass gives back the stays of all keys of the request.
func (c *caller) pass(op uint64, asks *lockfsm.Command) bool {
	st := c.stays[asks.Key]
	if st != nil && len(asks.Keys) == 0 && (asks.Sticky || asks.Try && asks.Mode == lockfsm.ModeX) {
		c.enter(op, st)
		return true
	}
	for _, key := range append([]string{asks.Key}, asks.Keys...) {
		if st := c.stays[key]; st != nil {
			c.giveBack(st)
		}
	}
	return false
}

func (c *caller) unlockPass(op uint64, st *stay) {
	st.inside = false
	c.say(history.Event{Kind: history.Unlocked, Op: op})
	if st.wanted || st.token == st.last {
		c.giveBack(st)
	}
	c.w.after(c.w.upTo(ms), c.next)
}

// recalled handles a notice that other requests wait for a stay.
func (c *caller) recalled(st *stay, f lockfsm.Change) {
	if c.stays[st.key] != st || !f.Wanted {
		return
	}
	st.wanted = true
	switch {
	case !st.inside:
		c.giveBack(st)
	case f.Asked != 0:
		c.send(lockfsm.Command{Kind: lockfsm.InUse, Number: st.number, Revision: f.Asked,
			Token: st.token}, nil)
	}
}

func (c *caller) giveBack(st *stay) {
	delete(c.stays, st.key)
	c.send(lockfsm.Command{Kind: lockfsm.Release, Number: st.number}, nil)
}

func (c *caller) giveBackAll() {
	for _, key := range slices.Sorted(maps.Keys(c.stays)) {
		c.giveBack(c.stays[key])
	}
}
