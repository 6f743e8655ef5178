package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestStayRules has one short test for each rule of stays.
func TestStayRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*stayRig){
		"a second lock needs no message": func(r *stayRig) {
			r.unlock(r.granted("x"))
			r.did()
			l := r.take("x", StayGranted)
			if l.token != 1003 {
				r.fatal("token %d", l.token)
			}
			r.unlock(l)
			r.did()
		},
		"callers are served in order": func(r *stayRig) {
			l := r.granted("x")
			var waits []*StayCaller
			for range 3 {
				waits = append(waits, r.take("x", StayWaits))
			}
			r.did("wanted x", "wanted x", "wanted x")
			for _, next := range waits {
				if r.unlock(l); r.inside["x"] != next {
					r.fatal("the wrong caller has the lock")
				}
				l = next
			}
			r.unlock(l)
			r.did("granted x", "wanted x", "granted x", "wanted x", "granted x")
		},
		"an exhausted range": func(r *stayRig) {
			r.reserves = 2
			l, waits := r.granted("x"), r.take("x", StayWaits)
			r.unlock(l)
			last := r.take("x", StayWaits)
			r.did("wanted x", "granted x", "wanted x")
			r.unlock(waits)
			r.did("release x", "acquire x")
			r.grant("x")
			r.unlock(last)
			r.unlock(r.take("x", StayGranted))
			r.did("granted x", "release x")
		},
		"an aged range": func(r *stayRig) {
			r.s.Idle = rigTTL * 2
			r.unlock(r.granted("x"))
			r.tick(rigTTL - 1)
			r.renewed()
			r.unlock(r.take("x", StayGranted))
			r.did()
			r.tick(1)
			r.take("x", StayWaits)
			r.did("release x", "acquire x")
		},
		"an aged range with a caller inside": func(r *stayRig) {
			l := r.granted("x")
			r.take("x", StayWaits)
			r.tick(rigTTL)
			r.renewed()
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"no tokens": func(r *stayRig) {
			r.reserves = 0
			l := r.granted("x")
			if l.token != 1001 {
				r.fatal("token %d", l.token)
			}
			r.take("x", StayWaits)
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"no tokens and no caller": func(r *stayRig) {
			r.reserves = 0
			l := r.take("x", StayWaits)
			r.now = r.safe
			r.grant("x")
			r.cancel(l)
			r.did("acquire x", "release x")
		},
		"a recall while it is free": func(r *stayRig) {
			r.unlock(r.granted("x"))
			r.recall("x", 0)
			r.did("release x")
		},
		"a recall in use": func(r *stayRig) {
			l := r.granted("x")
			first := r.take("x", StayWaits)
			r.recall("x", 0)
			r.recall("x", 0)
			r.take("x", StayWaits)
			r.did("wanted x", "wanted x", "wanted x", "wanted x")
			r.unlock(l)
			r.did("granted x", "wanted x")
			r.unlock(first)
			r.did("release x", "acquire x")
		},
		"16 passes after a recall": func(r *stayRig) {
			l := r.granted("x")
			for range 20 {
				r.take("x", StayWaits)
			}
			r.recall("x", 0)
			passes := 0
			for ; l != nil; l = r.inside["x"] {
				r.unlock(l)
				passes++
			}
			if passes != 1+16 || r.sent[len(r.sent)-1] != "acquire x" || r.s.waiting != 4 {
				r.fatal("%d passes, %d wait", passes, r.s.waiting)
			}
		},
		"10 ms after a recall": func(r *stayRig) {
			l := r.granted("x")
			second := r.take("x", StayWaits)
			r.take("x", StayWaits)
			r.recall("x", 0)
			r.sent = nil
			r.now = r.now.Add(recallTime - 1)
			r.unlock(l)
			r.now = r.now.Add(1)
			r.unlock(second)
			r.did("granted x", "wanted x", "release x", "acquire x")
		},
		"callers before a recall who give up": func(r *stayRig) {
			l := r.granted("x")
			first, second := r.take("x", StayWaits), r.take("x", StayWaits)
			r.recall("x", 0)
			r.take("x", StayWaits)
			r.cancel(first)
			r.cancel(second)
			r.sent = nil
			r.unlock(l)
			r.did("release x", "acquire x")
		},
		"recalled from birth": func(r *stayRig) {
			l := r.granted("x")
			r.recall("x", 0)
			r.unlock(l)
			r.did("wanted x", "release x")
		},
		"a recall in jeopardy": func(r *stayRig) {
			l := r.granted("x")
			r.take("x", StayWaits)
			r.now = r.safe
			r.unlock(l)
			r.did("wanted x")
			r.recall("x", 0)
			r.did("release x", "acquire x")
		},
		"a renewal ends jeopardy": func(r *stayRig) {
			l := r.granted("x")
			r.take("x", StayWaits)
			r.now = r.safe
			r.unlock(l)
			r.s.Renewed(r.window()) // late
			r.step()
			r.did("wanted x")
			r.renewed()
			r.did("granted x")
		},
		"asked": func(r *stayRig) {
			l := r.granted("x")
			r.recall("x", 5)
			r.recall("x", 6)
			r.unlock(l)
			r.did("wanted x", "in use x 5", "wanted x", "in use x 6", "release x")
		},
		"asked while it is free": func(r *stayRig) {
			r.unlock(r.granted("x"))
			r.recall("x", 5)
			r.did("release x")
		},
		"a nested request ends the stay": func(r *stayRig) {
			l := r.granted("x")
			r.take("x", StayWaits)
			r.nested(l)
			r.unlock(l)
			r.did("wanted x", "release x", "acquire x")
		},
		"a nested request after the unlock": func(r *stayRig) {
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
		"yield": func(r *stayRig) {
			r.yield("x")
			l := r.granted("x")
			r.yield("x")
			r.unlock(l)
			r.did()
			r.yield("x")
			r.did("release x")
		},
		"idle": func(r *stayRig) {
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
		"no Tick is due without a limit": func(r *stayRig) {
			r.s.Limit, r.s.Idle = 0, 0
			l := r.granted("x")
			if next := r.s.Next(r.now); next != 0 {
				r.fatal("next after %v", next.Sub(r.now))
			}
			r.unlock(l)
			r.did("release x")
		},
		"no Tick is due at once": func(r *stayRig) {
			r.s.Idle = 0
			r.granted("x")
			if next := r.s.Next(r.now); !next.After(r.now) {
				r.fatal("next after %v", next.Sub(r.now))
			}
		},
		"limit": func(r *stayRig) {
			r.s.Limit = 2
			for _, key := range []string{"x", "y"} {
				r.unlock(r.granted(key))
			}
			r.unlock(r.take("x", StayGranted))
			l := r.granted("z")
			r.did()
			r.unlock(l)
			r.did("release y")
		},
		"too many callers": func(r *stayRig) {
			r.s.waiting = maxUnfinished
			l := &StayCaller{Key: "x"}
			if got := r.s.Lock(r.window(), l); got != StayFull || len(r.s.stays) > 0 {
				r.fatal("answer %d", got)
			}
		},
		"leave": func(r *stayRig) {
			r.unlock(r.granted("x"))
			l := r.granted("y")
			r.take("y", StayWaits)
			r.take("z", StayWaits)
			r.sent = nil
			r.leave()
			r.did("failed y", "release x", "failed z")
			r.take("y", StayOrdinary)
			r.unlock(l)
			r.did("release y")
		},
		"leave in jeopardy": func(r *stayRig) {
			l := r.granted("x")
			r.take("x", StayWaits)
			r.now = r.safe
			r.unlock(l)
			r.leave()
			r.did("wanted x", "failed x", "release x")
		},
		"try": func(r *stayRig) {
			r.try("x", StayOrdinary) // no stay
			waits := r.take("x", StayWaits)
			r.try("x", StayOrdinary) // not granted
			r.grant("x")
			if l := r.try("x", StayHeld); l.token != waits.token {
				r.fatal("held with %d, want %d", l.token, waits.token)
			}
			r.unlock(waits)
			r.unlock(r.try("x", StayGranted))
			r.take("x", StayGranted)
			r.recall("x", 0)
			r.try("x", StayOrdinary)
		},
		"try in jeopardy": func(r *stayRig) {
			r.granted("x")
			r.unlock(r.granted("y"))
			r.now = r.safe
			r.sent = nil
			r.try("x", StayHeld)
			r.did()
			r.try("y", StayOrdinary)
			r.did("release y")
			r.now = r.deadline
			r.try("x", StayOrdinary)
		},
		"a loss": func(r *stayRig) {
			r.granted("x")
			r.take("x", StayWaits)
			r.unlock(r.granted("y"))
			r.sent = nil
			r.lose("x")
			r.lose("y")
			r.did("lost x", "acquire x")
		},
		"all fail together": func(r *stayRig) {
			r.take("x", StayWaits)
			r.take("x", StayWaits)
			r.fail("x")
			r.did("acquire x", "failed x", "failed x")
		},
		"cancel": func(r *stayRig) {
			one, two := r.take("x", StayWaits), r.take("x", StayWaits)
			r.cancel(one)
			r.did("acquire x")
			old := r.request("x")
			r.cancel(two)
			r.take("x", StayWaits)
			r.s.Granted(r.window(), old, 5, 9) // the grant has crossed the cancel
			r.step()
			r.did("cancel x", "acquire x")
		},
		"behind": func(r *stayRig) {
			r.take("x", StayWaits)
			r.s.Behind(r.request("x"), &HeldError{Token: 7})
			if n := len(r.s.News); n != 1 || r.s.News[0].Behind.Token != 7 {
				r.fatal("%d news", n)
			}
			r.step()
			l := &StayCaller{Key: "x"}
			r.callers[l] = &rigCaller{}
			r.s.Lock(r.window(), l)
			if n := len(r.s.News); n != 1 || r.s.News[0].Behind.Token != 7 {
				r.fatal("a later caller has %d news", n)
			}
			r.step()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newStayRig(t, 10)
			test(r)
		})
	}
}

// granted locks a key that has no stay, and forgets the commands and news of this.
func (r *stayRig) granted(key string) *StayCaller {
	r.t.Helper()
	sent := r.sent
	l := r.take(key, StayWaits)
	r.grant(key)
	r.sent = sent
	return l
}

func (r *stayRig) try(key string, want StayAnswer) *StayCaller {
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
	r := newStayRig(t, 10)
	useless := func(passes int) {
		l := r.take("x", StayWaits)
		r.grant("x")
		for range passes - 1 {
			r.unlock(l)
			l = r.take("x", StayGranted)
		}
		r.recall("x", 0)
		r.unlock(l)
	}
	skipped := func() (n int) {
		for ; ; n++ {
			l, answer := r.lock("x", false)
			if answer == StayWaits {
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
	if len(r.s.useless) != 0 {
		t.Fatal("four passes do not reset the bias")
	}
	useless(1)
	if got := skipped(); got != 1 {
		t.Fatalf("after the reset %d grants are not kept, want 1", got)
	}
	r.empty()
}

// TestStayBiasIsBounded checks the number of keys with a bias.
func TestStayBiasIsBounded(t *testing.T) {
	t.Parallel()
	s := NewStays(10, time.Second)
	for i := range biasKeys + 5 {
		s.learn(&stay{key: string(rune(0x10000 + i)), recalled: 1})
	}
	if n := len(s.useless); n > biasKeys {
		t.Errorf("%d keys", n)
	}
}

// TestStayCancelStorm checks that cancels during a recall do not cost a walk of the queue.
func TestStayCancelStorm(t *testing.T) {
	t.Parallel()
	s := NewStays(10, time.Second)
	w := Window{Now: 1, Safe: 1000, Deadline: 2000, TTL: time.Hour}
	var all []*StayCaller
	for range maxUnfinished - 1 {
		l := &StayCaller{Key: "x"}
		s.Lock(w, l)
		all = append(all, l)
	}
	s.Granted(w, s.Commands[0].Request, 5, 5+lockfsm.StayTokens)
	s.Recalled(w, s.Commands[0].Request)
	began := time.Now()
	for i := len(all) - 1; i >= 0; i-- {
		s.Cancel(w, all[i])
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%v for %d cancels", took, len(all))
	}
	if len(s.stays) != 0 || s.waiting != 0 {
		t.Errorf("%d stays, %d callers", len(s.stays), s.waiting)
	}
}
