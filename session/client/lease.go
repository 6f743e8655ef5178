package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

// The arithmetic of the lease; see "The trust window" in package session. All times count from the
// sending of the acknowledged renewal, so delays of the network can only shorten the window.
const (
	// TTL/50 covers a clock that runs 1% slow here and a clock that runs 1% fast on the leader.
	leaseMarginParts   = 50
	leaseRenewParts    = 3  // a renewal is sent every TTL/3, and at least every leaseRenewLongest
	leaseShortestParts = 10 // a grant with less than TTL/10 of the lease left is given back
)

// leaseRenewLongest bounds the time between renewals of a long lease. By its renewals a client also
// notices a leader that was cut off without its stream ending. The time until it notices must not
// depend on the length of the lease.
const leaseRenewLongest = 3 * time.Second

// renewWaiting bounds the time between renewals while calls wait for a lock. A client that waits
// should notice the loss of its leader quickly, because the next leader could grant the lock.
const renewWaiting = time.Second

func renewEvery(ttl time.Duration) time.Duration { return min(ttl/leaseRenewParts, leaseRenewLongest) }

// LeaseState is the state of a lease.
type LeaseState uint8

// The states of a lease.
const (
	Lost     LeaseState = iota // no lease, or its deadline has passed: nothing is held
	Jeopardy                   // at least two thirds of the TTL have passed since the last acknowledged renewal was sent
	Safe                       // neither of the two
)

func (s LeaseState) String() string { return [...]string{"lost", "jeopardy", "safe", "unknown"}[s&3] }

// lease is the TTL that the group granted and the sending time of the last acknowledged renewal.
// Zero means no lease.
type lease struct {
	ttl  time.Duration
	sent clock.Time
}

// deadline returns when the lease ends. Without a lease it returns the origin of the clock, which
// lies in the past.
func (l lease) deadline() clock.Time {
	if l.ttl == 0 {
		return 0
	}
	return l.sent.Add(l.ttl - l.ttl/leaseMarginParts)
}

// renewed extends the lease to a renewal sent at the given time, and never shortens it.
func (l *lease) renewed(sent clock.Time) {
	if l.ttl != 0 && sent.After(l.sent) {
		l.sent = sent
	}
}

// left returns the rest of the lease. Zero or less means that it is over.
func (l lease) left(now clock.Time) time.Duration { return l.deadline().Sub(now) }

func (l lease) short(now clock.Time) bool {
	return l.ttl == 0 || l.left(now) < l.ttl/leaseShortestParts
}

func (l lease) jeopardyAt() clock.Time { return l.sent.Add(l.ttl / 3 * 2) }

func (l lease) state(now clock.Time) LeaseState {
	switch {
	case l.ttl == 0 || !now.Before(l.deadline()):
		return Lost
	case !now.Before(l.jeopardyAt()):
		return Jeopardy
	}
	return Safe
}

// renewals numbers a client's renewals and remembers the unacknowledged ones.
type renewals struct {
	session.Sent
	seq   uint64 // the number of the last renewal sent, counted over all sessions
	heard uint64 // the newest renewal known to have arrived
}

func (r *renewals) next(now clock.Time) uint64 {
	r.seq++
	r.Note(r.seq, now)
	return r.seq
}
