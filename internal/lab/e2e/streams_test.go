package e2e

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/transport"
)

func TestAllSessionsAreToldOfALostStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler)},
			outside.World{Clock: clock.Monotonic()})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		if _, err := n.NewSession(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for _, c := range n.Clients() {
			before := c.Status().Renewed
			n.Handler.Down(transport.Identity{Instance: n.ID()}, nil)
			time.Sleep(100 * time.Millisecond)
			if after := c.Status().Renewed; after == before {
				t.Errorf("a session of %v has not attached again", c.Status().TTL)
			}
		}
	})
}
