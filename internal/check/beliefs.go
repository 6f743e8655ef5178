package check

import (
	"slices"
	"time"
)

// Beliefs judges mutual exclusion and sharing as callers see them: at any instant the callers that
// believe to hold a key fit beside each other. Instants are those of one global clock, which
// nothing in the run can read. A belief lasts from Begin to just before End, so at one instant ends
// must be reported before beginnings. The zero value is ready for use.
//
// A belief that ends by a clock (a lease that runs out) ends at the instant at which a question
// would return so, whether or not it is asked.
type Beliefs struct {
	rule
	now  time.Duration
	held map[string][]belief
}

type belief struct {
	caller Caller
	terms  Terms
	since  time.Duration
}

// Begin records that the caller who believes from at on that it holds key on these terms.
func (b *Beliefs) Begin(key string, who Caller, terms Terms, at time.Duration) error {
	if b.at(at) != nil {
		return b.err
	}
	var all sum
	for _, other := range b.held[key] {
		all.add(other.terms)
	}
	if all.add(terms); !all.fits() {
		last := b.held[key][len(b.held[key])-1]
		return b.broken("beliefs: %v believes at %v that it holds %q, and so does %v since %v: "+
			"together they have %d permits of %d",
			who, at, key, last.caller, last.since, all.taken, all.least)
	}
	if b.held == nil {
		b.held = map[string][]belief{}
	}
	b.held[key] = append(b.held[key], belief{who, terms, at})
	return nil
}

// End records that the caller who no longer believes that it holds key. Without such a belief it
// does nothing, so a loss and a release of the same lock may both be reported.
func (b *Beliefs) End(key string, who Caller, at time.Duration) error {
	if b.at(at) != nil {
		return b.err
	}
	left := slices.DeleteFunc(b.held[key], func(o belief) bool { return o.caller == who })
	if len(left) == 0 {
		delete(b.held, key)
	} else {
		b.held[key] = left
	}
	return nil
}

// Believes reports whether the caller who believes that it holds key.
func (b *Beliefs) Believes(key string, who Caller) bool {
	return slices.ContainsFunc(b.held[key], func(o belief) bool { return o.caller == who })
}

// Count returns the number of keys that callers believe to hold.
func (b *Beliefs) Count() int { return len(b.held) }

func (b *Beliefs) at(at time.Duration) error {
	if at < b.now {
		return b.broken("beliefs: %v is reported after %v: the judge needs the order of time", at, b.now)
	}
	b.now = at
	return b.err
}
