package mortisepair

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

func TestConfigurationsTellAllMistakes(t *testing.T) {
	made := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string // the fields with mistakes; "" for no mistake
	}{
		{made(NewBreaker(BreakerConfig{})), "Locker Wait"},
		{made(NewBreaker(BreakerConfig{Locker: new(locker.Local), Wait: 1})), ""},
		{made(NewBreaker(BreakerConfig{Wait: -1, Failures: -1, Pause: -1})), "Locker Wait Failures Pause"},
		{made(NewBoth(BothConfig{})), "First Second Authority"},
		{made(NewBoth(BothConfig{First: new(locker.Local), Second: new(locker.Local), Authority: SecondLock})), ""},
		{made(NewBoth(BothConfig{Authority: SecondLock, Observe: true, Wait: -1})),
			"First Second Authority OnSecond Wait"},
		{made(NewBoth(BothConfig{First: new(locker.Local), Second: new(locker.Local), Authority: FirstLock, Wait: 1})),
			"Observe"},
	} {
		var fields []string
		if c.err != nil {
			for _, line := range strings.Split(c.err.Error(), "\n")[1:] {
				field, _, _ := strings.Cut(line, ":")
				fields = append(fields, field)
			}
		}
		if got := strings.Join(fields, " "); got != c.want || (c.err == nil) != (c.want == "") {
			t.Errorf("complains of %q, want %q: %v", got, c.want, c.err)
		}
	}
}

// TestTheWholeConfiguration sets each field of a configuration at its limits, and compares what is
// made of it, or the whole refusal.
func TestTheWholeConfiguration(t *testing.T) {
	l, other := new(locker.Local), new(locker.Local)
	head := func(mistakes ...string) string {
		return fmt.Sprintf("mortisepair: the configuration has %d mistake(s):\n%s", len(mistakes),
			strings.Join(mistakes, "\n"))
	}
	for _, c := range []struct {
		given, want BreakerConfig
		wrong       string
	}{
		{BreakerConfig{Locker: l, Wait: 1}, BreakerConfig{Locker: l, Wait: 1, Failures: 5, Pause: 10 * time.Second}, ""},
		{BreakerConfig{Locker: l, Wait: time.Hour, Failures: 1, Pause: 1, Fallback: other},
			BreakerConfig{Locker: l, Wait: time.Hour, Failures: 1, Pause: 1, Fallback: other}, ""},
		{BreakerConfig{Locker: l, Wait: 2, Failures: 1_000_000, Pause: math.MaxInt64},
			BreakerConfig{Locker: l, Wait: 2, Failures: 1_000_000, Pause: math.MaxInt64}, ""},
		{BreakerConfig{Locker: l, Wait: 2, Failures: 1_000_001}, BreakerConfig{},
			head("Failures: 1000001 is not between 1 and 1000000")},
		{BreakerConfig{Locker: l, Wait: 2, Failures: -1}, BreakerConfig{},
			head("Failures: -1 is not between 1 and 1000000")},
		{BreakerConfig{Locker: l, Wait: 2, Pause: -1}, BreakerConfig{}, head("Pause: -1ns is negative")},
		{BreakerConfig{Wait: 2}, BreakerConfig{}, head("Locker: is missing")},
		{BreakerConfig{Fallback: l, Wait: -1}, BreakerConfig{}, head("Locker: is missing", "Wait: -1ns is not above 0: "+
			"set how long a lock may take, longer than the longest wait in a healthy queue")},
	} {
		b, err := NewBreaker(c.given)
		if c.wrong != "" {
			if b != nil || err == nil || err.Error() != c.wrong {
				t.Errorf("%+v: %v, want %s", c.given, err, c.wrong)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(b.config, c.want) ||
			b.circuit != (circuit{failures: c.want.Failures, pause: c.want.Pause}) {
			t.Errorf("%+v: %+v, %v", c.given, b, err)
		}
	}
	tell := func(string, error) {}
	for _, c := range []struct {
		given BothConfig
		wait  time.Duration
		wrong string
	}{
		{BothConfig{First: l, Second: other, Authority: FirstLock}, time.Second, ""},
		{BothConfig{First: l, Second: other, Authority: SecondLock}, time.Second, ""},
		{BothConfig{First: l, Second: other, Authority: FirstLock, Observe: true, OnSecond: tell}, time.Second, ""},
		{BothConfig{First: l, Second: other, Authority: FirstLock, Observe: true, OnSecond: tell, Wait: 1}, 1, ""},
		{BothConfig{First: l, Authority: FirstLock}, 0, head("Second: is missing")},
		{BothConfig{Second: l, Authority: FirstLock}, 0, head("First: is missing")},
		{BothConfig{First: l, Second: other}, 0, head("Authority: 0 is neither FirstLock nor SecondLock")},
		{BothConfig{First: l, Second: other, Authority: 3}, 0, head("Authority: 3 is neither FirstLock nor SecondLock")},
		{BothConfig{First: l, Second: other, Authority: SecondLock, Observe: true, OnSecond: tell}, 0,
			head("Authority: SecondLock cannot be combined with Observe, under which Second may give no token")},
		{BothConfig{First: l, Second: other, Authority: FirstLock, Observe: true}, 0,
			head("OnSecond: is missing with Observe: it receives the errors of Second")},
		{BothConfig{First: l, Second: other, Authority: FirstLock, OnSecond: tell}, 0, head(unobserved)},
		{BothConfig{First: l, Second: other, Authority: FirstLock, Wait: 1}, 0, head(unobserved)},
		{BothConfig{First: l, Second: other, Authority: FirstLock, Observe: true, OnSecond: tell, Wait: -1}, 0,
			head("Wait: -1ns is negative")},
	} {
		b, err := NewBoth(c.given)
		if c.wrong != "" {
			if b != nil || err == nil || err.Error() != c.wrong {
				t.Errorf("%+v: %v, want %s", c.given, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.given, err)
			continue
		}
		got, want := b.config, c.given
		want.Wait = c.wait
		if (got.OnSecond == nil) != (want.OnSecond == nil) {
			t.Errorf("%+v: %+v", c.given, got)
		}
		if got.OnSecond, want.OnSecond = nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v", c.given, got)
		}
	}
}

const unobserved = "Observe: is false, but OnSecond or Wait is set: without Observe, Do returns the errors of " +
	"Second, and the caller's context limits the wait"

func TestUnmadeWrappersSaySo(t *testing.T) {
	for kind, l := range map[string]locker.Locker{"Breaker": new(Breaker), "Both": new(Both)} {
		if err := l.Do(t.Context(), "k", nothing); err == nil ||
			!strings.Contains(err.Error(), "was not made by New"+kind) {
			t.Errorf("an unmade %s returns %v", kind, err)
		}
	}
}
