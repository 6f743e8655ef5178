package historytest

import (
	"fmt"
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

// draw returns a random request. If Share, Permits or Several is zero, that option draws no
// random number, so that it does not change the history of a seed.
func (w *world) draw() lockfsm.Command {
	a := lockfsm.Command{Kind: lockfsm.Acquire, Key: w.key(w.rng.IntN(w.options.Keys)), Try: w.chance(w.options.Try)}
	switch o := w.options; {
	case o.Share > 0 && w.chance(o.Share):
		a.Mode = lockfsm.ModeIS
	case o.Permits > 0 && w.chance(o.Permits):
		a.Mode, a.Permits, a.Of = lockfsm.ModePermits, 1+uint32(w.rng.IntN(2)), 3
	}
	if w.options.Several > 0 && w.chance(w.options.Several) {
		keys := w.rng.Perm(w.options.Keys)[:2+w.rng.IntN(w.options.Keys-1)]
		slices.Sort(keys)
		a.Key = w.key(keys[0])
		for _, k := range keys[1:] {
			a.Keys = append(a.Keys, w.key(k))
		}
	}
	if w.options.Sticky > 0 && !a.Try && a.Mode == lockfsm.ModeX && len(a.Keys) == 0 && w.chance(w.options.Sticky) {
		a.Sticky = true
	}
	return a
}

func (w *world) key(i int) string { return fmt.Sprintf("key-%d", i) }

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
