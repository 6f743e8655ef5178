package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// The workloads in this file lock a key repeatedly on the same instance, which sticky locks make
// fast, or on another instance than before, which they make slow.

// own runs n callers. Each has a key of its own, and always locks it on the same instance.
func own(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		callers, err := callersOf(ctx, r.Cluster, n, false)
		if err != nil {
			return Result{}, err
		}
		keys := keysOf("own", n)
		var l loop
		return l.run(ctx, n, r.Duration,
			func(ctx context.Context, i, _ int) error { return l.pair(ctx, callers[i], keys[i]) })
	}
}

// mostly runs callers that lock a few keys often and many keys rarely. Each key is locked 95 times
// of 100 on the same instance. The workload fails if two callers hold one key at the same time.
func mostly(ctx context.Context, r *Run) (Result, error) {
	const callers, keyCount, s, elsewhere = 64, 1000, 1.1, 0.05
	count := len(r.Cluster.Instances())
	lockers, err := callersOf(ctx, r.Cluster, count*callers, true)
	if err != nil {
		return Result{}, err
	}
	keys := keysOf("mostly", keyCount)
	inside := make([]atomic.Int32, keyCount)
	randoms, choices := make([]*rand.Rand, callers), make([]*rand.Zipf, callers)
	for i := range choices {
		randoms[i] = rand.New(rand.NewPCG(uint64(i), 1))
		choices[i] = rand.NewZipf(randoms[i], s, 1, keyCount-1)
	}
	var l loop
	return l.run(ctx, callers, r.Duration, func(ctx context.Context, i, _ int) error {
		k := int(choices[i].Uint64())
		at := k % count
		if randoms[i].Float64() < elsewhere {
			at = (at + 1 + randoms[i].IntN(count-1)) % count
		}
		began := time.Now()
		hold, err := lockers[i*count+at].Lock(ctx, keys[k])
		took := time.Since(began)
		if err != nil {
			return err
		}
		if inside[k].Add(1) != 1 {
			return fmt.Errorf("two hold %s at once", keys[k])
		}
		inside[k].Add(-1)
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
		l.done(took)
		return nil
	})
}

// turns3 runs one caller that locks one key on three instances in turn.
func turns3(ctx context.Context, r *Run) (Result, error) {
	callers, err := callersOf(ctx, r.Cluster, len(r.Cluster.Instances()), false)
	if err != nil {
		return Result{}, err
	}
	var l loop
	return l.run(ctx, 1, r.Duration, func(ctx context.Context, _, turn int) error {
		return l.pair(ctx, callers[turn%len(callers)], "turns")
	})
}

// recall measures Lock on an instance after another instance has locked and unlocked the key
// several times. The lock is free. Only the first Lock of each instance is measured.
func recall(ctx context.Context, r *Run) (Result, error) {
	const pairs = 8 // enough to be worth keeping the lock
	callers, err := callersOf(ctx, r.Cluster, len(r.Cluster.Instances()), false)
	if err != nil {
		return Result{}, err
	}
	var l loop
	return l.run(ctx, 1, r.Duration, func(ctx context.Context, _, turn int) error {
		by := callers[turn%len(callers)]
		if err := l.pair(ctx, by, "recall"); err != nil {
			return err
		}
		for range pairs - 1 {
			hold, err := by.Lock(ctx, "recall")
			if err == nil {
				err = hold.Unlock(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
