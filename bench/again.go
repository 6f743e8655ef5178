package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
)

// The workloads in this file show what sticky locks gain and cost. In most of them a key is locked
// mostly on one instance.

// own runs n callers. Each has a key of its own and always locks it on the same instance.
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
	const callers, keyCount, s, elsewhere = 256, 1000, 1.1, 0.05
	instances := len(r.Cluster.Instances())
	lockers, err := callersOf(ctx, r.Cluster, callers*instances, true)
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
		at := k % instances
		if randoms[i].Float64() < elsewhere {
			at = (at + 1 + randoms[i].IntN(instances-1)) % instances
		}
		return l.pairAlone(ctx, lockers[i*instances+at], keys[k], &inside[k])
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

// recall runs one caller that locks one key on three instances in turn, several times on each. It
// measures the first Lock on each instance. At that time another instance keeps the lock if it is
// sticky.
func recall(ctx context.Context, r *Run) (Result, error) {
	const pairs = 8 // with so many, it is worth keeping the lock
	callers, err := callersOf(ctx, r.Cluster, len(r.Cluster.Instances()), false)
	if err != nil {
		return Result{}, err
	}
	var l loop
	return l.run(ctx, 1, r.Duration, func(ctx context.Context, _, turn int) error {
		by := callers[turn%len(callers)]
		err := l.pair(ctx, by, "recall")
		for range pairs - 1 {
			if err == nil {
				err = lockAndUnlock(ctx, by, "recall")
			}
		}
		return err
	})
}

func lockAndUnlock(ctx context.Context, by Locker, key string) error {
	hold, err := by.Lock(ctx, key)
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}
