package mortisecron_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise/adapters/mortisecron"
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
					jobs, ran := mortisecron.New(c.Node(0), mortisecron.Options{Late: d}), false
					jobs.Once(every.String(), tick.Every(every))(cron.FuncJob(func() { ran = true })).Run()
					if !ran {
						t.Errorf("with a tick every %v the job does not run", every)
					}
				}
			})
		},
	}}.Run(t, ".")
}
