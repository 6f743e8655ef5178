package historytest

import (
	"maps"
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

type caller struct {
	w       *world
	name    string
	stream  int // stream of the present incarnation
	op      uint64
	session lockfsm.SessionID
	number  lockfsm.Number
	holds   uint64           // the call whose lock is held; 0 if none is
	stays   map[string]*stay // by key
}

func (c *caller) say(e history.Event) {
	e.Node, e.Stream = c.name, c.stream
	c.w.record(e)
}

func (c *caller) open() {
	if c.stream == 0 {
		c.stream, c.op = c.w.stream(), 0
		c.say(history.Event{Kind: history.Header, Version: history.Version})
	}
	c.stays = map[string]*stay{}
	c.w.commit(lockfsm.Command{Kind: lockfsm.Open, Nonce: c.w.nonce()}, func(r lockfsm.Result) {
		c.session, c.number = r.Session, 0
		c.w.after(c.w.upTo(ms), c.next)
	})
}

func (c *caller) send(command lockfsm.Command, done func(lockfsm.Result)) {
	command.Session, command.Term = c.session, term
	c.w.after(c.w.upTo(500*us), func() { c.w.commit(command, done) })
}

func (c *caller) next() {
	w := c.w
	if w.calls >= w.options.Calls {
		c.giveBackAll()
		return
	}
	w.calls++
	c.op++
	c.number++
	op, number := c.op, c.number
	asks := w.draw()
	asks.Number = number
	g := asks.Asked()
	c.say(history.Event{Kind: history.Call, Op: op, Key: g.Key, Keys: g.Keys, Permits: g.Permits, Of: g.Of, Try: asks.Try})
	if c.pass(op, &asks) {
		return
	}
	over := false
	held := func(token lockfsm.Token) {
		over = true
		c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Held, Token: token})
		w.after(w.upTo(ms), c.next)
	}
	var st *stay
	granted := func(f lockfsm.Change) {
		switch {
		case over && st != nil:
			c.recalled(st, f)
		case over:
		case f.Held != nil:
			held(f.Held.Token)
		case f.Last != 0:
			over = true
			st = c.begin(op, asks.Key, f)
			c.recalled(st, f)
		default:
			over = true
			c.hold(op, number, f.Token, nil)
			if asks.Mode == lockfsm.ModeX {
				c.downgrade(op, number, g.Readers(false))
			}
		}
	}
	w.waiting[request{c.session, number}] = granted
	c.send(asks, func(r lockfsm.Result) {
		w.after(w.upTo(300*us), func() {
			switch {
			case over:
			case r.Code == lockfsm.Granted:
				granted(lockfsm.Change{Number: number, Token: r.Token, Last: r.Last})
			case r.Code == lockfsm.Held:
				held(r.Holder.Token)
			case r.Code != lockfsm.Waiting:
				over = true
				c.fail(op, r.Code.String())
			}
		})
	})
	c.giveUp(op, number, &over)
}

// giveUp lets some calls crash or be canceled while they wait. It reads over, which is true when
// the call has ended, and sets it.
func (c *caller) giveUp(op uint64, number lockfsm.Number, over *bool) {
	w := c.w
	switch {
	case w.chance(w.options.Crash):
		w.after(w.upTo(2*ms), func() {
			if !*over {
				*over = true
				c.crash()
			}
		})
	case w.chance(w.options.Cancel):
		w.after(w.upTo(2*ms), func() {
			if !*over {
				*over = true
				c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Failed, Err: "context"})
				c.send(lockfsm.Command{Kind: lockfsm.Cancel, Number: number},
					func(lockfsm.Result) { w.after(w.upTo(ms), c.next) })
			}
		})
	}
}

func (c *caller) fail(op uint64, why string) {
	c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Failed, Err: why})
	c.w.after(c.w.upTo(ms), c.next)
}

// hold returns from a call with a lock, and unlocks later. The stay st is nil unless the lock is a
// pass of it.
func (c *caller) hold(op uint64, number lockfsm.Number, token lockfsm.Token, st *stay) {
	w := c.w
	c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Granted, Token: token})
	c.holds = op
	if w.chance(w.options.Crash) {
		w.after(w.upTo(ms), c.crash)
		return
	}
	if w.chance(w.options.Lose) {
		w.after(w.upTo(10*ms), func() {
			until := w.now
			session := c.session
			w.after(w.upTo(ms), func() {
				c.say(history.Event{Kind: history.Lost, Op: op, Until: until})
				c.open()
			})
			w.after(w.upTo(5*ms), func() {
				w.commit(lockfsm.Command{Kind: lockfsm.Expire, Session: session,
					Term: term}, nil)
			})
		})
		return
	}
	w.after(w.upTo(ms), func() {
		c.say(history.Event{Kind: history.Unlock, Op: op})
		c.holds = 0
		if st != nil {
			c.unlockPass(op, st)
			return
		}
		c.send(lockfsm.Command{Kind: lockfsm.Release, Number: number}, func(lockfsm.Result) {
			w.after(w.upTo(300*us), func() {
				c.say(history.Event{Kind: history.Unlocked, Op: op})
				w.after(w.upTo(ms), c.next)
			})
		})
	})
}

// downgrade makes some holders readers while they hold their locks.
func (c *caller) downgrade(op uint64, number lockfsm.Number, modes []lockfsm.Mode) {
	w, stream := c.w, c.stream
	if w.options.Downgrade == 0 || !w.chance(w.options.Downgrade) {
		return
	}
	w.after(w.upTo(ms/2), func() {
		if c.stream == stream && c.holds == op {
			c.say(history.Event{Kind: history.Downgrade, Op: op})
			c.send(lockfsm.Command{Kind: lockfsm.Downgrade, Number: number, Modes: modes}, nil)
		}
	})
}

func (c *caller) crash() {
	session := c.session
	c.w.after(10*ms+c.w.upTo(5*ms), func() {
		c.w.commit(lockfsm.Command{Kind: lockfsm.Expire, Session: session, Term: term}, nil)
	})
	c.stream, c.stays = 0, nil
	c.w.after(c.w.upTo(20*ms), c.open)
}

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
