package session

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// The arithmetic of the lease, see "The trust window" in the package comment. All of it counts from the moment at which the client
// sent what was later acknowledged, so the network can only make the window shorter, never longer.
const (
	leaseMarginParts   = 50 // the deadline lies TTL/50 early: it pays for a clock that runs 1% slow here and one that runs 1% fast there
	leaseRenewParts    = 3  // a renewal is sent every TTL/3, and at least every leaseRenewLongest
	leaseShortestParts = 10 // a grant with less than TTL/10 left is not worth having
)

// leaseRenewLongest bounds the time between renewals of a long lease. They are also how a client notices a leader that was cut off
// without its stream ending, and its waiting calls must not depend on the length of a lease.
const leaseRenewLongest = 3 * time.Second

// renewWaiting bounds it further while calls wait for a lock: the grant would come from the next leader.
const renewWaiting = time.Second

// renewEvery returns the time between two renewals of a lease.
func renewEvery(ttl time.Duration) time.Duration { return min(ttl/leaseRenewParts, leaseRenewLongest) }

// LeaseState says how far a lease is from its end.
type LeaseState uint8

// The states of a lease.
const (
	Lost     LeaseState = iota // there is none, or its deadline has passed: nothing is held
	Jeopardy                   // two thirds of the TTL have passed since the last acknowledged sending
	Safe                       // neither of the two
)

// String returns the state in lower case.
func (s LeaseState) String() string { return [...]string{"lost", "jeopardy", "safe", "unknown"}[s&3] }

// lease is what the client knows of its session's life: the TTL that the group granted and the sending time of the last acknowledged
// renewal. The zero value is no lease.
type lease struct {
	ttl  time.Duration
	sent clock.Time
}

// deadline returns when the lease ends. It is the clock's origin, which is always past, without a lease.
func (l lease) deadline() clock.Time {
	if l.ttl == 0 {
		return 0
	}
	return l.sent.Add(l.ttl - l.ttl/leaseMarginParts)
}

// renewed moves the lease to a renewal sent at the given time, never back.
func (l *lease) renewed(sent clock.Time) {
	if l.ttl != 0 && sent.After(l.sent) {
		l.sent = sent
	}
}

// left returns how long the lease still lasts; zero or less means that it is over.
func (l lease) left(now clock.Time) time.Duration { return l.deadline().Sub(now) }

// short reports whether too little is left for a new grant.
func (l lease) short(now clock.Time) bool {
	return l.ttl == 0 || l.left(now) < l.ttl/leaseShortestParts
}

// jeopardyAt returns when the lease enters jeopardy.
func (l lease) jeopardyAt() clock.Time { return l.sent.Add(l.ttl / 3 * 2) }

// state returns the state of the lease.
func (l lease) state(now clock.Time) LeaseState {
	switch {
	case l.ttl == 0 || !now.Before(l.deadline()):
		return Lost
	case !now.Before(l.jeopardyAt()):
		return Jeopardy
	}
	return Safe
}

// renewals remembers when the renewals that are not acknowledged yet were sent. An acknowledgement names one of them by its
// sequence number. It keeps the newest few: who waits for an older one than that has lost its lease long ago. A keeper remembers in the
// same way when it sent the acknowledgements of which it does not know yet that they were heard.
type renewals struct {
	seq     uint64 // of the last one sent, over all sessions
	heard   uint64 // the newest of which the client knows that it arrived
	waiting []sentRenewal
}

type sentRenewal struct {
	seq  uint64
	sent clock.Time
}

const renewalsKept = 8

// next returns the number of a renewal that is sent now.
func (r *renewals) next(now clock.Time) uint64 {
	r.seq++
	r.note(r.seq, now)
	return r.seq
}

// note adds what is sent now.
func (r *renewals) note(seq uint64, now clock.Time) {
	if len(r.waiting) == renewalsKept {
		copy(r.waiting, r.waiting[1:])
		r.waiting = r.waiting[:renewalsKept-1]
	}
	r.waiting = append(r.waiting, sentRenewal{seq: seq, sent: now})
}

// acknowledged returns when the named renewal was sent and forgets it together with the older ones.
func (r *renewals) acknowledged(seq uint64) (sent clock.Time, ok bool) {
	for i, w := range r.waiting {
		if w.seq == seq {
			r.waiting = append(r.waiting[:0], r.waiting[i+1:]...)
			return w.sent, true
		}
	}
	return 0, false
}

// forget drops all that wait: the attachment on which they were sent is over, nobody will acknowledge them.
func (r *renewals) forget() { r.waiting = r.waiting[:0] }

// oldest returns when the oldest unacknowledged renewal was sent.
func (r *renewals) oldest() (sent clock.Time, ok bool) {
	if len(r.waiting) == 0 {
		return 0, false
	}
	return r.waiting[0].sent, true
}
