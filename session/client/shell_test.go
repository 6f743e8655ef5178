package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestShellLockAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1), nodeidtest.ID(2))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		a := w.lock(nodeidtest.ID(100), "x")
		if a.Key() != "x" || a.Token() == 0 || a.Err() != nil {
			t.Fatalf("%q, token %d, %v", a.Key(), a.Token(), a.Err())
		}
		got := make(chan *Hold)
		go func() {
			h, err := w.clients[nodeidtest.ID(101)].Acquire(context.Background(), "x", false)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		synctest.Wait()
		_, err := w.clients[nodeidtest.ID(101)].Acquire(t.Context(), "x", true)
		var held *HeldError
		if !errors.As(err, &held) || held.Token != a.Token() || held.Waiters != 1 || len(held.Record) != 1 {
			t.Fatalf("try: %v", err)
		}
		done := a.Done()
		for range 2 { // a second Release returns the same result
			if err := a.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		<-a.Done()
		if a.Err() != ErrReleased {
			t.Errorf("after Release: %v", a.Err())
		}
		b := <-got
		if b.Token() <= a.Token() {
			t.Errorf("token %d after %d", b.Token(), a.Token())
		}
		if err := b.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.empty()
	})
}

// TestShellReleaseWithEndedContext checks that ctx limits only the wait.
func TestShellReleaseWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		ended, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		w.elect(nodeidtest.ID(0))
		if err := h.Release(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Fatalf("release: %v", err)
		}
		if h.Err() != ErrReleased {
			t.Errorf("err: %v", h.Err())
		}
		w.elect(nodeidtest.ID(1))
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.empty()
	})
}

func TestShellContextEndsWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		_, err := w.clients[nodeidtest.ID(100)].Acquire(ctx, "x", false)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(before))
		}
		if _, err := w.clients[nodeidtest.ID(100)].Acquire(ctx, "x", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		// ErrNoLeader needs two seconds without a leader, and one of them has passed already.
		before = time.Now()
		if _, err := w.clients[nodeidtest.ID(100)].Acquire(t.Context(), "x", true); err != ErrNoLeader ||
			time.Since(before) > time.Second {
			t.Fatalf("try: %v after %v", err, time.Since(before))
		}
		w.empty()
	})
}
