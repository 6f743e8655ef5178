package mortisecollector

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestEveryInput(t *testing.T) {
	start := func(t *testing.T, configure func(*Config)) error {
		h := newHost(t, NewFactory(), func(c component.Config) { configure(c.(*Config)) })
		defer h.shutDown(t)
		return h.elector().Start(t.Context(), nil)
	}
	limits.Trials{
		Durations: map[string]func(*testing.T, time.Duration){
			"Config.SessionTTL": func(t *testing.T, d time.Duration) {
				limits.Refused(t, start(t, func(c *Config) { c.SessionTTL = d }), "SessionTTL")
			},
		},
		Counts: map[string]limits.Count{
			"Config.Replicas": {Limit: 16, Names: "Replicas", Try: func(t *testing.T, n int64) error {
				return start(t, func(c *Config) {
					c.Replicas, c.Bind, c.Join = int(n), "127.0.0.1:0", []string{"127.0.0.1:1"}
				})
			}},
		},
	}.Run(t, ".")
}
