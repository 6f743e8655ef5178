package client

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

// These constants define the times of a lease; see "The trust window" in package session. All times
// are measured from the sending of the acknowledged renewal, so a slow network can only shorten the
// window.
const (
	// The margin is sufficient if the client's clock is 1% slow and the leader's clock is 1% fast.
	leaseMarginParts   = 50
	leaseRenewParts    = 3  // a renewal is sent every TTL/3, and at least every leaseRenewLongest
	leaseShortestParts = 10 // a grant with less than TTL/10 left is released
)

// leaseRenewLongest bounds the time after which a client detects a silent leader, so it must not
// grow with the TTL.
const leaseRenewLongest = 3 * time.Second

// renewWaiting is the longest time between renewals while calls wait for a lock, so that the client
// finds a new leader sooner.
const renewWaiting = time.Second

func renewEvery(ttl time.Duration) time.Duration { return min(ttl/leaseRenewParts, leaseRenewLongest) }

// LeaseState is the state of a lease.
type LeaseState uint8

// The states of a lease.
const (
	Lost     LeaseState = iota // there is no lease, or its deadline has passed; no lock is held
	Jeopardy                   // two thirds of the TTL have passed since the last acknowledged renewal was sent
	Safe                       // neither Lost nor Jeopardy
)

func (s LeaseState) String() string { return [...]string{"lost", "jeopardy", "safe", "unknown"}[s&3] }

// lease is the granted TTL and the sending time of the last acknowledged renewal. Zero means none.
type lease struct {
	ttl  time.Duration
	sent clock.Time
}

// deadline returns the time at which the lease ends. If there is no lease, it returns zero, a
// time in the past.
func (l lease) deadline() clock.Time {
	if l.ttl == 0 {
		return 0
	}
	return l.sent.Add(l.ttl - l.ttl/leaseMarginParts)
}

// renewed extends the lease when a renewal is acknowledged. The parameter sent is the time at
// which that renewal was sent.
func (l *lease) renewed(sent clock.Time) {
	if l.ttl != 0 && sent.After(l.sent) {
		l.sent = sent
	}
}

// left returns the time until the end of the lease. After the end it is negative.
func (l lease) left(now clock.Time) time.Duration { return l.deadline().Sub(now) }

func (l lease) short(now clock.Time) bool {
	return l.ttl == 0 || l.left(now) < l.ttl/leaseShortestParts
}

// safe returns when the lease enters jeopardy. Without a lease it returns zero, which has passed.
func (l lease) safe() clock.Time {
	if l.ttl == 0 {
		return 0
	}
	return l.jeopardyAt()
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

// pulse is the lease of the session and the renewals that keep it.
type pulse struct {
	lease     lease
	renewals  renewals
	renewedAt clock.Time
	// when the leader's last reply arrived or the first unanswered command was sent, whichever is
	// later
	heardAt clock.Time
	due     bool // the next frame contains a renewal
}

// begin begins the lease of a new session, whose Open was sent at a time.
func (p *pulse) begin(ttl time.Duration, sent clock.Time) { p.lease = lease{ttl, sent} }

func (p *pulse) end() { p.lease = lease{} }

// want makes the next frame contain a renewal.
func (p *pulse) want()   { p.due = true }
func (p *pulse) unwant() { p.due = false }

// renews notes that a renewal is sent, and returns its number.
func (p *pulse) renews(now clock.Time) uint64 {
	p.due, p.renewedAt = false, now
	return p.renewals.next(now)
}

func (p *pulse) heard(now clock.Time) { p.heardAt = now }

type renewals struct {
	session.Sent
	seq   uint64 // the number of the last renewal sent, in any session
	heard uint64 // the newest renewal that was answered
}

func (r *renewals) next(now clock.Time) uint64 {
	r.seq++
	r.Note(r.seq, now)
	return r.seq
}

// silentSince returns since when no leader has answered. Zero means that no answer is due.
func (c *Core) silentSince() clock.Time {
	if c.finder.silent != 0 {
		return c.finder.silent
	}
	if c.counts.open > 0 {
		return c.pulse.heardAt
	}
	if oldest, ok := c.pulse.renewals.Oldest(); ok {
		return max(oldest, c.pulse.heardAt)
	}
	return 0
}

// triesEnd returns when the requests with Try fail unless a leader answers before. Zero means
// never. A leader that was slow before has more time to answer, but such a request has not. Time
// before the request counts only if the leader was lost by then: the process may have been paused.
func (c *Core) triesEnd() clock.Time {
	since := c.silentSince()
	if c.counts.tries == 0 || since == 0 {
		return 0
	}
	since = max(since, c.counts.triedSince)
	if c.finder.orphaned != 0 {
		since = min(since, c.finder.orphaned)
	}
	return since.Add(tryWithout)
}
