package stay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestStayRules has one short test for each rule of stays.
func TestStayRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*rig){
		"a second lock needs no message": func(r *rig) {
			r.unlock(r.granted("x"))
			r.did()
			l := r.take("x", Passed)
			if l.token != 1003 {
				r.fatal("token %d", l.token)
			}
			r.unlock(l)
			r.did()
		},
		"a caller refers to no stay after its call": func(r *rig) {
			held := r.granted("x")
			gone, next := r.take("x", Waits), r.take("x", Waits)
			r.cancel(gone)
			r.unlock(held)
			if next.stay == nil || held.stay != nil || gone.stay != nil {
				r.fatal("the stays of the callers: %v inside, %v unlocked, %v cancelled", next.stay, held.stay, gone.stay)
			}
			r.lose("x")
			if next.stay != nil {
				r.fatal("a caller that has lost its lock refers to %v", next.stay)
			}
		},
		"callers are served in order": func(r *rig) {
			l := r.granted("x")
			var waits []*Caller
			for range 3 {
				waits = append(waits, r.take("x", Waits))
			}
			r.did("wanted x", "wanted x", "wanted x")
			for _, next := range waits {
				if r.unlock(l); r.in("x") != next {
					r.fatal("the wrong caller has the lock")
				}
				l = next
			}
			r.unlock(l)
			r.did("granted x", "wanted x", "granted x", "wanted x", "granted x")
		},
		"a loss is told before the grant of the same turn": func(r *rig) {
			r.take("x", Waits)
			q := r.request("x")
			r.lose("x")
			r.did("acquire x", "acquire x")
			r.s.Granted(r.window(), q, 1, 1025)
			r.step()
			r.did()
			r.grant("x") // the second request
			r.did("granted x")
		},
		"a free stay yields": func(r *rig) {
			r.unlock(r.granted("x"))
			r.yieldWhenFree("x")
			r.did("release x")
			if n := r.s.Totals.Recalls; n != 1 {
				r.fatal("%d recalls", n)
			}
		},
		"a stay in use yields when it is free": func(r *rig) {
			l, waits := r.granted("x"), r.take("x", Waits)
			r.yieldWhenFree("x")
			r.did("wanted x")
			r.unlock(l)
			last := r.take("x", Waits)
			r.unlock(waits)
			r.did("granted x", "wanted x", "granted x")
			r.unlock(last)
			r.did("release x")
		},
		"a shared stay yields after its last reader": func(r *rig) {
			one := r.granted("r")
			two := r.take("r", Passed)
			r.yieldWhenFree("r")
			r.unlock(one)
			r.unlock(r.take("r", Passed))
			r.did()
			r.unlock(two)
			r.did("release r")
		},
		"the next stay does not yield": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.yieldWhenFree("x")
			r.tick(rigTTL)
			r.renewed()
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
			r.grant("x")
			r.unlock(r.in("x"))
			r.did("granted x")
		},
		"a waiting request does not yield": func(r *rig) {
			r.take("x", Waits)
			r.yieldWhenFree("x")
			r.grant("x")
			r.unlock(r.in("x"))
			r.did("acquire x", "granted x")
		},
		"an exhausted range": func(r *rig) {
			r.reserves = 2
			l, waits := r.granted("x"), r.take("x", Waits)
			r.unlock(l)
			last := r.take("x", Waits)
			r.did("wanted x", "granted x", "wanted x")
			r.unlock(waits)
			r.did("release x", "acquire x")
			r.grant("x")
			r.unlock(last)
			r.unlock(r.take("x", Passed))
			r.did("granted x", "release x")
		},
		"an aged range": func(r *rig) {
			r.s.Idle = rigTTL * 2
			r.unlock(r.granted("x"))
			r.tick(rigTTL - 1)
			r.renewed()
			r.unlock(r.take("x", Passed))
			r.did()
			r.tick(1)
			r.take("x", Waits)
			r.did("release x", "acquire x")
		},
		"an aged range with a caller inside": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.tick(rigTTL)
			r.renewed()
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"no tokens": func(r *rig) {
			r.reserves = 0
			l := r.granted("x")
			if l.token != 1001 {
				r.fatal("token %d", l.token)
			}
			r.take("x", Waits)
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"no tokens and no caller": func(r *rig) {
			r.reserves = 0
			l := r.take("x", Waits)
			r.now = r.safe
			r.grant("x")
			r.cancel(l)
			r.did("acquire x", "release x")
		},
		"a recall while it is free": func(r *rig) {
			r.unlock(r.granted("x"))
			r.recall("x", 0)
			r.did("release x")
		},
		"a recall in use": func(r *rig) {
			l := r.granted("x")
			first := r.take("x", Waits)
			r.recall("x", 0)
			r.recall("x", 0)
			r.take("x", Waits)
			r.did("wanted x", "wanted x", "wanted x", "wanted x")
			r.unlock(l)
			r.did("granted x", "wanted x")
			r.unlock(first)
			r.did("release x", "acquire x")
		},
		"16 passes after a recall": func(r *rig) {
			l := r.granted("x")
			for range 20 {
				r.take("x", Waits)
			}
			r.recall("x", 0)
			passes := 0
			for ; l != nil; l = r.in("x") {
				r.unlock(l)
				passes++
			}
			if passes != 1+16 || r.sent[len(r.sent)-1] != "acquire x" || r.s.waiting != 4 {
				r.fatal("%d passes, %d wait", passes, r.s.waiting)
			}
		},
		"10 ms after a recall": func(r *rig) {
			l := r.granted("x")
			second := r.take("x", Waits)
			r.take("x", Waits)
			r.recall("x", 0)
			r.sent = nil
			r.now = r.now.Add(recallTime - 1)
			r.unlock(l)
			r.now = r.now.Add(1)
			r.unlock(second)
			r.did("granted x", "wanted x", "release x", "acquire x")
		},
		"the first recall counts": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.recall("x", 0)
			r.now = r.now.Add(recallTime - 1)
			r.recall("x", 0)
			r.sent = nil
			r.now = r.now.Add(1)
			r.unlock(l)
			r.did("release x", "acquire x")
		},
		"callers before a recall who give up": func(r *rig) {
			l := r.granted("x")
			first, second := r.take("x", Waits), r.take("x", Waits)
			r.recall("x", 0)
			r.take("x", Waits)
			r.cancel(first)
			r.cancel(second)
			r.sent = nil
			r.unlock(l)
			r.did("release x", "acquire x")
		},
		"recalled from birth": func(r *rig) {
			l := r.granted("x")
			r.recall("x", 0)
			r.unlock(l)
			r.did("wanted x", "release x")
		},
		"a recall in jeopardy": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.now = r.safe
			r.unlock(l)
			r.did("wanted x")
			r.recall("x", 0)
			r.did("release x", "acquire x")
		},
		"a renewal ends jeopardy": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.now = r.safe
			r.unlock(l)
			r.s.Renewed(r.window()) // late
			r.step()
			r.did("wanted x")
			r.renewed()
			r.did("granted x")
		},
		"asked": func(r *rig) {
			l := r.granted("x")
			r.recall("x", 5)
			r.recall("x", 6)
			r.unlock(l)
			r.did("wanted x", "in use x 5", "wanted x", "in use x 6", "release x")
		},
		"asked while it is free": func(r *rig) {
			r.unlock(r.granted("x"))
			r.recall("x", 5)
			r.did("release x")
		},
		"a nested request ends the stay": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.nested(l)
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"a nested request after the unlock": func(r *rig) {
			l := r.granted("x")
			owner := r.s.Request(l)
			r.unlock(l)
			if r.s.Request(l) != nil {
				r.fatal("a request of a pass that has ended")
			}
			r.asked[owner].nested = true
			r.s.Nested(owner)
			r.step()
			r.did("release x")
		},
		"yield": func(r *rig) {
			r.yield("x")
			l := r.granted("x")
			r.yield("x")
			r.unlock(l)
			r.did()
			r.yield("x")
			r.did("release x")
		},
		"idle": func(r *rig) {
			r.unlock(r.granted("x"))
			r.tick(rigIdle / 2)
			r.unlock(r.granted("y"))
			r.tick(rigIdle/2 - 1)
			r.did()
			if next := r.s.Next(r.now); next != r.now.Add(1) {
				r.fatal("next at %v", next.Sub(r.now))
			}
			r.tick(1)
			r.did("release x")
			r.tick(rigIdle)
			r.did("release y")
		},
		"no Tick is due without a limit": func(r *rig) {
			r.s.Limit, r.s.Idle = 0, 0
			l := r.granted("x")
			if next := r.s.Next(r.now); next != 0 {
				r.fatal("next after %v", next.Sub(r.now))
			}
			r.unlock(l)
			r.did("release x")
		},
		"no Tick is due at once": func(r *rig) {
			r.s.Idle = 0
			r.granted("x")
			if next := r.s.Next(r.now); !next.After(r.now) {
				r.fatal("next after %v", next.Sub(r.now))
			}
		},
		"limit": func(r *rig) {
			r.s.Limit = 2
			for _, key := range []string{"x", "y"} {
				r.unlock(r.granted(key))
			}
			r.unlock(r.take("x", Passed))
			l := r.granted("z")
			r.did()
			r.unlock(l)
			r.did("release y")
		},
		"too many callers": func(r *rig) {
			r.s.waiting = maxWaiting
			l := &Caller{Key: "x"}
			if got := r.s.Lock(r.window(), l); got != Full || len(r.s.stays) > 0 {
				r.fatal("answer %d", got)
			}
		},
		"too many bytes of keys": func(r *rig) {
			r.take(strings.Repeat("x", maxKeyBytes), Waits)
			r.take("y", Full)
		},
		"leave": func(r *rig) {
			r.unlock(r.granted("x"))
			l := r.granted("y")
			r.take("y", Waits)
			r.take("z", Waits)
			r.sent = nil
			r.leave()
			r.did("failed y", "release x", "failed z")
			r.take("y", Ordinary)
			r.unlock(l)
			r.did("release y")
		},
		"leave in jeopardy": func(r *rig) {
			l := r.granted("x")
			r.take("x", Waits)
			r.now = r.safe
			r.unlock(l)
			r.leave()
			r.did("wanted x", "failed x", "release x")
		},
		"try": func(r *rig) {
			r.try("x", Ordinary) // no stay
			waits := r.take("x", Waits)
			r.try("x", Ordinary) // not granted
			r.grant("x")
			if l := r.try("x", Held); l.token != waits.token {
				r.fatal("held with %d, want %d", l.token, waits.token)
			}
			r.unlock(waits)
			r.unlock(r.try("x", Passed))
			r.take("x", Passed)
			r.recall("x", 0)
			r.try("x", Ordinary)
		},
		"try in jeopardy": func(r *rig) {
			r.granted("x")
			r.unlock(r.granted("y"))
			r.now = r.safe
			r.sent = nil
			r.try("x", Held)
			r.did()
			r.try("y", Ordinary)
			r.did("release y")
			r.now = r.deadline
			r.try("x", Ordinary)
		},
		"a loss": func(r *rig) {
			r.granted("x")
			r.take("x", Waits)
			r.unlock(r.granted("y"))
			r.sent = nil
			r.lose("x")
			r.lose("y")
			r.did("lost x", "acquire x")
		},
		"all fail together": func(r *rig) {
			r.take("x", Waits)
			r.take("x", Waits)
			r.fail("x")
			r.did("acquire x", "failed x", "failed x")
		},
		"cancel": func(r *rig) {
			one, two := r.take("x", Waits), r.take("x", Waits)
			r.cancel(one)
			r.did("acquire x")
			old := r.request("x")
			r.cancel(two)
			r.take("x", Waits)
			r.s.Granted(r.window(), old, 5, 9) // the grant has crossed the cancel
			r.step()
			r.did("cancel x", "acquire x")
		},
		"behind": func(r *rig) {
			r.take("x", Waits)
			r.s.Behind(r.request("x"), 7)
			if n := len(r.s.news); n != 1 || r.s.news[0].Info != 7 {
				r.fatal("%d news", n)
			}
			r.step()
			l := &Caller{Key: "x"}
			r.callers[l] = &rigCaller{}
			r.s.Lock(r.window(), l)
			if n := len(r.s.news); n != 1 || r.s.news[0].Info != 7 {
				r.fatal("a later caller has %d news", n)
			}
			r.step()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 10)
			test(r)
		})
	}
}

// granted locks a key that has no stay, and forgets the commands and news of this.
func (r *rig) granted(key string) *Caller {
	r.t.Helper()
	sent := r.sent
	l := r.take(key, Waits)
	r.grant(key)
	r.sent = sent
	return l
}

func (r *rig) try(key string, want Answer) *Caller {
	r.t.Helper()
	l, got := r.lock(key, true)
	if got != want {
		r.fatal("answer %d, want %d", got, want)
	}
	return l
}

// TestStayBias checks that a stay of little use is not kept for the next 1, 2, 4 to 64 grants, and
// that a stay with four passes is worth its cost.
func TestStayBias(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10)
	useless := func(passes int) {
		l := r.take("x", Waits)
		r.grant("x")
		for range passes - 1 {
			r.unlock(l)
			l = r.take("x", Passed)
		}
		r.recall("x", 0)
		r.unlock(l)
	}
	skipped := func() (n int) {
		for ; ; n++ {
			l, answer := r.lock("x", false)
			if answer == Waits {
				r.cancel(l)
				return n
			}
		}
	}
	for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		useless(1)
		if got := skipped(); got != want {
			t.Fatalf("%d grants are not kept, want %d", got, want)
		}
	}
	useless(2)
	if got := skipped(); got != 0 {
		t.Fatalf("after 2 passes %d grants are not kept", got)
	}
	useless(1)
	if got := skipped(); got != 64 {
		t.Fatalf("%d grants are not kept, want 64", got)
	}
	useless(4)
	if len(r.s.biases.byKey) != 0 {
		t.Fatal("four passes do not reset the bias")
	}
	useless(1)
	if got := skipped(); got != 1 {
		t.Fatalf("after the reset %d grants are not kept, want 1", got)
	}
	r.empty()
}

// TestStayBiasIsBounded checks that the set forgets the keys whose bias is the longest unused.
func TestStayBiasIsBounded(t *testing.T) {
	t.Parallel()
	b := newBiases()
	for i := range biasKeys {
		b.learn(fmt.Sprint(i), 1, true)
	}
	b.skips("0")
	b.learn("1", 1, true)
	for i := range 5 {
		b.learn(fmt.Sprint("new", i), 1, true)
	}
	for _, key := range []string{"0", "1", "7", "new0", "new4"} {
		if b.byKey[key] == nil {
			t.Errorf("%s is forgotten", key)
		}
	}
	if n := len(b.byKey); n != biasKeys || b.order.Len() != n || b.byKey["2"] != nil || b.byKey["6"] != nil {
		t.Errorf("%d keys, %d in the list", n, b.order.Len())
	}
}

// TestCancelStorm checks that cancels during a recall do not cost a walk of the queue.
func TestCancelStorm(t *testing.T) {
	t.Parallel()
	took := time.Hour
	for try := 0; took > time.Second && try < 3; try++ { // other load may disturb a try
		s := NewSet(10, time.Second)
		w := Window{Now: 1, Safe: 1000, Deadline: 2000, TTL: time.Hour}
		var all []*Caller
		for range maxWaiting - 1 {
			l := &Caller{Key: "x"}
			s.Lock(w, l)
			all = append(all, l)
		}
		s.Granted(w, s.commands[0].Request, 5, 5+lockfsm.StayTokens)
		s.Recalled(w, s.commands[0].Request)
		began := time.Now()
		for i := len(all) - 1; i >= 0; i-- {
			s.Cancel(w, all[i])
		}
		took = time.Since(began)
		if len(s.stays) != 0 || s.waiting != 0 {
			t.Errorf("%d stays, %d callers", len(s.stays), s.waiting)
		}
	}
	if took > time.Second {
		t.Errorf("%v for %d cancels", took, maxWaiting-1)
	}
}

// TestNewsHoldNoMemory checks that a Set does not keep the memory of many news.
func TestNewsHoldNoMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, 10)
	for range newsKept + 1 {
		r.take("x", Waits)
	}
	r.fail("x")
	if n := cap(r.s.news); n > newsKept {
		t.Errorf("there is room for %d news", n)
	}
}
