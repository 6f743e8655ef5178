package client

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// A client that asks for a TTL that a group can have is told that it gets a shorter one. A longer
// one means the TTL of the group, whatever it is.
func TestTheWarningOfAShorterLease(t *testing.T) {
	for ttl, warnings := range map[time.Duration]int{worldTTL: 0, worldTTL + 1: 1, LongestTTL: 1, LongestTTL + 1: 0,
		1 << 62: 0} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 0, nodeidtest.ID(1))
			w.elect(nodeidtest.ID(1))
			id, log := nodeidtest.ID(100), &bytes.Buffer{}
			c := New(Config{
				Clock: w.clock, TTL: ttl, Random: func(b []byte) { rand.Read(b) },
				Send: func(to nodeid.Endpoint, renewals, commands []byte) error {
					return w.send(id, to.ID, renewals, commands)
				},
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			w.mu.Lock()
			w.clients[id] = c
			w.mu.Unlock()
			c.Rebind([]byte{1}, []nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
			if err := c.WaitAttached(t.Context()); err != nil {
				t.Error(err)
			}
			got := c.Status().TTL
			w.close()
			if n := strings.Count(log.String(), "shorter lease"); n != warnings || got != worldTTL {
				t.Errorf("%v: %d warnings, want %d; the TTL is %v", ttl, n, warnings, got)
			}
		})
	}
}
