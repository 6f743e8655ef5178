package check

import "time"

// Longest judges holds with a longest duration: a holder must be notified when the duration ends,
// not earlier, and at most Late later while its process runs. [Beliefs] judges that the lock is not
// granted to another caller before that.
type Longest struct {
	Late time.Duration

	rule
	until map[Caller]time.Duration
}

// Begins records a hold that must end at until, a time of the global clock. The caller must have
// computed until from the clock of the holder.
func (l *Longest) Begins(who Caller, until time.Duration) {
	if l.until == nil {
		l.until = map[Caller]time.Duration{}
	}
	l.until[who] = until
}

// Overdue judges that a holder was notified at this time that its longest duration has ended.
func (l *Longest) Overdue(who Caller, at time.Duration) error {
	until, known := l.until[who]
	delete(l.until, who)
	if l.err == nil && (!known || at < until) {
		return l.broken("longest: %v is told at %v that its hold has reached its longest duration, which ends at %v",
			who, at, until)
	}
	return l.err
}

// Over records that a hold has ended for another reason, or that its process has ended.
func (l *Longest) Over(who Caller) { delete(l.until, who) }

// Check judges that a holder was notified in time. It must be called only for a holder whose
// process has run for at least Late.
func (l *Longest) Check(who Caller, at time.Duration) error {
	if until, known := l.until[who]; known && at-until > l.Late && l.err == nil {
		return l.broken("longest: the hold of %v was to end at %v, and at %v its holder has not been told",
			who, until, at)
	}
	return l.err
}
