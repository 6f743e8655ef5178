package mortisepair

import (
	"strings"
	"testing"

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

func TestUnmadeWrappersSaySo(t *testing.T) {
	for kind, l := range map[string]locker.Locker{"Breaker": new(Breaker), "Both": new(Both)} {
		if err := l.Do(t.Context(), "k", nothing); err == nil ||
			!strings.Contains(err.Error(), "was not made by New"+kind) {
			t.Errorf("an unmade %s returns %v", kind, err)
		}
	}
}
