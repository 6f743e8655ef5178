package mortisetest_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

const startLimit = 2 * time.Second

func TestStartsInRealTime(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			took := time.Hour
			for range 3 { // real time varies; larger clusters are measured in bubbles
				began := time.Now()
				mortisetest.New(t, n)
				if took = time.Since(began); n > 3 || took <= 5*startLimit {
					break
				}
			}
			if t.Logf("%d nodes are ready after %v", n, took); n <= 3 && took > 5*startLimit {
				t.Errorf("%d nodes were ready only after %v", n, took)
			}
		})
	}
}

const largeLimit = 5 * time.Second

// The nodes have a secret, so each connection needs two handshakes. A large cluster would never
// become ready if each node queried all other nodes.
func TestStartsALargeClusterInRealTime(t *testing.T) {
	slow.Nightly(t)
	n := large
	if s := os.Getenv("MORTISE_NODES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	quiet := slog.New(slog.DiscardHandler)
	began := time.Now()
	mortisetest.NewWith(t, n, mortisetest.Options{Configure: func(_ int, c *mortise.Config) {
		c.Secret, c.Logger = "msk1-of-a-test-that-starts-many-nodes-in-one-process", quiet
	}})
	took := time.Since(began)
	t.Logf("%d nodes with a secret are ready after %v", n, took)
	if took > 5*largeLimit { // real time varies: allow five times the limit
		t.Errorf("%d nodes were ready only after %v", n, took)
	}
}

func TestStartsInABubble(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			began := time.Now()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				mortisetest.New(t, n)
				took := time.Since(began)
				t.Logf("%d nodes are ready after %v of fake time", n, took)
				if took > 2*startLimit { // the random delays of the start have no hard limit
					t.Errorf("%d nodes were ready only after %v", n, took)
				}
			})
			t.Logf("%d nodes were started and closed in %v", n, time.Since(began))
		})
	}
}
