package mortisetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/mortisetest"
)

// This file shows tests of a service. A worker writes to a report while it has the lock, and a
// store compares tokens. The tests check what the worker and the store do when the lock is lost.

// store is the report that the workers write. It refuses a token that is lower than a token that it
// has received.
type store struct {
	mark fence.Mark

	mu      sync.Mutex
	pages   []string // the worker that wrote each page
	refused []string
}

func (s *store) write(ctx context.Context, worker string, token mortise.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mark.Advance(ctx, "reports/daily", token); err != nil {
		s.refused = append(s.refused, worker)
		return err
	}
	s.pages = append(s.pages, worker)
	return nil
}

func (s *store) wrote(worker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.pages, worker)
}

func (s *store) refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// work is the code under test. It writes a page every 100 ms until its context ends or the lock is
// lost.
func work(ctx context.Context, locks locker.Locker, s *store, worker string) error {
	return locks.Do(ctx, "reports/daily", func(ctx context.Context, token mortise.Token) error {
		for ctx.Err() == nil {
			if err := s.write(ctx, worker, token); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		return context.Cause(ctx)
	})
}

// twoWorkers runs a worker on each of two nodes. While the first worker has the lock, twoWorkers
// calls the function happen, which causes the event of the test. When the second worker has
// written, twoWorkers stops it and returns the error of the first worker, and the store.
func twoWorkers(t *testing.T, happen func(cluster *mortisetest.Cluster, first int, s *store)) (error, *store) {
	cluster, s := mortisetest.New(t, 3), new(store)
	first, second := cluster.Follower(), cluster.Leader()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	results := [2]chan error{make(chan error, 1), make(chan error, 1)}
	go func() { results[0] <- work(ctx, cluster.Node(first), s, "first") }()
	cluster.Until("the first worker writes", func() bool { return s.wrote("first") })
	go func() { results[1] <- work(ctx, cluster.Node(second), s, "second") }()
	cluster.Await("reports/daily", 1, 1)

	happen(cluster, first, s)
	cluster.Until("the second worker writes", func() bool { return s.wrote("second") })
	var err error
	select {
	case err = <-results[0]:
	case <-time.After(time.Minute): // fake time
		t.Fatal("the first worker goes on")
	}
	stop()
	if err := <-results[1]; !errors.Is(err, context.Canceled) {
		t.Errorf("the second worker ended with %v", err)
	}
	if turn := slices.Index(s.pages, "second"); slices.Contains(s.pages[turn:], "first") {
		t.Errorf("the first one's page came after the second one's: %v", s.pages)
	}
	return err, s
}

// When its context ends, the worker must stop before it sends a write that the store would
// refuse.
func TestMyWorkerStopsWhenItsLockIsLost(t *testing.T) {
	for name, happen := range map[string]func(cluster *mortisetest.Cluster, first int, s *store){
		"its lease runs out": func(cluster *mortisetest.Cluster, first int, _ *store) { cluster.Lose(first) },
		"it is cut off":      func(cluster *mortisetest.Cluster, first int, _ *store) { cluster.Isolate(first) },
		"an operator ended it": func(cluster *mortisetest.Cluster, first int, _ *store) {
			held := cluster.AwaitHolder("reports/daily", first).Queue[0]
			_, err := cluster.Node(first).ForceUnlock(context.Background(), "reports/daily", held.Token, "it hangs")
			if err != nil {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err, s := twoWorkers(t, happen)
				if !errors.Is(err, mortise.ErrLost) {
					t.Errorf("the first worker ended with %v", err)
				}
				if len(s.refusals()) > 0 {
					t.Errorf("it wrote after its lock was lost, and only the store has refused it")
				}
			})
		})
	}
}

// The worker cannot notice the loss of its lock. If the store did not compare tokens, this test
// would fail.
func TestMyPausedWorkerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err, s := twoWorkers(t, func(cluster *mortisetest.Cluster, first int, s *store) {
			cluster.Pause(first)
			cluster.Until("the second worker writes", func() bool { return s.wrote("second") })
			cluster.Until("the first worker is refused", func() bool { return len(s.refusals()) > 0 })
			cluster.Resume(first) // a paused node gets no reply to the worker's unlock
		})
		if !errors.Is(err, fence.ErrStale) || fmt.Sprint(s.refusals()) != "[first]" {
			t.Errorf("it ended with %v; refused were %v", err, s.refusals())
		}
	})
}

// A test that needs no events of a cluster needs no cluster, and runs in microseconds.
func TestMyWorkerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := new(store)
		if err := work(ctx, new(locker.Local), s, "only"); !errors.Is(err, context.DeadlineExceeded) ||
			len(s.pages) < 10 {
			t.Errorf("ended with %v after %d pages", err, len(s.pages))
		}
	})
}
