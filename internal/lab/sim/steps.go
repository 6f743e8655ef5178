package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Operators act on the locks of others, and continue for a while after healing.

// step is one action of an operator. The average time between two steps of one kind is
// Config.Steps. A step reports its request to the watch.
type step func(w *fleet)

func steps() []step {
	return []step{(*fleet).forceSome, (*fleet).resumeSome, (*fleet).lookSome, (*fleet).reserveSome,
		(*fleet).writeSome}
}

func (w *fleet) walk() {
	if w.cfg.Steps > 0 {
		for _, s := range steps() {
			w.pace(s)
		}
	}
}

func (w *fleet) pace(s step) {
	w.after(w.between(0, 2*w.cfg.Steps), func() {
		if w.quiet {
			return
		}
		s(w)
		w.pace(s)
	})
}

// order proposes a command on the leader, as for an admin client. The command may be lost.
func (w *fleet) order(c lockfsm.Command) {
	l := w.leader()
	if l == nil {
		return
	}
	term, blob := l.Role().Term, c.Append(nil)
	l.log.post(func(clock.Time) { l.core.Propose(term, blob) })
}

// hangs is the longest time for which an order hangs in a leader.
const hangs = time.Minute

// forceSome ends a hold in the leader's state by force. It does so after a short time, or so late
// that the hold has probably ended and another caller holds the key. Some orders hang in the leader
// that was asked, and are proposed in its term, if at all.
func (w *fleet) forceSome() {
	l := w.leader()
	if l == nil {
		return
	}
	held := slices.DeleteFunc(l.glue.Machine().Entries(), func(e lockfsm.EntryInfo) bool { return e.Token == 0 })
	if len(held) == 0 {
		return
	}
	seen, thinks := held[w.rng.IntN(len(held))], 5*time.Millisecond
	switch n := w.rng.IntN(8); {
	case n == 0:
		thinks = hangs
	case n < 4:
		thinks = w.cfg.TTL
	}
	term := l.Role().Term
	w.after(w.between(0, thinks), func() {
		token := seen.Token
		if last := w.watch.stays.reserved[token]; last != 0 && w.chance(0.5) {
			token += 1 + lockfsm.Token(w.rng.IntN(3)) // of a pass: the state must not end the stay
		} else {
			w.watch.calls.forced.Asked(seen.Key, token)
		}
		w.note("%q is to be ended by force, with token %d", seen.Key, token)
		order := lockfsm.Command{Kind: lockfsm.Evict, Key: seen.Key, Token: token, Record: []byte("people"),
			Value: []byte("it takes too long")}
		if thinks != hangs {
			w.order(order)
			return
		}
		w.stats.ForcedLate++
		l.log.post(func(clock.Time) { l.core.Propose(term, order.Append(nil)) })
	})
}

// resumeSome makes a process request the resumption of a hold in the leader's state. The request
// names the token of the hold. It is sent after a short time, or so late that the hold has
// probably ended.
func (w *fleet) resumeSome() {
	l := w.leader()
	if l == nil {
		return
	}
	held := slices.DeleteFunc(l.glue.Machine().Entries(), func(e lockfsm.EntryInfo) bool { return e.Token == 0 })
	if len(held) == 0 {
		return
	}
	seen, thinks := held[w.rng.IntN(len(held))], 5*time.Millisecond
	if w.chance(0.3) {
		thinks = w.cfg.TTL
	}
	m := w.any()
	w.after(w.between(0, thinks), func() {
		if p := m.proc; p != nil && !p.dead && !p.leaving && !w.quiet {
			w.watch.calls.forced.Asked(seen.Key, seen.Token)
			p.resume(seen.Key, seen.Token)
		}
	})
}

func (p *proc) resume(key string, token lockfsm.Token) {
	w := p.w
	c := p.some().newCall(client.Request{Key: key, Terms: &client.Terms{Resume: token}})
	c.once, c.detaches = true, w.chance(0.3)
	if w.chance(0.3) {
		c.req.Terms.Delay = w.between(time.Millisecond, longestDelay*w.cfg.TTL).Round(time.Millisecond)
		if known := w.watch.calls.shorter[token]; known == 0 || c.req.Terms.Delay < known {
			w.watch.calls.shorter[token] = c.req.Terms.Delay
		}
	}
	c.ask()
	if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, 5*time.Millisecond), c.leave)
	}
}
