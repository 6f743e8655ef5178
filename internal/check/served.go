package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Served judges promises 4 and 7 once the trouble is over: a key that somebody waits for and nobody alive holds is granted within
// Bound, and every call that needs no lock (a cancelled one, a try, an unlock) is answered within Bound. A holder that lives may hold
// as long as it likes; that its hold ends is the run's affair. Make one with the bound: TTL, one failover and some slack.
type Served struct {
	Bound time.Duration

	rule
	healed bool
	since  time.Duration // of the healing
	keys   map[string]*wanted
}

type wanted struct {
	waiting []waiting
	held    bool
	free    time.Duration // since when nobody who lives holds it
}

type waiting struct {
	who   Who
	since time.Duration
	soon  bool
}

func (s *Served) key(key string) *wanted {
	w := s.keys[key]
	if w == nil {
		if s.keys == nil {
			s.keys = map[string]*wanted{}
		}
		w = &wanted{}
		s.keys[key] = w
	}
	return w
}

// Heal is told that the trouble is over.
func (s *Served) Heal(at time.Duration) { s.healed, s.since = true, at }

// Waits is told of a call that begins to wait for key. soon says that it is to be answered whether or not somebody holds the key.
func (s *Served) Waits(key string, who Who, soon bool, at time.Duration) {
	w := s.key(key)
	w.waiting = append(w.waiting, waiting{who, at, soon})
}

// Soon is told that a waiting call is from now on to be answered in any case: its context has ended.
func (s *Served) Soon(key string, who Who, at time.Duration) {
	w := s.key(key)
	for i := range w.waiting {
		if w.waiting[i].who == who {
			w.waiting[i].since, w.waiting[i].soon = at, true
		}
	}
}

// Answered is told that a call returned, or that its process died. granted says that it now holds the key.
func (s *Served) Answered(key string, who Who, granted bool, at time.Duration) error {
	w := s.key(key)
	s.judge(key, w, at)
	w.waiting = slices.DeleteFunc(w.waiting, func(o waiting) bool { return o.who == who })
	if granted {
		w.held = true
	}
	return s.err
}

// Freed is told that the holder of key has released or lost it, or has died. After a death Bound counts from the death, so it must
// have room for a TTL.
func (s *Served) Freed(key string, at time.Duration) {
	w := s.key(key)
	w.held, w.free = false, at
}

// Check is called now and then, and at the end.
func (s *Served) Check(at time.Duration) error {
	keys := make([]string, 0, len(s.keys))
	for key := range s.keys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		s.judge(key, s.keys[key], at)
	}
	return s.err
}

func (s *Served) judge(key string, w *wanted, at time.Duration) {
	if !s.healed {
		return
	}
	for _, c := range w.waiting {
		since := max(c.since, s.since)
		if !c.soon {
			since = max(since, w.free)
		}
		if (c.soon || !w.held) && at-since > s.Bound {
			_ = s.broken("served: %v has not been answered for %q at %v: it waits since %v, the key is free since %v, all is well since %v",
				c.who, key, at, c.since, w.free, s.since)
		}
	}
}

// Waiting returns how many calls have not been answered.
func (s *Served) Waiting() int {
	n := 0
	for _, w := range s.keys {
		n += len(w.waiting)
	}
	return n
}

// Left judges what is left when all calls are over: nothing, but for the sessions of the instances that live.
func Left(who string, is lockfsm.Counts, sessions int) error {
	if is != (lockfsm.Counts{Sessions: sessions}) {
		return fmt.Errorf("left: %s keeps %+v after the last call, want %d sessions and nothing else", who, is, sessions)
	}
	return nil
}
