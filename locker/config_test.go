package locker

import (
	"strings"
	"testing"
	"time"
)

func TestConfigurationsTellAllMistakes(t *testing.T) {
	made := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string // the fields with mistakes; "" for no mistake
	}{
		{made(NewRetry(RetryConfig{})), "Locker"},
		{made(NewRetry(RetryConfig{Locker: new(Local)})), ""},
		{made(NewRetry(RetryConfig{Locker: new(Local), Pause: time.Minute})), ""},
		{made(NewRetry(RetryConfig{Attempts: -1, Pause: 1, MaxPause: 2 * time.Hour})),
			"Locker Attempts Pause MaxPause"},
		{made(NewRetry(RetryConfig{Locker: new(Local), Pause: time.Second, MaxPause: time.Millisecond})), "MaxPause"},
		{made(NewBreaker(BreakerConfig{})), "Locker Wait"},
		{made(NewBreaker(BreakerConfig{Locker: new(Local), Wait: 1})), ""},
		{made(NewBreaker(BreakerConfig{Wait: -1, Failures: -1, Pause: -1})), "Locker Wait Failures Pause"},
		{made(NewBoth(BothConfig{})), "First Second Authority"},
		{made(NewBoth(BothConfig{First: new(Local), Second: new(Local), Authority: SecondLock})), ""},
		{made(NewBoth(BothConfig{Authority: SecondLock, Observe: true, Wait: -1})),
			"First Second Authority OnSecond Wait"},
		{made(NewBoth(BothConfig{First: new(Local), Second: new(Local), Authority: FirstLock, Wait: 1})), "Observe"},
		{made(NewRouter()), "Route"},
		{made(NewRouter(Route{})), "Route[0].Locker Route[0].MaxHolds Route[0].MaxWaiting"},
		{made(NewRouter(Route{"a", new(Local), 1, 1}, Route{"a", new(Local), 1, 1}, Route{"\n", new(Local), 1, 1})),
			"Route[1].Prefix Route[2].Prefix"},
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

func TestUnmadeWrappersSaySo(t *testing.T) {
	for kind, l := range map[string]Locker{"Retry": new(Retry), "Breaker": new(Breaker), "Both": new(Both),
		"Router": new(Router)} {
		if err := l.Do(t.Context(), "k", nothing); err == nil ||
			!strings.Contains(err.Error(), "was not made by New"+kind) {
			t.Errorf("an unmade %s returns %v", kind, err)
		}
	}
}
