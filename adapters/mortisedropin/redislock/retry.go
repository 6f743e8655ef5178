package redislock

import (
	"sync/atomic"
	"time"
)

// RetryStrategy returns the pause before each retry. Zero or less means that there is none. Obtain
// calls it on a goroutine of its own, and not after it has returned.
type RetryStrategy interface{ NextBackoff() time.Duration }

type constant time.Duration

func (c constant) NextBackoff() time.Duration { return time.Duration(c) }

// NoRetry returns the strategy of a single attempt, which is the default.
func NoRetry() RetryStrategy { return constant(0) }

// LinearBackoff returns a strategy with equal pauses and no end.
func LinearBackoff(backoff time.Duration) RetryStrategy { return constant(backoff) }

type limited struct {
	of   RetryStrategy
	left atomic.Int64
}

func (l *limited) NextBackoff() time.Duration {
	if l.left.Add(-1) < 0 {
		return 0
	}
	return l.of.NextBackoff()
}

// LimitRetry returns a strategy that ends after at most most retries of s. It counts them for all
// calls that use it together.
func LimitRetry(s RetryStrategy, most int) RetryStrategy {
	l := &limited{of: s}
	l.left.Store(int64(most))
	return l
}

const maxDoublings = 25 // 2^26 ms, which is 18 hours

type exponential struct {
	least, most time.Duration
	tries       atomic.Int64
}

func (e *exponential) NextBackoff() time.Duration {
	pause := 2 * time.Millisecond << min(e.tries.Add(1), maxDoublings)
	switch {
	case pause < e.least:
		return e.least
	case e.most > 0 && pause > e.most:
		return e.most
	}
	return pause
}

// ExponentialBackoff returns a strategy whose pauses double, from 4 ms on, within least and most.
// A most of zero means no limit.
func ExponentialBackoff(least, most time.Duration) RetryStrategy {
	return &exponential{least: least, most: most}
}
