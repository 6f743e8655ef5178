package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

func (l *loop) pair(ctx context.Context, by Locker, key string) error {
	began := l.now()
	hold, err := by.Lock(ctx, key)
	took := l.now() - began
	if err != nil {
		return err
	}
	if err := hold.Unlock(ctx); err != nil {
		return err
	}
	l.done(took)
	return nil
}

// serial runs one caller that alternates between two instances, so that no instance locks a key
// that it has just unlocked. The workload relock measures the opposite case.
func serial(ctx context.Context, r *Run) (Result, error) {
	callers, err := callersOf(ctx, r.Cluster, 2, false)
	if err != nil {
		return Result{}, err
	}
	var l loop
	return l.run(ctx, 1, r.Duration, func(ctx context.Context, _, turn int) error {
		return l.pair(ctx, callers[turn%len(callers)], "serial")
	})
}

func relock(ctx context.Context, r *Run) (Result, error) {
	callers, err := callersOf(ctx, r.Cluster, 1, false)
	if err != nil {
		return Result{}, err
	}
	var l loop
	return l.run(ctx, 1, r.Duration,
		func(ctx context.Context, _, _ int) error { return l.pair(ctx, callers[0], "relock") })
}

func parallel(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		callers, err := callersOf(ctx, r.Cluster, len(r.Cluster.Instances()), false)
		if err != nil {
			return Result{}, err
		}
		keys := keysOf("parallel", n)
		var l loop
		return l.run(ctx, n, r.Duration, func(ctx context.Context, i, turn int) error {
			return l.pair(ctx, callers[(i+turn)%len(callers)], keys[i])
		})
	}
}

// zipf runs callers that lock a few keys often and many keys rarely. It fails if two callers hold
// one key at the same time.
func zipf(ctx context.Context, r *Run) (Result, error) {
	const callers, keyCount, s = 256, 10_000, 1.1
	lockers, err := callersOf(ctx, r.Cluster, callers, true)
	if err != nil {
		return Result{}, err
	}
	keys := keysOf("zipf", keyCount)
	inside := make([]atomic.Int32, keyCount)
	choices := make([]*rand.Zipf, callers)
	for i := range choices {
		choices[i] = rand.NewZipf(rand.New(rand.NewPCG(uint64(i), 1)), s, 1, keyCount-1)
	}
	var l loop
	return l.run(ctx, callers, r.Duration, func(ctx context.Context, i, _ int) error {
		k := choices[i].Uint64()
		return l.pairAlone(ctx, lockers[i], keys[k], &inside[k])
	})
}

// pairAlone is like pair, and fails if two callers hold the key at the same time. inside is the
// number of callers that hold the key.
func (l *loop) pairAlone(ctx context.Context, by Locker, key string, inside *atomic.Int32) error {
	began := l.now()
	hold, err := by.Lock(ctx, key)
	took := l.now() - began
	if err != nil {
		return err
	}
	if inside.Add(1) != 1 {
		return fmt.Errorf("two hold %s at once", key)
	}
	inside.Add(-1)
	if err := hold.Unlock(ctx); err != nil {
		return err
	}
	l.done(took)
	return nil
}

func keysOf(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return keys
}
