package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

const (
	lineKeys     = 1000
	lineSessions = 20 // a session may have at most 65,536 calls in progress
)

// line measures many waiters on many keys. The waiters of a key enter its queue one after the
// other. Then every waiter is granted its key once. The workload fails if the order is wrong.
func line(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		rounds := r.scaled(n) / lineKeys
		ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(rounds)*time.Second)
		defer cancel()
		g, err := gather(ctx, r, 0)
		if err != nil {
			return Result{}, err
		}
		defer g.close()
		group, err := groupOf(g.leader)
		if err != nil {
			return Result{}, err
		}
		c, err := openCrowd(ctx, group, encrypted(r.Peer), 0, lineSessions)
		if err != nil {
			return Result{}, err
		}
		defer c.close()
		firsts, turns := make([]*client.Hold, lineKeys), make([]atomic.Int64, lineKeys)
		err = together(lineKeys, func(k int) (err error) {
			firsts[k], err = c.lights[k%lineSessions].client.Acquire(ctx, lineKey(k), false)
			return err
		})
		if err != nil {
			return Result{}, err
		}
		wait := newLine(ctx, rounds*lineKeys)
		for round := range rounds {
			by := c.lights[round%lineSessions].client
			holds := make([]client.Hold, lineKeys)
			for k := range holds {
				wait.join(by, &holds[k], k, int64(round), &turns[k])
			}
			for k := range holds {
				for holds[k].Behind() == nil { // until the request is in the queue
					if err := wait.failed(); err != nil {
						return Result{}, err
					}
					time.Sleep(time.Millisecond)
				}
			}
		}
		began := time.Now()
		if err := together(lineKeys, func(k int) error { return firsts[k].Release(ctx) }); err != nil {
			return Result{}, err
		}
		if err := wait.all(); err != nil {
			return Result{}, err
		}
		took := time.Since(began)
		return Result{Count: float64(rounds * lineKeys), Took: took, Rate: float64(rounds*lineKeys) / took.Seconds()},
			nil
	}
}

func lineKey(k int) string { return fmt.Sprintf("line-%d", k) }

type waitingLine struct {
	ctx   context.Context
	ended chan struct{}
	left  atomic.Int64
	first atomic.Pointer[error]
}

func newLine(ctx context.Context, n int) *waitingLine {
	w := &waitingLine{ctx: ctx, ended: make(chan struct{})}
	w.left.Store(int64(n))
	return w
}

// join makes a waiter enter the queue of key k. turn counts the grants of the key. When the waiter
// is granted the key, turn must be equal to place.
func (w *waitingLine) join(by *client.Client, h *client.Hold, k int, place int64, turn *atomic.Int64) {
	go func() {
		err := by.AcquireInto(w.ctx, h, &client.Request{Key: lineKey(k)})
		if err == nil {
			if now := turn.Add(1) - 1; now != place {
				err = fmt.Errorf("waiter %d of key %d is served as number %d", place, k, now)
			}
			err = errors.Join(err, h.ReleaseSoon())
		}
		if err != nil && w.first.CompareAndSwap(nil, &err) || w.left.Add(-1) == 0 && w.first.Load() == nil {
			close(w.ended)
		}
	}()
}

func (w *waitingLine) failed() error {
	if err := w.first.Load(); err != nil {
		return *err
	}
	return w.ctx.Err()
}

func (w *waitingLine) all() error {
	select {
	case <-w.ended:
	case <-w.ctx.Done():
	}
	return w.failed()
}
