package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// handover runs n callers that all lock one key. The measured time begins when one holder calls
// Unlock and ends when Lock returns to the next holder. The workload fails if two callers hold the
// key at the same time.
func handover(n int) func(ctx context.Context, r *Run) (Result, error) {
	return handoverOn(membersOf, n)
}

// handoverOn is like handover, but all callers are on the first instances.
func handoverOn(instances, n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		callers, err := callersOn(ctx, r.Cluster.Instances()[:instances], n, true)
		if err != nil {
			return Result{}, err
		}
		var l loop
		var inside, unlocking atomic.Int64
		began := time.Now()
		turns := make([]int64, n) // each caller writes only its own element
		result, err := l.run(ctx, n, r.Duration, func(ctx context.Context, i, _ int) error {
			hold, err := callers[i].Lock(ctx, "handover")
			if err != nil {
				return err
			}
			if inside.Add(1) != 1 {
				return errors.New("two hold the lock at once")
			}
			now := time.Since(began)
			if last := unlocking.Load(); last != 0 {
				l.done(now - time.Duration(last))
			}
			if l.measuring.Load() {
				turns[i]++
			}
			inside.Add(-1)
			unlocking.Store(int64(time.Since(began)))
			return hold.Unlock(ctx)
		})
		result.Least, result.Most = float64(slices.Min(turns)), float64(slices.Max(turns))
		return result, err
	}
}

// waiters measures a long queue: one caller holds the key while all other callers enter the queue,
// and then each of these callers holds the key once.
func waiters(ctx context.Context, r *Run) (Result, error) {
	n := r.scaled(10_000)
	callers, err := callersOf(ctx, r.Cluster, n+1, true)
	if err != nil {
		return Result{}, err
	}
	first, err := callers[n].Lock(ctx, "waiters")
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var inside, served, began atomic.Int64
	var latency histogram
	clock := time.Now()
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- together(n, func(i int) error {
			hold, err := callers[i].Lock(ctx, "waiters")
			if err != nil {
				return err
			}
			if inside.Add(1) != 1 {
				return errors.New("two hold the lock at once")
			}
			now := int64(time.Since(clock))
			latency.add(time.Duration(now - began.Swap(now)))
			served.Add(1)
			runtime.Gosched() // lets another caller lock the key
			inside.Add(-1)
			return hold.Unlock(ctx)
		})
	}()
	time.Sleep(2 * time.Second) // until all are in the queue; no call can report that
	start := time.Now()
	began.Store(int64(time.Since(clock)))
	if err := first.Unlock(ctx); err != nil {
		return Result{}, err
	}
	select {
	case err = <-ended:
	case <-time.After(r.patience()):
	}
	took, count := time.Since(start), float64(served.Load())
	if err != nil {
		return Result{}, err
	}
	cancel()
	select { // the calls of some peers ignore the context
	case <-ended:
	case <-time.After(5 * time.Second):
	}
	return Result{Rate: count / took.Seconds(), Count: count, Took: took, P50: latency.quantile(0.5),
		P99: latency.quantile(0.99)}, nil
}
