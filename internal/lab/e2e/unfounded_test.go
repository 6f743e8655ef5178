package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestAnEndBeforeTheFoundingIsPrompt ends nodes of a group that is not founded, because a third
// instance is missing. No other instance depends on them, so nothing is worth a wait.
func TestAnEndBeforeTheFoundingIsPrompt(t *testing.T) {
	slow.UnderRace(t)
	ends := map[string]func(n *node) error{
		"Close": func(n *node) error { return n.Close() },
		"Leave": func(n *node) error { return n.Leave(context.Background()) },
		"Leave with a context that has ended": func(n *node) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return n.Leave(ctx)
		},
	}
	for name, end := range ends {
		for _, running := range []int{1, 2} {
			for i, after := range []time.Duration{0, 0, 300 * time.Millisecond, 3 * time.Second, 3 * time.Second,
				20 * time.Second} {
				together := i%2 == 1
				t.Run(fmt.Sprintf("%s of %d after %v, together %v", name, running, after, together), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						f := newFleet(t)
						for i := range running {
							f.start(i, f.config(i, 3))
						}
						time.Sleep(after)
						var all sync.WaitGroup
						for i, n := range f.nodes {
							ended := func() {
								waiting := make(chan error, 1)
								go func() { _, err := n.Lock(t.Context(), "k"); waiting <- err }()
								began := time.Now()
								if err := end(n); err != nil {
									t.Error(err)
								}
								if took := time.Since(began); took > 300*time.Millisecond {
									t.Errorf("node %d ended after %v", i, took)
								}
								<-waiting
							}
							if together {
								all.Go(ended)
							} else {
								ended()
							}
						}
						all.Wait()
					})
				})
			}
		}
	}
}
