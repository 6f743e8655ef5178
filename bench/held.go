package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// held takes n locks, or as many as r.patience allows, and then unlocks them. The measured heap is
// that of this process. It contains the handles, and the replicas if this process runs them.
func held(ctx context.Context, r *Run) (Result, error) {
	n := r.scaled(100_000)
	callers, err := callersOf(ctx, r.Cluster, len(r.Cluster.Instances()), false)
	if err != nil {
		return Result{}, err
	}
	keys := keysOf("held", n)
	holds := make([]Hold, n)
	before := heap()
	began := time.Now()
	var taken atomic.Int64
	err = inParallel(n, func(i int) (err error) {
		if time.Since(began) > r.patience() {
			return nil
		}
		if holds[i], err = callers[i%len(callers)].Lock(ctx, keys[i]); err == nil {
			taken.Add(1)
		}
		return err
	})
	took := time.Since(began)
	if err != nil {
		return Result{}, err
	}
	grown := heap() - before
	count := float64(taken.Load())
	result := Result{Rate: count / took.Seconds(), Count: count, Took: took, Heap: float64(grown) / count}
	return result, inParallel(n, func(i int) error {
		if holds[i] == nil {
			return nil
		}
		return holds[i].Unlock(ctx)
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the first collection does not free the contents of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// inParallel calls do(i) for every i below n, 1,024 calls at a time, until the first error.
func inParallel(n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	return together(1024, func(int) error {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				break
			}
			if err := do(i); err != nil {
				failed.Store(true)
				return err
			}
		}
		return nil
	})
}
