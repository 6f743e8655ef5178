package fair

import (
	"sync"
	"time"
)

// Rate limits how often something happens. Its owner guards it.
type Rate struct {
	Every time.Duration // in the long run, one event in this time
	Burst int           // events that may happen at once

	full time.Time // when the whole burst is available
}

// Spend counts n events, and reports whether the rate allows them.
func (r *Rate) Spend(now time.Time, n int) bool {
	if r.full.Before(now) {
		r.full = now
	}
	full := r.full.Add(time.Duration(n) * r.Every)
	if full.Sub(now) > time.Duration(r.Burst)*r.Every {
		return false
	}
	r.full = full
	return true
}

// Reserve counts n events that happen as soon as the rate allows them, and returns the time until
// then. If that time is above most, it counts nothing and returns false.
func (r *Rate) Reserve(now time.Time, n int, most time.Duration) (wait time.Duration, ok bool) {
	full := r.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(time.Duration(n) * r.Every)
	if wait = full.Sub(now) - time.Duration(r.Burst)*r.Every; wait > most {
		return 0, false
	}
	r.full = full
	return max(wait, 0), true
}

// Charge counts n events that have happened, whatever the rate allows. Later events wait at most
// the time most for them.
func (r *Rate) Charge(now time.Time, n int, most time.Duration) {
	if r.full.Before(now) {
		r.full = now
	}
	r.full = r.full.Add(time.Duration(n) * r.Every)
	if limit := now.Add(time.Duration(r.Burst)*r.Every + most); r.full.After(limit) {
		r.full = limit
	}
}

// Refund takes back n events that were spent.
func (r *Rate) Refund(n int) { r.full = r.full.Add(-time.Duration(n) * r.Every) }

// Rates has the same Rate for each user. It is safe for concurrent use, and forgets users that have
// their whole burst again.
type Rates struct {
	each Rate

	mu    sync.Mutex // guards all below
	of    map[string]*Rate
	swept int // number of users when users were last forgotten
}

// NewRates returns Rates in which each user has the rate each.
func NewRates(each Rate) *Rates { return &Rates{each: each, of: map[string]*Rate{}} }

// Spend counts n events of a user, and reports whether its rate allows them.
func (r *Rates) Spend(who string, now time.Time, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rate(who, now).Spend(now, n)
}

// Reserve counts n events of a user that happen as soon as its rate allows them. See Rate.Reserve.
func (r *Rates) Reserve(who string, now time.Time, n int, most time.Duration) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rate(who, now).Reserve(now, n, most)
}

// Charge counts n events of a user that have happened. See Rate.Charge.
func (r *Rates) Charge(who string, now time.Time, n int, most time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rate(who, now).Charge(now, n, most)
}

// rate returns the rate of a user, and forgets the users that have their whole burst again if there
// are many. The caller holds mu.
func (r *Rates) rate(who string, now time.Time) *Rate {
	if len(r.of) > 2*r.swept+64 {
		for each, rate := range r.of {
			if !rate.full.After(now) {
				delete(r.of, each)
			}
		}
		r.swept = len(r.of)
	}
	rate := r.of[who]
	if rate == nil {
		fresh := r.each
		rate = &fresh
		r.of[who] = rate
	}
	return rate
}

// Refund takes back n events of a user.
func (r *Rates) Refund(who string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rate := r.of[who]; rate != nil {
		rate.Refund(n)
	}
}
