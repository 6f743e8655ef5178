package locker

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// PatienceConfig configures a Patience.
type PatienceConfig struct {
	Locker Locker

	// Holds is the wait limit as a multiple of the average hold: at least 1. Default: 3. A waiter
	// behind n others usually waits for n holds, so the queue should seldom be longer than Holds.
	Holds float64

	// Shortest is the least wait limit. It also applies before the first hold has ended. Required.
	Shortest time.Duration

	// Longest is the greatest wait limit, at least Shortest. Default: no greatest limit.
	Longest time.Duration
}

// Patience is a Locker with a wait limit that follows the duration of recent holds: the time from
// the beginning to the end of fn, in this instance and for all keys together. The last eight holds
// make up two thirds of the average. So use a Patience for each kind of work, for example in the
// routes of a Router.
//
// If fn has not begun within the limit, Do fails with [ErrWait]. A call keeps the limit that was
// in force when it began. A Breaker around a Patience would count ErrWait as a failure, so put the
// Patience around the Breaker.
type Patience struct {
	config PatienceConfig

	mu      sync.Mutex
	average time.Duration // zero before the first hold has ended
}

// NewPatience returns a Patience, or an error that names every mistake of the configuration.
func NewPatience(c PatienceConfig) (*Patience, error) {
	if c.Holds == 0 {
		c.Holds = 3
	}
	if c.Longest == 0 {
		c.Longest = math.MaxInt64
	}
	var wrong mistakes
	wrong.need("Locker", c.Locker)
	if !(c.Holds >= 1) {
		wrong.add("Holds", "%v is below 1", c.Holds)
	}
	if c.Shortest <= 0 {
		wrong.add("Shortest", "%v is not above 0", c.Shortest)
	}
	if c.Longest < c.Shortest {
		wrong.add("Longest", "%v is below Shortest (%v)", c.Longest, c.Shortest)
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	return &Patience{config: c}, nil
}

// Limit returns the wait limit of a call that begins now.
func (p *Patience) Limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := p.config.Holds * float64(p.average)
	if wanted >= float64(p.config.Longest) { // a greater one might not fit into a Duration
		return p.config.Longest
	}
	return max(p.config.Shortest, time.Duration(wanted))
}

// Do calls the Locker. It returns its result, or an error that wraps ErrWait.
func (p *Patience) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	if p.config.Locker == nil {
		return unmade("Patience")
	}
	a := attempt{wait: p.Limit()}
	_, err := a.do(ctx, p.config.Locker, key, func(ctx context.Context, token mortise.Token) error {
		began := time.Now()
		defer func() { p.held(time.Since(began)) }()
		return fn(ctx, token)
	})
	return err
}

func (p *Patience) held(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.average == 0 {
		p.average = took
		return
	}
	p.average += (took - p.average) / 8
}
