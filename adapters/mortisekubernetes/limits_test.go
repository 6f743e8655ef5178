package mortisekubernetes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise/adapters/mortisekubernetes"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/mortisetest"
)

// A LockDelay has at most 7 days.
func TestEveryInput(t *testing.T) {
	limits.Trials{Durations: map[string]func(*testing.T, time.Duration){
		"Options.LockDelay": func(t *testing.T, d time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				c := mortisetest.New(t, 1)
				l := mortisekubernetes.New(c.Node(0), "k", "a", mortisekubernetes.Options{LockDelay: d})
				limits.Refused(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}), "LockDelay")
			})
		},
	}}.Run(t, ".")
}
