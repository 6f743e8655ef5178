package redsync

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise"
)

const (
	defaultTries = 32
	minDelay     = 50 * time.Millisecond
	maxDelay     = 250 * time.Millisecond
)

// Redsync makes mutexes on one node.
type Redsync struct{ node *mortise.Node }

// New returns a Redsync for the locks of the node's group. The node must not be nil, and outlives
// the mutexes.
func New(node *mortise.Node) *Redsync { return &Redsync{node} }

// NewMutex returns a Mutex that locks the key name.
func (r *Redsync) NewMutex(name string, options ...Option) *Mutex {
	m := &Mutex{name: name, node: r.node, tries: defaultTries, delay: func(int) time.Duration {
		return minDelay + rand.N(maxDelay-minDelay)
	}}
	for _, o := range options {
		o.Apply(m)
	}
	return m
}

// Option configures a Mutex.
type Option interface{ Apply(m *Mutex) }

// OptionFunc is a function as an Option.
type OptionFunc func(m *Mutex)

// Apply calls f.
func (f OptionFunc) Apply(m *Mutex) { f(m) }

// DelayFunc returns the delay before a retry. The first retry has the number 1.
type DelayFunc func(tries int) time.Duration

// WithExpiry makes the lock end when this time has passed since Lock or the last Extend. Zero, the
// default, means that it does not end by itself.
func WithExpiry(expiry time.Duration) Option {
	return OptionFunc(func(m *Mutex) { m.expiry = expiry })
}

// WithTries limits how long Lock waits: for the sum of the delays before tries-1 retries. With 1 it
// does not wait for a holder. The default is 32.
func WithTries(tries int) Option { return OptionFunc(func(m *Mutex) { m.tries = tries }) }

// WithRetryDelay sets the delay that Lock counts for each retry. The default is random, from 50 ms
// to 250 ms.
func WithRetryDelay(delay time.Duration) Option {
	return WithRetryDelayFunc(func(int) time.Duration { return delay })
}

// WithRetryDelayFunc sets the function that returns the delay before each retry. Lock calls it on a
// goroutine of its own, and not after it has returned. If it returns zero or less, there is no
// further retry.
func WithRetryDelayFunc(f DelayFunc) Option { return OptionFunc(func(m *Mutex) { m.delay = f }) }

// WithSetNXOnExtend makes Extend take the lock again if it has ended and is free. It then has a new
// token.
func WithSetNXOnExtend() Option { return OptionFunc(func(m *Mutex) { m.again = true }) }

// WithGenValueFunc sets the function that returns the value of each lock, at most 1,024 bytes.
// Other instances see it as the value of the holder.
func WithGenValueFunc(f func() (string, error)) Option {
	return OptionFunc(func(m *Mutex) { m.generate = f })
}

// WithValue is refused: Lock, Unlock and Extend return an error. In redsync it makes a Mutex the
// holder of a lock that another Mutex has taken. With mortise, use mortise.Node.Resume, which
// checks the token.
func WithValue(string) Option { return OptionFunc(func(m *Mutex) { m.refused = errValue }) }

// WithDriftFactor has no effect: a lease allows for clocks whose rates differ by 1%.
func WithDriftFactor(float64) Option { return OptionFunc(func(*Mutex) {}) }

// WithTimeoutFactor has no effect: a call ends with its context or its retries.
func WithTimeoutFactor(float64) Option { return OptionFunc(func(*Mutex) {}) }

// WithFailFast has no effect: a call waits for a majority only.
func WithFailFast(bool) Option { return OptionFunc(func(*Mutex) {}) }

// WithShufflePools has no effect: there are no pools.
func WithShufflePools(bool) Option { return OptionFunc(func(*Mutex) {}) }

var (
	// ErrFailed means that the lock was not acquired, for another reason than a holder.
	ErrFailed = errors.New("redsync: the lock was not acquired")

	// ErrExtendFailed means that the lock has ended before Extend.
	ErrExtendFailed = errors.New("redsync: the lock was not extended")

	// ErrLockAlreadyExpired means that the lock had ended before Unlock.
	ErrLockAlreadyExpired = errors.New("redsync: the lock had ended before Unlock")

	errValue = errors.New("redsync: WithValue is not supported: to take over a lock, use mortise.Node.Resume with " +
		"its token")
)

// ErrTaken is the error of Lock and TryLock if another holder has the lock. The error is a
// *ErrTaken, for errors.As.
type ErrTaken struct {
	Nodes []int // always nil

	cause error
}

func (e *ErrTaken) Error() string { return "redsync: the lock is taken: " + e.cause.Error() }

// Unwrap returns the reason. After TryLock it is a *mortise.HeldError, which names the holder.
func (e *ErrTaken) Unwrap() error { return e.cause }
