package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Served checks liveness after the faults have ended. A key that a call waits for and that no live
// caller holds is granted within Bound. Every call that needs no lock (a cancelled call, a try, an
// unlock) is answered within Bound. The run must end the holds of live callers. A call that waits
// for several keys connects them. For connected keys Bound counts from the time when all of them
// are free. Bound must be the TTL, one failover and some slack.
type Served struct {
	Bound time.Duration

	rule
	healed  bool
	since   time.Duration
	keys    map[string]*wanted
	waiting []waiting
}

type wanted struct {
	held []Caller
	free time.Duration // the time since which no live caller holds the key
}

type waiting struct {
	caller Caller
	keys   []string
	since  time.Duration
	soon   bool
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

// Heal records that the faults have ended.
func (s *Served) Heal(at time.Duration) { s.healed, s.since = true, at }

// Waits records that a call begins to wait for all the given keys. If soon is set, the call must
// be answered within Bound even if the keys are held.
func (s *Served) Waits(keys []string, who Caller, soon bool, at time.Duration) {
	s.waiting = append(s.waiting, waiting{who, keys, at, soon})
}

// Soon must be called when the context of a waiting call has ended. The call must then be
// answered within Bound.
func (s *Served) Soon(who Caller, at time.Duration) {
	for i := range s.waiting {
		if s.waiting[i].caller == who {
			s.waiting[i].since, s.waiting[i].soon = at, true
		}
	}
}

// Answered records that a call has returned, or that its process has died, and checks how long the
// call has waited. If granted is set, the caller now holds its keys.
func (s *Served) Answered(who Caller, granted bool, at time.Duration) error {
	i := slices.IndexFunc(s.waiting, func(o waiting) bool { return o.caller == who })
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

// Freed records that a holder of key has released or lost the key, or has died. If the holder has
// died, Bound counts from its death, so Bound must include a TTL.
func (s *Served) Freed(key string, who Caller, at time.Duration) {
	w := s.key(key)
	w.held = slices.DeleteFunc(w.held, func(o Caller) bool { return o == who })
	w.free = at
}

// Check returns a violation if a waiting call should already have been answered. Call it from time
// to time, and at the end of the run.
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
	_ = s.broken("served: %v has not been answered for %q at %v: it waits since %v, "+
		"its keys are free since %v, the faults ended at %v",
		c.caller, c.keys, at, c.since, free, s.since)
}

// free returns the time since which a set of keys is free: the given keys, and all keys that
// waiting calls connect with them. If one of these keys is held, held is true.
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

// Waiting returns the number of calls that were not answered.
func (s *Served) Waiting() int { return len(s.waiting) }

// Left checks the state after all calls have ended. It must have only the sessions of the live
// instances.
func Left(who string, is lockfsm.Counts, sessions int) error {
	if is != (lockfsm.Counts{Sessions: sessions}) {
		return fmt.Errorf("left: %s keeps %+v after the last call, want %d sessions and nothing else", who, is,
			sessions)
	}
	return nil
}
