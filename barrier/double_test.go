package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

// entering is a call of Enter.
type entering struct {
	*call
	presence *barrier.Presence
}

func enter(ctx context.Context, node barrier.Node, n int, participant string) *entering {
	e := &entering{}
	double := must(barrier.NewDouble(node, "batch", n))
	e.call = start(func() (err error) {
		e.presence, err = double.Enter(ctx, participant)
		return err
	})
	return e
}

func (e *entering) in(t *testing.T) *barrier.Presence {
	t.Helper()
	if err := e.end(t, "Enter"); err != nil {
		t.Fatal(err)
	}
	return e.presence
}

func leave(t *testing.T, e *barrier.Presence) *call {
	return start(func() error { return e.Leave(t.Context()) })
}

func TestAPresenceNeedsNoGoroutine(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		double := must(barrier.NewDouble(c.Node(0), "batch", 1))
		enter := func() *barrier.Presence {
			presence, err := double.Enter(t.Context(), "orders-0")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return presence
		}
		if err := enter().Leave(t.Context()); err != nil { // the first one may start something
			t.Error(err)
		}
		synctest.Wait()
		before := runtime.NumGoroutine()
		presence := enter()
		if left := runtime.NumGoroutine() - before; left > 0 {
			t.Errorf("Enter has left %d goroutines", left)
		}
		if err := presence.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestParticipantsEnterAndLeaveTogether(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		for range 2 { // the barrier can be used again
			var entering []*entering
			for i := range 3 {
				for _, e := range entering {
					e.waits(t, "Enter")
				}
				entering = append(entering, enter(t.Context(), c.Node(i), 3, fmt.Sprint("orders-", i)))
			}
			var leaving []*call
			for _, e := range entering {
				presence := e.in(t)
				if err := presence.Context(t.Context()).Err(); err != nil {
					t.Errorf("the context of a presence: %v", err)
				}
				for _, l := range leaving {
					l.waits(t, "Leave")
				}
				leaving = append(leaving, leave(t, presence))
			}
			for _, l := range leaving {
				if err := l.end(t, "Leave"); err != nil {
					t.Error(err)
				}
			}
			if err := entering[0].presence.Leave(t.Context()); err != nil {
				t.Errorf("a second Leave: %v", err)
			}
			nothingLeft(t, c.Node(0), "batch")
		}
	})
}

func TestACrashCountsAsLeft(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		a, b := enter(t.Context(), c.Node(0), 2, "a"), enter(t.Context(), c.Node(1), 2, "b")
		left := leave(t, a.in(t))
		inside := b.in(t).Context(t.Context())
		left.waits(t, "Leave")
		c.Kill(1)
		if err := left.end(t, "Leave"); err != nil {
			t.Error(err)
		}
		<-inside.Done()
	})
}

func TestACrashBeforeTheBarrierOpensDoesNotCount(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		a, b := enter(t.Context(), c.Node(0), 3, "a"), enter(t.Context(), c.Node(1), 3, "b")
		b.waits(t, "Enter")
		c.Kill(1)
		if err := b.end(t, "Enter on a killed node"); err == nil {
			t.Error("Enter succeeded on a killed node")
		}
		c.Until("the hold of b has ended", func() bool {
			info, err := c.Node(0).Peek(t.Context(), "batch")
			return err == nil && info.Held == 1
		})
		d := enter(t.Context(), c.Node(2), 3, "d")
		d.waits(t, "Enter of the second of three")
		a.waits(t, "Enter of the second of three")
		b = enter(t.Context(), c.Start(1), 3, "b")
		var leaving []*call
		for _, e := range []*entering{a, b, d} {
			leaving = append(leaving, leave(t, e.in(t)))
		}
		for _, l := range leaving {
			if err := l.end(t, "Leave"); err != nil {
				t.Error(err)
			}
		}
	})
}

// A process that is started again before its former session has expired must not count twice.
func TestARestartedParticipantCountsOnce(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		former := enter(t.Context(), c.Node(1), 2, "b")
		former.waits(t, "Enter")
		c.Kill(1)
		b := enter(t.Context(), c.Node(2), 2, "b")
		b.waits(t, "Enter of the same participant")
		a := enter(t.Context(), c.Node(0), 2, "a")
		leaving := []*call{leave(t, a.in(t)), leave(t, b.in(t))}
		for _, l := range leaving {
			if err := l.end(t, "Leave"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAnEarlierCallOfTheSameNameIsReplaced(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		first := enter(t.Context(), c.Node(0), 2, "a")
		first.waits(t, "Enter")
		second := enter(ctx, c.Node(0), 2, "a")
		if err := first.end(t, "Enter"); !errors.Is(err, barrier.ErrReplaced) {
			t.Error(err)
		}
		second.waits(t, "the second Enter")
		cancel()
		if err := second.end(t, "the second Enter"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		nothingLeft(t, c.Node(0), "batch")
	})
}

func TestAParticipantThatGivesUpDoesNotCount(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		if err := enter(ctx, c.Node(0), 2, "a").end(t, "Enter"); !errors.Is(err, enough) {
			t.Error(err)
		}
		nothingLeft(t, c.Node(0), "batch")
		b := enter(t.Context(), c.Node(0), 2, "b")
		b.waits(t, "Enter after another has given up")
		a := enter(t.Context(), c.Node(0), 2, "a")
		leaving := []*call{leave(t, a.in(t)), leave(t, b.in(t))}
		for _, l := range leaving {
			_ = l.end(t, "Leave")
		}
	})
}

// An error after a change that took effect: Enter must withdraw, or report that it has entered.
func TestEnterAfterAnUnknownChange(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := &faulty{Node: c.Node(0)}
		node.fail(nil, errUnknown)
		if err := enter(t.Context(), node, 2, "a").end(t, "Enter"); !errors.Is(err, errUnknown) {
			t.Error(err)
		}
		nothingLeft(t, c.Node(0), "batch")
		b := enter(t.Context(), c.Node(0), 2, "b")
		b.waits(t, "Enter of the only one")
		node.fail(nil, errUnknown) // of the change that opens the barrier
		a := enter(t.Context(), node, 2, "a")
		leaving := []*call{leave(t, a.in(t)), leave(t, b.in(t))}
		for _, l := range leaving {
			if err := l.end(t, "Leave"); err != nil {
				t.Error(err)
			}
		}
	})
}

// tardy is a node whose next change takes effect later than its call returns.
type tardy struct {
	*mortise.Node
	late chan error // the result of the change, a second after the call. Nil means that changes are not late
}

func (s *tardy) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	if s.late == nil {
		return s.Node.Put(ctx, key, data, revision)
	}
	late := s.late
	s.late = nil
	go func() {
		time.Sleep(time.Second)
		_, err := s.Node.Put(context.WithoutCancel(ctx), key, data, revision)
		late <- err
	}()
	return 0, errUnknown
}

// A change of a call that has withdrawn must not take effect, even if it arrives late.
func TestALateChangeDoesNotOpenTheBarrier(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		b := enter(ctx, c.Node(0), 2, "b")
		b.waits(t, "Enter")
		node := &tardy{Node: c.Node(0), late: make(chan error, 1)}
		late := node.late
		if err := enter(t.Context(), node, 2, "a").end(t, "Enter"); !errors.Is(err, errUnknown) {
			t.Error(err)
		}
		if err := <-late; !errors.Is(err, mortise.ErrConflict) {
			t.Errorf("the late change: %v", err)
		}
		b.waits(t, "Enter after another has withdrawn")
		cancel()
		_ = b.end(t, "Enter")
	})
}

func TestALateParticipantWaitsForTheNextRound(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		a, b := enter(t.Context(), c.Node(0), 2, "a"), enter(t.Context(), c.Node(0), 2, "b")
		first := leave(t, a.in(t))
		late, again := enter(t.Context(), c.Node(0), 2, "c"), enter(t.Context(), c.Node(0), 2, "d")
		late.waits(t, "Enter during another round")
		first.waits(t, "Leave")
		if err := leave(t, b.in(t)).end(t, "Leave of the last one"); err != nil {
			t.Error(err)
		}
		if err := first.end(t, "Leave"); err != nil {
			t.Error(err)
		}
		leaving := []*call{leave(t, late.in(t)), leave(t, again.in(t))}
		for _, l := range leaving {
			if err := l.end(t, "Leave"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestALostPresenceIsReported(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		a, b := enter(t.Context(), c.Node(0), 2, "a"), enter(t.Context(), c.Node(1), 2, "b")
		lost, other := a.in(t), b.in(t)
		c.Lose(0)
		if err := lost.Leave(t.Context()); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Leave of a lost presence: %v", err)
		}
		if err := leave(t, other).end(t, "Leave"); err != nil {
			t.Error(err)
		}
		waiting := enter(t.Context(), c.Node(0), 2, "a")
		waiting.waits(t, "Enter")
		c.Lose(0)
		if err := waiting.end(t, "Enter"); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Enter whose hold was lost: %v", err)
		}
	})
}

func TestAPresenceCannotEnterAgain(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		presence := enter(t.Context(), c.Node(0), 1, "a").in(t)
		if err := enter(presence.Context(t.Context()), c.Node(0), 1, "a").end(t, "Enter"); err == nil {
			t.Error("a presence entered again")
		}
		if err := leave(t, presence).end(t, "Leave"); err != nil {
			t.Error(err)
		}
	})
}

// Participants enter and leave many rounds, and give up at random. A participant that is inside
// must never see fewer than n in its round. After Leave it must never see one that is still inside.
func TestRoundsDoNotMix(t *testing.T) {
	slow.UnderRace(t)
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		const n, rounds = 4, 15
		var entered, left atomic.Int64
		var all sync.WaitGroup
		for i := range n {
			double := must(barrier.NewDouble(c.Node(i%3), "batch", n))
			all.Go(func() {
				for round := int64(1); round <= rounds; {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(400))*time.Millisecond)
					presence, err := double.Enter(ctx, fmt.Sprint(i))
					cancel()
					if err != nil {
						continue
					}
					entered.Add(1)
					if got := left.Load(); got < (round-1)*n {
						t.Errorf("in round %d, when only %d had left", round, got)
					}
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
					if got := entered.Load(); got != round*n {
						time.Sleep(time.Second) // the others return from Enter as soon as they are told
						if got := entered.Load(); got != round*n {
							t.Errorf("%d have entered in round %d of %d participants", got, round, n)
						}
					}
					left.Add(1)
					if err := presence.Leave(t.Context()); err != nil {
						t.Error(err)
					}
					if got := left.Load(); got < round*n {
						t.Errorf("%d had left when Leave of round %d returned", got, round)
					}
					round++
				}
			})
		}
		all.Wait()
	})
}

// TestEnterReturnsSoonAfterItsContext cuts the group off while Enter waits. Enter cannot withdraw,
// and must still return within a second of the end of its context.
func TestEnterReturnsSoonAfterItsContext(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := &deaf{faulty: faulty{Node: c.Node(0)}}
		node.silent.Store(true)
		double := must(barrier.NewDouble(node, "phases", 2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := double.Enter(ctx, "one")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second ||
			!strings.Contains(err.Error(), "it is unknown whether") {
			t.Errorf("%v after %v, want an unknown outcome 1 s after the end of the context", err, took)
		}
	})
}
