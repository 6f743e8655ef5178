package check

import "time"

// Longest checks holds that have a longest duration. The holder must not be notified before this
// duration has passed. If its process runs, Late is the longest permitted delay of the notice.
type Longest struct {
	Late time.Duration

	rule
	until map[Caller]time.Duration
}

// Begins records a hold with a longest duration. The parameter until is the global time at which
// the duration has passed on the holder's clock.
func (l *Longest) Begins(who Caller, until time.Duration) {
	if l.until == nil {
		l.until = map[Caller]time.Duration{}
	}
	l.until[who] = until
}

// Overdue checks a notice to a holder that its hold has reached its longest duration. The holder
// received the notice at the given time.
func (l *Longest) Overdue(who Caller, at time.Duration) error {
	until, known := l.until[who]
	delete(l.until, who)
	if l.err == nil && (!known || at < until) {
		return l.broken("longest: %v is told at %v that its hold has reached its longest duration, which ends at %v",
			who, at, until)
	}
	return l.err
}

// Over must be called when a hold has ended without a call of Overdue, or when its process has
// died.
func (l *Longest) Over(who Caller) { delete(l.until, who) }

// Check returns a violation if the holder should already have been notified. It must be called
// only for a holder whose process has run for at least the duration Late.
func (l *Longest) Check(who Caller, at time.Duration) error {
	if until, known := l.until[who]; known && at-until > l.Late && l.err == nil {
		return l.broken("longest: the hold of %v was to end at %v, and at %v its holder has not been told",
			who, until, at)
	}
	return l.err
}
