package mortisepair_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/adapters/mortisepair"
	"github.com/mortise-lock/mortise/locker"
)

var longTimes = []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2, 150 * 365 * 24 * time.Hour}

// The longest Wait must not end a wait of a day.
func TestLongWaits(t *testing.T) {
	for name, with := range map[string]func(l locker.Locker, d time.Duration) (locker.Locker, error){
		"BothConfig.Wait": func(l locker.Locker, d time.Duration) (locker.Locker, error) {
			return mortisepair.NewBoth(mortisepair.BothConfig{First: &locker.Local{}, Second: l,
				Authority: mortisepair.FirstLock, Observe: true, OnSecond: func(string, error) {}, Wait: d})
		},
		"BreakerConfig.Wait": func(l locker.Locker, d time.Duration) (locker.Locker, error) {
			return mortisepair.NewBreaker(mortisepair.BreakerConfig{Locker: l, Wait: d})
		},
	} {
		for _, d := range longTimes {
			synctest.Test(t, func(t *testing.T) {
				local := &locker.Local{}
				l, err := with(local, d)
				if err != nil {
					t.Fatal(err)
				}
				go local.Do(t.Context(), "k", func(context.Context, locker.Token) error {
					time.Sleep(24 * time.Hour)
					return nil
				})
				synctest.Wait()
				began := time.Now()
				err = l.Do(t.Context(), "k", func(context.Context, locker.Token) error { return nil })
				if waited := time.Since(began); err != nil || waited != 24*time.Hour {
					t.Errorf("%s %v: after %v: %v", name, d, waited, err)
				}
			})
		}
	}
}

// The longest Pause must not end after a day.
func TestLongPauses(t *testing.T) {
	for _, d := range longTimes {
		synctest.Test(t, func(t *testing.T) {
			broken, calls := errors.New("broken"), 0
			b, err := mortisepair.NewBreaker(mortisepair.BreakerConfig{Wait: time.Second, Failures: 1, Pause: d,
				Locker: locker.Func(func(context.Context, string, func(context.Context, locker.Token) error) error {
					calls++
					return broken
				})})
			if err != nil {
				t.Fatal(err)
			}
			for want := broken; ; want = mortisepair.ErrOpen {
				if err := b.Do(t.Context(), "k", nil); !errors.Is(err, want) || calls != 1 {
					t.Fatalf("with %v: call %d: %v, want %v", d, calls, err, want)
				}
				if want == mortisepair.ErrOpen {
					return
				}
				time.Sleep(24 * time.Hour)
			}
		})
	}
}
