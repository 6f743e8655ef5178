package check

import "time"

// Longest judges holds that are to end by themselves: their holders are told so, not before the
// time and not long after it. That nobody else is granted the lock before its holder knows is
// [Beliefs]' to judge. Make one with how late the word may come while the holder's process runs.
type Longest struct {
	Late time.Duration

	rule
	until map[Who]time.Duration
}

// Begins is told of a hold that is to end at a time of the global clock, by its holder's clock.
func (l *Longest) Begins(who Who, until time.Duration) {
	if l.until == nil {
		l.until = map[Who]time.Duration{}
	}
	l.until[who] = until
}

// Overdue is told that a holder was told that his hold has lasted long enough.
func (l *Longest) Overdue(who Who, at time.Duration) error {
	until, known := l.until[who]
	delete(l.until, who)
	if l.err == nil && (!known || at < until) {
		return l.broken("longest: %v is told at %v that his hold has lasted long enough, which is to be so at %v",
			who, at, until)
	}
	return l.err
}

// Over is told that a hold has ended in another way, or that its process has died.
func (l *Longest) Over(who Who) { delete(l.until, who) }

// Check is called for a holder whose process runs, at a time at which it has run for Late at least.
func (l *Longest) Check(who Who, at time.Duration) error {
	if until, known := l.until[who]; known && at-until > l.Late && l.err == nil {
		return l.broken("longest: the hold of %v was to end at %v, and at %v he does not know", who, until, at)
	}
	return l.err
}
