package historytest

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// caller is one process that calls, life after life.
type caller struct {
	w       *world
	name    string
	stream  int // of the present life
	op      uint64
	session lockfsm.SessionID
	number  lockfsm.Number
}

// say records an event of the present life.
func (c *caller) say(e history.Event) {
	e.Node, e.Stream = c.name, c.stream
	c.w.record(e)
}

// open begins a session, and the calls.
func (c *caller) open() {
	if c.stream == 0 {
		c.stream, c.op = c.w.stream(), 0
		c.say(history.Event{Kind: history.Header, Version: history.Version})
	}
	c.w.commit(lockfsm.Command{Kind: lockfsm.Open, Nonce: c.w.nonce()}, func(r lockfsm.Result) {
		c.session, c.number = r.Session, 0
		c.w.after(c.w.upTo(ms), c.next)
	})
}

// send lets a command of this session get into the log a while later.
func (c *caller) send(k lockfsm.Kind, n lockfsm.Number, key string, try bool, done func(lockfsm.Result)) {
	command := lockfsm.Command{Kind: k, Session: c.session, Number: n, Key: key, Try: try, Term: term}
	c.w.after(c.w.upTo(500*us), func() { c.w.commit(command, done) })
}

// next makes a call.
func (c *caller) next() {
	w := c.w
	if w.calls >= w.options.Calls {
		return
	}
	w.calls++
	c.op++
	c.number++
	op, number := c.op, c.number
	key, try := fmt.Sprintf("key-%d", w.rng.IntN(w.options.Keys)), w.chance(w.options.Try)
	c.say(history.Event{Kind: history.Call, Op: op, Key: key, Try: try})
	over := false // the call has returned, or its process is dead
	granted := func(t lockfsm.Token) {
		if !over {
			over = true
			c.hold(op, number, key, t)
		}
	}
	w.waiting[request{c.session, number}] = granted
	c.send(lockfsm.Acquire, number, key, try, func(r lockfsm.Result) {
		w.after(w.upTo(300*us), func() {
			switch {
			case over:
			case r.Code == lockfsm.Granted:
				granted(r.Token)
			case r.Code == lockfsm.Held:
				over = true
				c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Held, Token: r.Holder.Token})
				w.after(w.upTo(ms), c.next)
			case r.Code != lockfsm.Waiting:
				over = true
				c.fail(op, r.Code.String())
			}
		})
	})
	switch {
	case w.chance(w.options.Crash):
		w.after(w.upTo(2*ms), func() {
			if !over {
				over = true
				c.crash()
			}
		})
	case w.chance(w.options.Cancel):
		w.after(w.upTo(2*ms), func() {
			if !over {
				over = true
				c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Failed, Err: "context"})
				c.send(lockfsm.Cancel, number, "", false, func(lockfsm.Result) { w.after(w.upTo(ms), c.next) })
			}
		})
	}
}

func (c *caller) fail(op uint64, why string) {
	c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Failed, Err: why})
	c.w.after(c.w.upTo(ms), c.next)
}

// hold returns with the lock, and later lets go of it, loses it or dies with it.
func (c *caller) hold(op uint64, number lockfsm.Number, key string, token lockfsm.Token) {
	w := c.w
	c.say(history.Event{Kind: history.Return, Op: op, Outcome: history.Granted, Token: token})
	if w.chance(w.options.Crash) {
		w.after(w.upTo(ms), c.crash)
		return
	}
	if w.chance(w.options.Lose) {
		w.after(w.upTo(10*ms), func() {
			until := w.now
			session := c.session
			w.after(w.upTo(ms), func() { // it notices late
				c.say(history.Event{Kind: history.Lost, Op: op, Until: until})
				c.open()
			})
			w.after(w.upTo(5*ms), func() { w.commit(lockfsm.Command{Kind: lockfsm.Expire, Session: session, Term: term}, nil) })
		})
		return
	}
	w.after(w.upTo(ms), func() {
		c.say(history.Event{Kind: history.Unlock, Op: op})
		c.send(lockfsm.Release, number, "", false, func(lockfsm.Result) {
			w.after(w.upTo(300*us), func() {
				c.say(history.Event{Kind: history.Unlocked, Op: op})
				w.after(w.upTo(ms), c.next)
			})
		})
	})
}

// crash ends this life; its session runs out, and another life begins.
func (c *caller) crash() {
	session := c.session
	c.w.after(10*ms+c.w.upTo(5*ms), func() {
		c.w.commit(lockfsm.Command{Kind: lockfsm.Expire, Session: session, Term: term}, nil)
	})
	c.stream = 0
	c.w.after(c.w.upTo(20*ms), c.open)
}
