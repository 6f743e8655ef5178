package mortisegocron_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/adapters/mortisegocron"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

func TestEveryInput(t *testing.T) {
	limits.Trials{Durations: map[string]func(*testing.T, time.Duration){
		// The longest period has a gap between two ticks that is no time.Duration.
		"Options.Late": func(t *testing.T, d time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				c := mortisetest.New(t, 1)
				for _, every := range []time.Duration{time.Minute, d} {
					l := mortisegocron.NewLocker(c.Node(0), tick.Every(every), mortisegocron.Options{Late: d})
					lock, err := l.Lock(t.Context(), every.String())
					if err != nil {
						t.Fatalf("with a tick every %v: %v", every, err)
					}
					if err := lock.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		},
	}}.Run(t, ".")
}
