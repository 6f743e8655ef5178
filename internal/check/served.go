package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Served judges promises 4 and 7 once the trouble is over: a key that somebody waits for and nobody
// alive holds is granted within Bound, and every call that needs no lock (a cancelled one, a try,
// an unlock) is answered within Bound. A holder that lives may hold as long as it likes; that its
// hold ends is the run's affair. So is, where a call waits for several keys, that those of one whom
// it waits for come free, who waits elsewhere: all keys that waiting calls connect must be free.
// Make one with the bound: TTL, one failover and some slack.
type Served struct {
	Bound time.Duration

	rule
	healed  bool
	since   time.Duration // of the healing
	keys    map[string]*wanted
	waiting []waiting // in the order in which they began
}

// wanted is a key that somebody has wanted.
type wanted struct {
	held []Who
	free time.Duration // since when nobody who lives holds it
}

type waiting struct {
	who   Who
	keys  []string
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

// Waits is told of a call that begins to wait for all of keys. soon says that it is to be answered
// whether or not somebody holds them.
func (s *Served) Waits(keys []string, who Who, soon bool, at time.Duration) {
	s.waiting = append(s.waiting, waiting{who, keys, at, soon})
}

// Soon is told that a waiting call is from now on to be answered in any case: its context has
// ended.
func (s *Served) Soon(who Who, at time.Duration) {
	for i := range s.waiting {
		if s.waiting[i].who == who {
			s.waiting[i].since, s.waiting[i].soon = at, true
		}
	}
}

// Answered is told that a call returned, or that its process died. granted says that it now holds
// its keys.
func (s *Served) Answered(who Who, granted bool, at time.Duration) error {
	i := slices.IndexFunc(s.waiting, func(o waiting) bool { return o.who == who })
	if i < 0 {
		return s.err
	}
	s.judge(&s.waiting[i], at)
	if granted {
		for _, key := range s.waiting[i].keys {
			w := s.key(key)
			w.held = append(w.held, who)
		}
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return s.err
}

// Freed is told that a holder of key has released or lost it, or has died. After a death Bound
// counts from the death, so it must have room for a TTL.
func (s *Served) Freed(key string, who Who, at time.Duration) {
	w := s.key(key)
	w.held = slices.DeleteFunc(w.held, func(o Who) bool { return o == who })
	w.free = at
}

// Check is called now and then, and at the end.
func (s *Served) Check(at time.Duration) error {
	for i := range s.waiting {
		s.judge(&s.waiting[i], at)
	}
	return s.err
}

func (s *Served) judge(c *waiting, at time.Duration) {
	since := max(c.since, s.since)
	if !s.healed || at-since <= s.Bound {
		return
	}
	free := time.Duration(0)
	if !c.soon {
		var held bool
		if free, held = s.free(c.keys); held || at-max(since, free) <= s.Bound {
			return
		}
	}
	_ = s.broken("served: %v has not been answered for %q at %v: it waits since %v, all that is free since %v, all is well since %v",
		c.who, c.keys, at, c.since, free, s.since)
}

// free says since when all keys are free that these are connected with by waiting calls, or that
// one of them is held.
func (s *Served) free(keys []string) (since time.Duration, held bool) {
	all := slices.Clone(keys)
	for i := 0; i < len(all); i++ {
		w := s.key(all[i])
		if since = max(since, w.free); len(w.held) > 0 {
			return since, true
		}
		for _, c := range s.waiting {
			if !slices.Contains(c.keys, all[i]) {
				continue
			}
			for _, key := range c.keys {
				if !slices.Contains(all, key) {
					all = append(all, key)
				}
			}
		}
	}
	return since, false
}

// Waiting returns how many calls have not been answered.
func (s *Served) Waiting() int { return len(s.waiting) }

// Left judges what is left when all calls are over: nothing, but for the sessions of the instances
// that live.
func Left(who string, is lockfsm.Counts, sessions int) error {
	if is != (lockfsm.Counts{Sessions: sessions}) {
		return fmt.Errorf("left: %s keeps %+v after the last call, want %d sessions and nothing else", who, is,
			sessions)
	}
	return nil
}
