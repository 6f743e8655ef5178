package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

const pingPrefix = "mortise/ping/"

// maxPings limits the flag -n, because each ping loads the whole group.
const maxPings = 100_000

type pingOptions struct{ count int }

func pingFlags(o *pingOptions, fs *flag.FlagSet) {
	fs.IntVar(&o.count, "n", 20, "how many locks to take, one after the other")
}

type pinged struct {
	Leader string  `json:"leader"`
	Locks  int     `json:"locks"`
	Min    float64 `json:"min_seconds"`
	Median float64 `json:"median_seconds"`
	P99    float64 `json:"p99_seconds"`
}

func ping(ctx context.Context, c *call, o pingOptions) error {
	prefix, err := c.word(pingPrefix)
	if err != nil {
		return err
	}
	if o.count < 1 || o.count > maxPings {
		return usageError(fmt.Sprintf("-n must be from 1 to %d", maxPings))
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	took, failed := c.pings(ctx, g, prefix+rand.Text(), o.count)
	if ctx.Err() != nil && len(took) > 0 {
		ctx, failed = context.WithoutCancel(ctx), nil // Ctrl-C ends only the measurement
	}
	if len(took) == 0 {
		return failed
	}
	asking, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	leader, err := g.Leader(asking)
	if shown := c.showPings(measured(took, leader)); shown != nil {
		return shown
	}
	return cmpErr(failed, err)
}

// pings returns the duration of each pair of lock and unlock, up to the first failure. The first
// pair also opens the session and is not counted.
func (c *call) pings(ctx context.Context, g *guest.Guest, key string, count int) (took []time.Duration, err error) {
	opening, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	s, err := g.Session(opening)
	if err != nil {
		return nil, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWait)
		defer cancel()
		_ = s.Close(closing) // if this fails, the session expires
	}()
	for i := range count + 1 {
		began := time.Now()
		if err := c.pingOnce(ctx, s, key); err != nil {
			return took, fmt.Errorf("lock %d: %w", i, err)
		}
		if i > 0 {
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}

// pingOnce locks and unlocks the key once. No other process waits for the key, so a missing reply
// means that the group does not grant locks.
func (c *call) pingOnce(ctx context.Context, s *guest.Session, key string) error {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	lock, err := s.Acquire(ctx, mortise.Request{Key: key, Value: "mortise ping"})
	if err == nil {
		err = lock.Unlock(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer within %v: %w", mortise.ErrNotReady, c.within, err)
	}
	return err
}

func measured(took []time.Duration, leader string) pinged {
	slices.Sort(took)
	rank := func(percent int) float64 {
		return took[(len(took)*percent+99)/100-1].Seconds()
	}
	return pinged{Leader: leader, Locks: len(took), Min: took[0].Seconds(), Median: rank(50), P99: rank(99)}
}

func (c *call) showPings(p pinged) error {
	if c.json {
		return c.show(p)
	}
	ms := func(seconds float64) string { return fmt.Sprintf("%.2fms", seconds*1000) }
	leader := "no instance reports a leader"
	if p.Leader != "" {
		leader = p.Leader + " leads"
	}
	return c.printf("%s; %d times lock and unlock: min %s, median %s, p99 %s\n",
		leader, p.Locks, ms(p.Min), ms(p.Median), ms(p.P99))
}
