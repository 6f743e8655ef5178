package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type loop struct {
	measuring atomic.Bool // after the warm-up
	stopping  atomic.Bool // callers must not start another call
	latency   histogram
	origin    time.Time
	failure   atomic.Pointer[error]
}

func (l *loop) done(d time.Duration) {
	if l.measuring.Load() {
		l.latency.add(d)
	}
}

// now returns the time since the start. It costs half as much as time.Now.
func (l *loop) now() time.Duration { return time.Since(l.origin) }

// fail stops all callers. Only the first error is kept.
func (l *loop) fail(err error) {
	l.failure.CompareAndSwap(nil, &err)
	l.stopping.Store(true)
}

// run starts a goroutine with its own context for each i below callers. Each goroutine repeats
// call(i, turn) during a warm-up and then for the duration. run returns when all calls have
// returned.
func (l *loop) run(ctx context.Context, callers int, duration time.Duration,
	call func(ctx context.Context, i, turn int) error) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*duration+30*time.Second)
	defer cancel()
	l.origin = time.Now()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(ctx) // callers would contend for the mutex of a shared context
			defer cancel()
			for turn := 0; !l.stopping.Load(); turn++ {
				if err := call(ctx, i, turn); err != nil {
					l.fail(err)
					return
				}
			}
		})
	}
	time.Sleep(min(duration/2, 500*time.Millisecond))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := used(syscall.RUSAGE_SELF), time.Now()
	l.measuring.Store(true)
	time.Sleep(duration)
	l.measuring.Store(false)
	took := time.Since(began)
	cpu = used(syscall.RUSAGE_SELF) - cpu
	runtime.ReadMemStats(&after)
	l.stopping.Store(true)
	all.Wait()
	if err := l.failure.Load(); err != nil {
		return Result{}, *err
	}
	pairs := float64(l.latency.count())
	if pairs == 0 {
		return Result{}, errors.New("not one pair was completed")
	}
	return Result{
		Rate: pairs / took.Seconds(), P50: l.latency.quantile(0.5), P99: l.latency.quantile(0.99),
		CPU: time.Duration(float64(cpu) / pairs), Allocs: float64(after.Mallocs-before.Mallocs) / pairs, Took: took,
	}, nil
}

func callersOf(ctx context.Context, c Cluster, n int, shared bool) ([]Locker, error) {
	return callersOn(ctx, c.Instances(), n, shared)
}

func callersOn(ctx context.Context, instances []Instance, n int, shared bool) ([]Locker, error) {
	callers := make([]Locker, n)
	const atOnce = 64 // some peers open a session for each caller
	err := together(min(n, atOnce), func(from int) (err error) {
		for i := from; i < n && err == nil; i += atOnce {
			callers[i], err = instances[i%len(instances)].Caller(ctx, shared)
		}
		return err
	})
	return callers, err
}
