package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/mortisetest"
)

func TestALatchOpensWhenEveryParticipantHasCounted(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		var waits []*call
		for i := range 3 {
			latch := must(barrier.NewLatch(c.Node(i), "ready", 3))
			waits = append(waits, start(func() error { return latch.Wait(t.Context()) }))
		}
		for i := range 3 {
			for w := range waits {
				waits[w].waits(t, "Wait")
			}
			latch := must(barrier.NewLatch(c.Node(i), "ready", 3))
			for range 3 { // a participant counts once
				if err := latch.CountDown(t.Context(), fmt.Sprint("orders-", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for w := range waits {
			if err := waits[w].end(t, "Wait"); err != nil {
				t.Error(err)
			}
		}
		latch := must(barrier.NewLatch(c.Node(0), "ready", 3))
		if err := latch.Wait(t.Context()); err != nil {
			t.Errorf("a late Wait: %v", err)
		}
		if err := latch.CountDown(t.Context(), "a fourth"); err != nil {
			t.Error(err)
		}
		names, err := latch.Counted(t.Context())
		if err != nil || !slices.Equal(names, []string{"orders-0", "orders-1", "orders-2"}) {
			t.Errorf("counted: %q, %v", names, err)
		}
	})
}

// An error of CountDown does not show whether the count has changed. A repeated call must not count
// twice, and must count if the first has not.
func TestACountDownAfterAnErrorCountsOnce(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		for name, errs := range map[string][2]error{"nothing": {errUnknown, nil}, "counted": {nil, errUnknown}} {
			node := &faulty{Node: c.Node(0)}
			latch := must(barrier.NewLatch(node, name, 2))
			node.fail(errs[0], errs[1])
			if err := latch.CountDown(t.Context(), "a"); err != errUnknown && !errors.Is(err, errUnknown) {
				t.Fatalf("%s: %v", name, err)
			}
			for range 2 {
				if err := latch.CountDown(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			wait := start(func() error { return latch.Wait(t.Context()) })
			wait.waits(t, "Wait after one of two")
			if err := latch.CountDown(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			if err := wait.end(t, "Wait"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAConflictIsTriedAgain(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		var all sync.WaitGroup
		for i := range 20 {
			latch := must(barrier.NewLatch(c.Node(0), "ready", 20))
			all.Go(func() {
				if err := errors.Join(latch.CountDown(t.Context(), fmt.Sprint(i)), latch.Wait(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestALatchOutlivesItsParticipants(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		latch := must(barrier.NewLatch(c.Node(2), "ready", 2))
		if err := latch.CountDown(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		lost := start(func() error { return latch.Wait(t.Context()) })
		lost.waits(t, "Wait")
		c.Kill(2)
		if err := lost.end(t, "Wait on a node that ends"); !errors.Is(err, mortise.ErrClosed) {
			t.Error(err)
		}
		latch = must(barrier.NewLatch(c.Start(2), "ready", 2))
		wait := start(func() error { return latch.Wait(t.Context()) })
		wait.waits(t, "Wait after a restart")
		if err := must(barrier.NewLatch(c.Node(0), "ready", 2)).CountDown(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		if err := wait.end(t, "Wait"); err != nil {
			t.Error(err)
		}
	})
}

func TestAWaiterLearnsThatItsLatchIsForgotten(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		latch := must(barrier.NewLatch(c.Node(0), "ready", 3))
		wait := start(func() error { return latch.Wait(t.Context()) })
		wait.waits(t, "Wait for nothing")
		if err := latch.CountDown(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		wait.waits(t, "Wait after one of three")
		if err := latch.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := wait.end(t, "Wait"); !errors.Is(err, barrier.ErrForgotten) {
			t.Error(err)
		}
		nothingLeft(t, c.Node(0), "ready")
		if err := latch.Remove(t.Context()); err != nil {
			t.Errorf("a second Remove: %v", err)
		}
	})
}

// A group in memory that loses its majority is founded anew, without the counts.
func TestALatchEndsWithItsGroup(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		latch := must(barrier.NewLatch(c.Node(0), "ready", 3))
		if err := latch.CountDown(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		wait := start(func() error { return latch.Wait(t.Context()) })
		wait.waits(t, "Wait after one of three")
		c.Kill(1)
		c.Kill(2)
		c.Start(1)
		c.Start(2)
		c.Ready()
		if err := wait.end(t, "Wait"); !errors.Is(err, barrier.ErrForgotten) {
			t.Error(err)
		}
		if names, err := latch.Counted(t.Context()); err != nil || names != nil {
			t.Errorf("counted in the new group: %q, %v", names, err)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		latch := must(barrier.NewLatch(c.Node(0), "ready", 1))
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		if err := latch.Wait(ctx); !errors.Is(err, enough) {
			t.Error(err)
		}
	})
}

func TestParticipantsMustAgree(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := c.Node(0)
		if err := must(barrier.NewLatch(node, "ready", 2)).CountDown(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		other := must(barrier.NewLatch(node, "ready", 3))
		_, counted := other.Counted(t.Context())
		_, entered := must(barrier.NewDouble(node, "ready", 2)).Enter(t.Context(), "b")
		for _, err := range []error{
			other.CountDown(t.Context(), "b"), other.Wait(t.Context()), counted, entered,
			must(barrier.NewCyclic(node, "ready", 2, "b")).Await(t.Context()),
		} {
			if !errors.Is(err, barrier.ErrMismatch) {
				t.Error(err)
			}
		}
		if _, err := node.Put(t.Context(), "other", []byte("not JSON"), 0); err != nil {
			t.Fatal(err)
		}
		err := must(barrier.NewLatch(node, "other", 2)).CountDown(t.Context(), "a")
		if !errors.Is(err, barrier.ErrMismatch) {
			t.Error(err)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := c.Node(0)
		for _, n := range []int{-1, 0, 129} {
			_, latch := barrier.NewLatch(node, "x", n)
			_, double := barrier.NewDouble(node, "x", n)
			_, cyclic := barrier.NewCyclic(node, "x", n, "a")
			if latch == nil || double == nil || cyclic == nil {
				t.Errorf("%d participants: %v, %v, %v", n, latch, double, cyclic)
			}
		}
		if _, err := barrier.NewLatch(nil, "x", 1); err == nil {
			t.Error("a latch without a node")
		}
		for _, name := range []string{"", "\xff", "a\nb", strings.Repeat("n", 129)} {
			_, double := must(barrier.NewDouble(node, "x", 1)).Enter(t.Context(), name)
			_, cyclic := barrier.NewCyclic(node, "x", 1, name)
			if must(barrier.NewLatch(node, "x", 1)).CountDown(t.Context(), name) == nil || double == nil || cyclic == nil {
				t.Errorf("the name %q was accepted", name)
			}
		}
	})
}

// The record of a latch must have room for all names that it accepts.
func TestTheLargestLatch(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		latch := must(barrier.NewLatch(c.Node(0), "ready", 128))
		name := func(i, length int) string { return fmt.Sprintf("%0*d", length, i) }
		if err := latch.CountDown(t.Context(), name(0, 28)); err == nil {
			t.Error("a name of 28 bytes was accepted")
		}
		for i := range 128 {
			if err := latch.CountDown(t.Context(), name(i, 27)); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
		if err := latch.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
