package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

type patient struct {
	locker.Local
	mu    sync.Mutex
	err   error
	hang  bool
	calls int
}

func (p *patient) set(err error, hang bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.hang = err, hang
}

func (p *patient) Do(ctx context.Context, key string, fn func(context.Context, locker.Token) error) error {
	p.mu.Lock()
	p.calls++
	err, hang := p.err, p.hang
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return fmt.Errorf("patient: %w", ended(ctx))
	}
	if err != nil {
		return err
	}
	return p.Local.Do(ctx, key, fn)
}

// breakerBench is a Breaker that opens for a minute after 3 failures, with a wait limit of a
// second. A test can make its Locker fail.
type breakerBench struct {
	*Breaker
	under   *patient
	changes []Change
	ways    []string // the result of Via in the last call that ran
}

func newBreakerBench(t *testing.T, fallback locker.Locker) *breakerBench {
	b := &breakerBench{under: new(patient)}
	breaker, err := NewBreaker(BreakerConfig{
		Locker: b.under, Wait: time.Second, Failures: 3, Pause: time.Minute, Fallback: fallback,
		OnChange: func(c Change) { b.changes = append(b.changes, c) },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Breaker = breaker
	return b
}

func (b *breakerBench) call(ctx context.Context) error {
	b.ways = nil
	return b.Do(ctx, "k", func(ctx context.Context, _ locker.Token) error { b.ways = Via(ctx); return nil })
}

func (b *breakerBench) open(t *testing.T) {
	t.Helper()
	b.under.set(errors.New("down"), false)
	for range 3 {
		_ = b.call(t.Context())
	}
	if b.State() != Open {
		t.Fatalf("after 3 failures the state is %v", b.State())
	}
}

func TestBreakerStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, nil)
		down := errors.New("down")
		step := func(what string, wantErr error, wantState State, wantCalls int) {
			t.Helper()
			before := b.under.calls
			err := b.call(t.Context())
			if !errors.Is(err, wantErr) || b.State() != wantState || b.under.calls-before != wantCalls {
				t.Errorf("%s: %v, state %v, the Locker was asked %d times; want %v, %v, %d", what, err, b.State(),
					b.under.calls-before, wantErr, wantState, wantCalls)
			}
		}
		step("healthy", nil, Closed, 1)
		b.under.set(down, false)
		step("first failure", down, Closed, 1)
		step("second failure", down, Closed, 1)
		b.under.set(nil, false)
		step("a success begins the row anew", nil, Closed, 1)
		b.under.set(nil, true)
		step("first failure, by the wait limit", ErrWait, Closed, 1)
		step("second failure", ErrWait, Closed, 1)
		step("third failure", ErrWait, Open, 1)
		step("open", ErrOpen, Open, 0)
		time.Sleep(time.Minute - 1)
		step("still open", ErrOpen, Open, 0)
		time.Sleep(1)
		step("the probe fails", ErrWait, Open, 1)
		step("open again", ErrOpen, Open, 0)
		time.Sleep(time.Minute)
		b.under.set(nil, false)
		step("the probe succeeds", nil, Closed, 1)
		b.under.set(down, false)
		step("the count is new", down, Closed, 1)

		var walk []string
		for i, c := range b.changes {
			walk = append(walk, c.To.String())
			if c.Number != uint64(i+1) || (c.Cause != nil) != (c.To == Open) {
				t.Errorf("change %d is %+v", i+1, c)
			}
		}
		if got := strings.Join(walk, " "); got != "open half-open open half-open closed" {
			t.Errorf("the states were %s", got)
		}
	})
}

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, nil)
		b.open(t)
		time.Sleep(time.Minute)
		b.under.set(nil, true)
		b.under.calls = 0
		var refused int
		var mu sync.Mutex
		for range 100 {
			go func() {
				if err := b.Do(t.Context(), "k", nothing); errors.Is(err, ErrOpen) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}()
		}
		synctest.Wait()
		if b.under.calls != 1 || refused != 99 || b.State() != HalfOpen {
			t.Errorf("%d probes, %d refused, state %v", b.under.calls, refused, b.State())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if b.State() != Open {
			t.Errorf("after the probe the state is %v", b.State())
		}
	})
}

// The call that opens the breaker, and a probe that fails, use the Fallback.
func TestBreakerFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var local locker.Local
		b := newBreakerBench(t, &local)
		if err := b.call(t.Context()); err != nil || !slices.Equal(b.ways, []string{Primary}) {
			t.Errorf("healthy: %v, via %v", err, b.ways)
		}
		b.under.set(nil, true)
		for i, want := range [][]string{nil, nil, {Fallback}, {Fallback}} {
			if err := b.call(t.Context()); !slices.Equal(b.ways, want) || (err == nil) != (want != nil) {
				t.Errorf("call %d: %v, via %v, want %v", i, err, b.ways, want)
			}
		}
		time.Sleep(time.Minute)
		if err := b.call(t.Context()); err != nil || !slices.Equal(b.ways, []string{Fallback}) || b.State() != Open {
			t.Errorf("a probe that fails: %v, via %v, state %v", err, b.ways, b.State())
		}
		time.Sleep(time.Minute)
		b.under.set(nil, false)
		if err := b.call(t.Context()); err != nil || !slices.Equal(b.ways, []string{Primary}) || b.State() != Closed {
			t.Errorf("a probe that succeeds: %v, via %v, state %v", err, b.ways, b.State())
		}
	})
}

func TestBreakerDoesNotCount(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, b *breakerBench) error{
		"an error of fn": func(t *testing.T, b *breakerBench) error {
			return b.Do(t.Context(), "k", func(context.Context, locker.Token) error { return locker.ErrNotReady })
		},
		"a loss of the lock": func(t *testing.T, b *breakerBench) error {
			return b.Do(t.Context(), "k", func(context.Context, locker.Token) error { return locker.ErrLost })
		},
		"a panic of fn": func(t *testing.T, b *breakerBench) (err error) {
			defer func() { err = fmt.Errorf("%v", recover()) }()
			return b.Do(t.Context(), "k", func(context.Context, locker.Token) error { panic("fn") })
		},
		"a bad key":      func(t *testing.T, b *breakerBench) error { return b.Do(t.Context(), "", nothing) },
		"a deadlock":     refuses(locker.ErrDeadlock),
		"a full queue":   refuses(locker.ErrQueueFull),
		"an overload":    refuses(locker.ErrOverloaded),
		"a held lock":    refuses(locker.ErrHeld),
		"an old service": refuses(locker.ErrUnsupported),
		"a closed node":  refuses(locker.ErrClosed),
		"a leaving node": refuses(locker.ErrLeaving),
		"a caller's impatience": func(t *testing.T, b *breakerBench) error {
			b.under.set(nil, true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			return b.call(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreakerBench(t, new(locker.Local))
				for range 10 {
					b.under.set(nil, false)
					if err := call(t, b); err == nil || b.ways != nil || b.State() != Closed {
						t.Fatalf("returned %v, via %v, state %v, want an error, no fallback, closed", err, b.ways,
							b.State())
					}
				}
				b.open(t)
				time.Sleep(time.Minute)
				b.under.set(nil, false)
				if b.ways = nil; call(t, b) == nil || b.ways != nil {
					t.Errorf("as a probe it went to the fallback: %v", b.ways)
				}
				b.under.set(nil, false)
				if err := b.call(t.Context()); err != nil || b.State() != Closed ||
					!slices.Equal(b.ways, []string{Primary}) {
					t.Errorf("after it as a probe: %v, state %v, via %v, want the next call to close the breaker",
						err, b.State(), b.ways)
				}
			})
		})
	}
}

func refuses(err error) func(*testing.T, *breakerBench) error {
	return func(t *testing.T, b *breakerBench) error {
		b.under.set(err, false)
		return b.call(t.Context())
	}
}

// A call counts as a success when fn begins. A panic of the Locker counts as a failure.
func TestBreakerCountsAtTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, nil)
		b.open(t)
		time.Sleep(time.Minute)
		b.under.set(nil, false)
		free := holdUntil(t, b, "k")
		if b.State() != Closed {
			t.Errorf("while the work of the probe runs the state is %v", b.State())
		}
		time.Sleep(time.Hour) // far longer than the wait limit
		if err := free(); err != nil {
			t.Error(err)
		}

		thrown := 0
		b.config.Locker = locker.Func(func(context.Context, string,
			func(context.Context, locker.Token) error) error {
			panic("locker")
		})
		for range 3 {
			func() {
				defer func() { recover(); thrown++ }()
				_ = b.call(t.Context())
			}()
		}
		if thrown != 3 || b.State() != Open {
			t.Errorf("after %d panics of the Locker the state is %v", thrown, b.State())
		}
	})
}

func TestBreakerIgnoresStaleResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, nil)
		b.under.set(nil, true)
		go b.Do(t.Context(), "k", nothing) // fails after a second
		synctest.Wait()
		b.open(t)
		b.under.set(nil, false)
		b.config.Pause, b.circuit.until = 0, time.Now()
		if err := b.call(t.Context()); err != nil || b.State() != Closed {
			t.Fatalf("%v, state %v", err, b.State())
		}
		b.circuit.failures = 1
		time.Sleep(2 * time.Second)
		if b.State() != Closed {
			t.Errorf("a failure from before made the state %v", b.State())
		}
	})
}

// In this test, the lock is granted at the moment when the wait limit passes. Either fn runs
// with a context that has not ended, or the lock is released and fn never runs.
func TestWaitLimitCrossesGrant(t *testing.T) {
	ran, gaveUp := 0, 0
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1))
			var under locker.Local
			b, err := NewBreaker(BreakerConfig{Locker: &under, Wait: time.Second, Failures: 1000})
			if err != nil {
				t.Fatal(err)
			}
			go under.Do(t.Context(), "k", func(context.Context, locker.Token) error {
				time.Sleep(time.Second + time.Duration(chance.IntN(3)-1)*time.Nanosecond)
				return nil
			})
			synctest.Wait()
			here := 0
			err = b.Do(t.Context(), "k", func(ctx context.Context, _ locker.Token) error {
				here++
				time.Sleep(time.Minute)
				return ctx.Err()
			})
			if here == 1 && err != nil || here == 0 && !errors.Is(err, ErrWait) || here > 1 ||
				errors.Is(err, context.Canceled) {
				t.Errorf("seed %d: the function ran %d times, and Do returned %v", seed, here, err)
			}
			time.Sleep(time.Second) // the first holder may get the lock after this call
			synctest.Wait()
			if !free(t, &under, "k") {
				t.Errorf("seed %d: the lock was not given back", seed)
			}
			ran += here
			gaveUp += 1 - here
		})
	}
	if ran < 30 || gaveUp < 30 {
		t.Errorf("ran %d times, gave up %d times: the test does not see the crossing", ran, gaveUp)
	}
}

func TestBreakerThatOpensMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, ran, own := 0, 0, errors.New("own")
		b := newBreakerBench(t, locker.Func(func(ctx context.Context, _ string,
			fn func(context.Context, locker.Token) error) error {
			asked++
			return fn(ctx, 1)
		}))
		err := b.Do(t.Context(), "k", func(context.Context, locker.Token) error {
			ran++
			b.open(t)
			return own
		})
		if err != own || ran != 1 {
			t.Errorf("the function ran %d times, and Do returned %v", ran, err)
		}
		time.Sleep(time.Minute)
		b.under.set(nil, false)
		if err := b.call(t.Context()); err != nil || b.State() != Closed {
			t.Fatalf("%v, state %v", err, b.State())
		}

		b.under.set(nil, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		gone := make(chan error, 1)
		go func() { gone <- b.Do(ctx, "k", nothing) }()
		synctest.Wait()
		b.open(t)
		before := asked
		if err := <-gone; !errors.Is(err, context.DeadlineExceeded) || asked != before {
			t.Errorf("the caller has gone: %v, and the fallback was asked %d times", err, asked-before)
		}
	})
}

// A tripped breaker stays open although the Locker works and the Pause is over, until Reset. The
// result of a call that began before does not close it.
func TestTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreakerBench(t, new(locker.Local))
		b.Reset() // has no effect
		b.under.set(nil, true)
		early := make(chan error)
		go func() { early <- b.Do(t.Context(), "k", func(context.Context, locker.Token) error { return nil }) }()
		synctest.Wait()
		b.Trip("maintenance")
		b.under.set(nil, false)
		for range 3 {
			if err := b.call(t.Context()); err != nil || !slices.Equal(b.ways, []string{Fallback}) || b.State() != Open {
				t.Fatalf("via %v, %v, state %v", b.ways, err, b.State())
			}
			time.Sleep(time.Hour)
		}
		if err := <-early; err != nil {
			t.Errorf("the call that began before: %v", err)
		}
		b.Trip("it takes longer")
		b.Reset()
		if err := b.call(t.Context()); err != nil || !slices.Equal(b.ways, []string{Primary}) || b.State() != Closed {
			t.Errorf("after Reset: via %v, %v, state %v", b.ways, err, b.State())
		}
		var told []string
		for _, c := range b.changes {
			told = append(told, fmt.Sprint(c.Number, " ", c.From, " ", c.To, " ", c.Cause))
		}
		want := []string{"1 closed open mortisepair: the breaker was tripped: maintenance",
			"2 open open mortisepair: the breaker was tripped: it takes longer", "3 open closed <nil>"}
		if !slices.Equal(told, want) {
			t.Errorf("it told %q", told)
		}
	})
}
