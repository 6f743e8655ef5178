package limits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/limits"
	"github.com/mortise-lock/mortise/locker"
)

// waits is the trial of a wait limit: it must not end a wait of a day.
func waits(with func(l locker.Locker, d time.Duration) (locker.Locker, error)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			local := &locker.Local{}
			l, err := with(local, d)
			if err != nil {
				t.Fatal(err)
			}
			held := make(chan struct{})
			go func() {
				_ = local.Do(t.Context(), "k", func(context.Context, mortise.Token) error {
					close(held)
					time.Sleep(24 * time.Hour)
					return nil
				})
			}()
			<-held
			began := time.Now()
			err = l.Do(t.Context(), "k", func(context.Context, mortise.Token) error { return nil })
			if waited := time.Since(began); err != nil || waited != 24*time.Hour {
				t.Errorf("with %v: after %v: %v", d, waited, err)
			}
		})
	}
}

func refusedRetry(field string, c func(d time.Duration) locker.RetryConfig) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		config := c(d)
		config.Locker = &locker.Local{}
		_, err := locker.NewRetry(config)
		limits.Refused(t, err, field)
	}
}

var lockerDurations = map[string]func(*testing.T, time.Duration){
	"locker.BothConfig.Wait": waits(func(l locker.Locker, d time.Duration) (locker.Locker, error) {
		return locker.NewBoth(locker.BothConfig{First: &locker.Local{}, Second: l, Authority: locker.FirstLock,
			Observe: true, OnSecond: func(string, error) {}, Wait: d})
	}),
	"locker.BreakerConfig.Wait": waits(func(l locker.Locker, d time.Duration) (locker.Locker, error) {
		return locker.NewBreaker(locker.BreakerConfig{Locker: l, Wait: d})
	}),
	"locker.PatienceConfig.Shortest": waits(func(l locker.Locker, d time.Duration) (locker.Locker, error) {
		return locker.NewPatience(locker.PatienceConfig{Locker: l, Shortest: d})
	}),
	"locker.PatienceConfig.Longest": waits(func(l locker.Locker, d time.Duration) (locker.Locker, error) {
		p, err := locker.NewPatience(locker.PatienceConfig{Locker: l, Shortest: time.Hour, Longest: d, Holds: 1e300})
		if err == nil { // the average hold of a second leads to a limit above Longest
			err = p.Do(context.Background(), "other", func(context.Context, mortise.Token) error {
				time.Sleep(time.Second)
				return nil
			})
		}
		return p, err
	}),
	"locker.RetryConfig.Pause": refusedRetry("Pause",
		func(d time.Duration) locker.RetryConfig { return locker.RetryConfig{Pause: d} }),
	"locker.RetryConfig.MaxPause": refusedRetry("MaxPause",
		func(d time.Duration) locker.RetryConfig { return locker.RetryConfig{MaxPause: d} }),
	"locker.BreakerConfig.Pause": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			broken := errors.New("broken")
			calls := 0
			b, err := locker.NewBreaker(locker.BreakerConfig{Wait: time.Second, Failures: 1, Pause: d,
				Locker: locker.Func(func(context.Context, string, func(context.Context, mortise.Token) error) error {
					calls++
					return broken
				})})
			if err != nil {
				t.Fatal(err)
			}
			for want := broken; ; want = locker.ErrOpen {
				if err := b.Do(t.Context(), "k", nil); !errors.Is(err, want) || calls != 1 {
					t.Fatalf("with %v: call %d: %v, want %v", d, calls, err, want)
				}
				if want == locker.ErrOpen {
					return
				}
				time.Sleep(24 * time.Hour)
			}
		})
	},
}
