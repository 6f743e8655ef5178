package locker_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

func patience(t *testing.T, c locker.PatienceConfig) *locker.Patience {
	t.Helper()
	return make1[*locker.Patience](t)(locker.NewPatience(c))
}

func holdFor(t *testing.T, l locker.Locker, d time.Duration) error {
	return l.Do(t.Context(), "k", func(context.Context, mortise.Token) error { time.Sleep(d); return nil })
}

func TestPatienceFollowsTheHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience(t, locker.PatienceConfig{Locker: new(locker.Local), Shortest: time.Second, Longest: time.Minute})
		steady := func(hold, want time.Duration) {
			t.Helper()
			for range 100 {
				if err := holdFor(t, p, hold); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.Limit(); got < want-time.Millisecond || got > want {
				t.Errorf("the limit after holds of %v is %v, want %v", hold, got, want)
			}
		}
		if got := p.Limit(); got != time.Second {
			t.Errorf("the first limit is %v", got)
		}
		_ = holdFor(t, p, 2*time.Second)
		if got := p.Limit(); got != 6*time.Second {
			t.Errorf("the limit after one hold of 2s is %v", got)
		}
		steady(10*time.Millisecond, time.Second)
		steady(4*time.Second, 12*time.Second)
		steady(time.Hour, time.Minute)
		unlimited := patience(t, locker.PatienceConfig{Locker: new(locker.Local), Shortest: 1, Holds: math.MaxFloat64})
		_ = holdFor(t, unlimited, time.Hour)
		if got := unlimited.Limit(); got != math.MaxInt64 {
			t.Errorf("the limit overflows to %v", got)
		}
	})
}

// A call waits no longer than the limit. The limit bounds neither fn nor a call whose fn has begun.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience(t, locker.PatienceConfig{Locker: new(locker.Local), Shortest: time.Second})
		done := make(chan error)
		go func() { done <- holdFor(t, p, time.Minute) }()
		synctest.Wait()
		began := time.Now()
		if err := holdFor(t, p, 0); !errors.Is(err, locker.ErrWait) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := <-done; err != nil {
			t.Errorf("a hold beyond the limit: %v", err)
		}
		if got := p.Limit(); got != 3*time.Minute {
			t.Errorf("a call that gave up counts as a hold: the limit is %v", got)
		}
		if err := holdFor(t, p, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestPatienceRefuses(t *testing.T) {
	_, err := locker.NewPatience(locker.PatienceConfig{Holds: math.NaN(), Longest: -1})
	for _, field := range []string{"Locker", "Holds", "Shortest", "Longest"} {
		if err == nil || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s is accepted: %v", field, err)
		}
	}
	if err := new(locker.Patience).Do(t.Context(), "k", nil); err == nil {
		t.Error("a Patience that was not made works")
	}
}
