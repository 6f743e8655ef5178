package check

import (
	"slices"
	"time"
)

// Beliefs checks that callers hold a key at the same time only if they may hold it together. A
// caller counts while it believes that it holds the key. Times are those of one global clock,
// which the code under test cannot read. If Begin and End happen at the same time, End must be
// called first.
//
// A belief that ends by a clock, for example by the expiry of a lease, ends at the first moment at
// which the method Err of the lock would return an error.
type Beliefs struct {
	rule
	now  time.Duration
	held map[string][]belief
}

type belief struct {
	caller Caller
	terms  Terms
	since  time.Duration
	beside Caller // the hold in which it is; zero means none
}

// Begin records that, from the given time, a caller believes that it holds key on these terms.
func (b *Beliefs) Begin(key string, who Caller, terms Terms, at time.Duration) error {
	return b.BeginBeside(key, who, terms, Caller{}, at)
}

// BeginBeside is like Begin for an upgrade or a handle, which may hold key beside its own hold. The
// two count once: what others hold must fit beside each of them.
func (b *Beliefs) BeginBeside(key string, who Caller, terms Terms, hold Caller, at time.Duration) error {
	if b.at(at) != nil {
		return b.err
	}
	for _, inner := range []bool{false, true} {
		var all sum
		var last belief
		for _, other := range b.held[key] {
			if other.caller != hold && !b.instead(key, other, inner) {
				last = other
				all.add(other.terms)
			}
		}
		if all.add(terms); !all.fits() {
			return b.broken("beliefs: %v believes at %v that it holds %q, and so does %v since %v: "+
				"together they have %d permits of %d",
				who, at, key, last.caller, last.since, all.taken, all.least)
		}
	}
	if b.held == nil {
		b.held = map[string][]belief{}
	}
	b.held[key] = append(b.held[key], belief{who, terms, at, hold})
	return nil
}

// instead reports whether another belief of the same hold counts instead of one: that of the hold,
// or, if inner is set, that of what is inside it.
func (b *Beliefs) instead(key string, one belief, inner bool) bool {
	return slices.ContainsFunc(b.held[key], func(o belief) bool {
		if inner {
			return o.beside != (Caller{}) && o.beside == one.caller
		}
		return one.beside != (Caller{}) && one.beside == o.caller
	})
}

// End records that, from the given time, a caller no longer believes that it holds key. If no
// belief is recorded, End does nothing, so both the loss and the release of a lock may be
// reported.
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

// Lower records that a caller acts as the holder of key on these terms from now on.
func (b *Beliefs) Lower(key string, who Caller, terms Terms) {
	for i := range b.held[key] {
		if o := &b.held[key][i]; o.caller == who {
			o.terms = terms
		}
	}
}

// Believes reports whether a caller believes that it holds key.
func (b *Beliefs) Believes(key string, who Caller) bool {
	return slices.ContainsFunc(b.held[key], func(o belief) bool { return o.caller == who })
}

// Count returns the number of keys with a belief.
func (b *Beliefs) Count() int { return len(b.held) }

func (b *Beliefs) at(at time.Duration) error {
	if at < b.now {
		return b.broken("beliefs: %v is reported after %v: the judge needs the order of time", at, b.now)
	}
	b.now = at
	return b.err
}
