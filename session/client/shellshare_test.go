package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// TestShellReleaseIsShared checks that all calls of Release for one hold return the same error.
// They wait on one channel, which is reused. No signal may stay in it, because a later Acquire
// would take the signal for a grant.
func TestShellReleaseIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for round := range 200 {
			h := w.lock(nodeidtest.ID(100), "x")
			var all sync.WaitGroup
			for i := range round % 5 {
				all.Go(func() {
					ctx := t.Context()
					if (round/5+i)%3 == 0 {
						ctx = gone
					}
					if err := h.Release(ctx); err != nil && (ctx != gone || !errors.Is(err, context.Canceled)) {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			if round%7 == 0 {
				if err := h.ReleaseSoon(); err != nil {
					t.Errorf("round %d: soon: %v", round, err)
				}
			}
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			all.Wait()
			if err := h.Release(gone); err != nil {
				t.Errorf("round %d: it is over, and says %v", round, err)
			}
			for range 10 {
				slot := w.clients[nodeidtest.ID(100)].slot()
				if len(slot) > 0 {
					t.Fatalf("round %d: a slot with a token in it", round)
				}
				defer w.clients[nodeidtest.ID(100)].slots.Put(slot)
			}
		}
	})
}
