package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

// The arithmetic of the lease, see "The trust window" in the package comment. All of it counts from
// the moment at which the client sent what was later acknowledged, so the network can only make the
// window shorter, never longer.
const (
	// the deadline lies TTL/50 early: it pays for a clock that runs 1% slow here and one that runs
	// 1% fast there
	leaseMarginParts   = 50
	leaseRenewParts    = 3  // a renewal is sent every TTL/3, and at least every leaseRenewLongest
	leaseShortestParts = 10 // a grant with less than TTL/10 left is not worth having
)

// leaseRenewLongest bounds the time between renewals of a long lease. They are also how a client
// notices a leader that was cut off without its stream ending, and its waiting calls must not
// depend on the length of a lease.
const leaseRenewLongest = 3 * time.Second

// renewWaiting bounds it further while calls wait for a lock: the grant would come from the next
// leader.
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

// lease is what the client knows of its session's life: the TTL that the group granted and the
// sending time of the last acknowledged renewal. The zero value is no lease.
type lease struct {
	ttl  time.Duration
	sent clock.Time
}

// deadline returns when the lease ends. It is the clock's origin, which is always past, without a
// lease.
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

// renewals numbers the renewals of a client, and remembers which of them are not acknowledged.
type renewals struct {
	session.Sent
	seq   uint64 // of the last one sent, over all sessions
	heard uint64 // the newest of which the client knows that it arrived
}

// next returns the number of a renewal that is sent now.
func (r *renewals) next(now clock.Time) uint64 {
	r.seq++
	r.Note(r.seq, now)
	return r.seq
}
