package client

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/stay"
)

// TestShellLeaseRunsOut checks that a client that is cut off loses its locks before another client
// can get them.
func TestShellLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		start := time.Now()
		w.isolate(nodeidtest.ID(100), true)
		w.keepers[nodeidtest.ID(1)].Down(nodeidtest.ID(100))
		w.clients[nodeidtest.ID(100)].Down(nodeidtest.ID(1))
		next := make(chan time.Duration)
		go func() {
			h, err := w.clients[nodeidtest.ID(101)].Acquire(context.Background(), "x", false)
			if err != nil {
				t.Error(err)
			} else {
				h.Release(context.Background())
			}
			next <- time.Since(start)
		}()
		time.Sleep(worldTTL - worldTTL/50 - time.Millisecond)
		if h.Err() != nil || w.clients[nodeidtest.ID(100)].Status().Lease != Jeopardy {
			t.Fatalf("%v, %v", h.Err(), w.clients[nodeidtest.ID(100)].Status().Lease)
		}
		<-h.Done()
		lost := time.Since(start)
		if !errors.Is(h.Err(), ErrLost) || !errors.Is(h.Release(t.Context()), ErrLost) {
			t.Errorf("err %v", h.Err())
		}
		granted := <-next
		if lost >= granted || granted > worldTTL+time.Second {
			t.Errorf("lost after %v, granted to another after %v", lost, granted)
		}
		w.isolate(nodeidtest.ID(100), false)
		if err := w.clients[nodeidtest.ID(100)].WaitAttached(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.lock(nodeidtest.ID(100), "x").Release(t.Context())
		w.empty()
	})
}

// jumpClock is the bubble's clock plus an offset that the test sets.
type jumpClock struct {
	clock.Clock
	leap clock.Manual
}

func (j *jumpClock) Now() clock.Time { return j.Clock.Now().Add(j.leap.Now().Sub(0)) }

// TestShellErrIsExactAfterAPause pauses the process until the hold's deadline has passed. The first
// call of Err must report the loss, and no later input may make the hold valid again.
func TestShellErrIsExactAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		h, fresh := w.lock(nodeidtest.ID(100), "x"), w.lock(nodeidtest.ID(100), "y")
		synctest.Wait()
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		goOn := w.holdUp()
		defer goOn()
		deadline := w.clients[nodeidtest.ID(100)].Status().Deadline
		leaping.leap.Advance(worldTTL)
		if err := h.Err(); !errors.Is(err, ErrLost) {
			t.Fatalf("first call after the pause: %v", err)
		}
		if h.Until() != deadline {
			t.Errorf("it was held until %v, its deadline was %v", h.Until(), deadline)
		}
		select {
		case <-h.Done():
		default:
			t.Fatal("lost, but Done is open")
		}
		// This simulates a goroutine that read the clock before the pause and publishes a renewal
		// after it.
		leaping.leap.Advance(-worldTTL)
		goOn()
		synctest.Wait()
		if fresh.Err() != nil {
			t.Fatalf("the other hold, whose Err was not called: %v", fresh.Err())
		}
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatal("a lost hold is held again")
		}
		if err := h.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("release: %v", err)
		}
		if c := w.counts(); c.Entries != 1 {
			t.Errorf("what was lost is still in the group: %+v", c)
		}
		fresh.Release(t.Context())
		w.empty()
	})
}

// TestShellLateRenewalRevivesNothing reads an acknowledgement from the inbox after the deadline.
func TestShellLateRenewalRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		time.Sleep(worldTTL/3 - time.Millisecond)
		// The process stops with the acknowledgement in its inbox.
		stops := sync.OnceFunc(func() { leaping.leap.Advance(worldTTL) })
		w.mu.Lock()
		w.onReply = stops
		w.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if !h.over.Load() {
			t.Fatal("the goroutine has not found that the deadline has passed")
		}
		if late := w.clients[nodeidtest.ID(100)].config.Clock.Now().Sub(h.Until()); late < worldTTL/3 {
			t.Errorf("it was noticed only %v after the deadline, though the process was stopped past it", late)
		}
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatalf("err %v", h.Err())
		}
		w.lock(nodeidtest.ID(100), "z").Release(t.Context()) // the client still works
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatalf("err %v", h.Err())
		}
		w.empty()
	})
}

// TestShellReleaseOfALockThatIsBeingLost checks a release that is in the inbox when the client's
// goroutine detects the end of the lease.
func TestShellReleaseOfALockThatIsBeingLost(t *testing.T) {
	for name, release := range map[string]func(*Hold, context.Context) error{
		"release": (*Hold).Release, "detach": (*Hold).Detach,
	} {
		t.Run(name, func(t *testing.T) { releaseWhileBeingLost(t, release) })
	}
}

func releaseWhileBeingLost(t *testing.T, release func(*Hold, context.Context) error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		goOn := w.holdUp()
		defer goOn()
		result := make(chan error, 1)
		go func() { result <- release(h, context.Background()) }()
		synctest.Wait()
		leaping.leap.Advance(worldTTL)
		goOn()
		select {
		case err := <-result:
			if !errors.Is(err, ErrLost) {
				t.Errorf("release: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("release does not return")
		}
		if h.Err() == nil {
			t.Error("held after Release")
		}
		time.Sleep(time.Second)
		w.empty()
	})
}

// TestMarksComeBeforeTheDeadline checks that the lost hold is marked before the extended deadline
// is published.
func TestMarksComeBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	c := &Client{config: Config{Clock: clock.Monotonic()}, core: NewCore(1, worldTTL)}
	c.deadline.Store(1000)
	h := &Hold{client: c, req: &Request{}}
	h.req.Caller = h
	h.mu.Lock() // the core cannot mark h as lost until this test unlocks h.mu
	done := make(chan struct{})
	go func() {
		defer close(done)
		out := Output{Outcomes: []Outcome{{Kind: OutcomeLost, Request: h.req, Err: ErrLost}}, Deadline: 2000}
		out.publish(outlets{c})
	}()
	for range 10_000 {
		runtime.Gosched()
		if got := c.deadline.Load(); got != 1000 {
			t.Fatalf("deadline %d is published, and the hold is not marked", got)
		}
	}
	h.mu.Unlock()
	<-done
	if !h.over.Load() || c.deadline.Load() != 2000 {
		t.Errorf("marked %v, deadline %d", h.over.Load(), c.deadline.Load())
	}
}

// TestMarksOfPassesComeBeforeTheDeadline checks the same for a pass.
func TestMarksOfPassesComeBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	c := ofOneStay()
	c.core = NewCore(1, worldTTL)
	p := passOf("x")
	h := &Hold{client: c, slot: make(chan error, 1), pass: &p}
	p.Caller.Caller = h
	if answer := c.stays().Lock(c.window(), &p.Caller); answer != stay.Passed {
		t.Fatalf("answer %d", answer)
	}
	r := &Request{Caller: c.stays().Request(&p.Caller)}
	told := 0
	out := Output{Outcomes: []Outcome{{Kind: OutcomeLost, Request: r, Err: ErrLost}}, Deadline: 2000}
	h.OnLoss(func(Loss, error) {
		if told++; c.deadline.Load() == 2000 {
			t.Error("the deadline is published, and the pass is not marked")
		}
	})
	out.publish(outlets{c})
	if told != 1 || c.deadline.Load() != 2000 {
		t.Errorf("marked %d times, deadline %d", told, c.deadline.Load())
	}
}

// lockedClock checks that the client's stays are locked whenever the clock is read.
type lockedClock struct {
	clock.Clock
	t *testing.T
	c *Client
}

func (l *lockedClock) Now() clock.Time {
	if l.c.kept.all()[0].mu.TryLock() {
		l.c.kept.all()[0].mu.Unlock()
		l.t.Error("the clock is read before the stays are locked, so a pass may be granted after it was marked as lost")
	}
	return l.Clock.Now()
}

// TestPassesReadTheClockUnderTheMutex checks that a pass cannot be lost between the reading of the
// clock and the grant.
func TestPassesReadTheClockUnderTheMutex(t *testing.T) {
	t.Parallel()
	c := ofOneStay()
	c.config.Clock = &lockedClock{c.config.Clock, t, c}
	h := &Hold{}
	p := passOf("x")
	if err := c.AcquireKept(t.Context(), h, &p); err != nil {
		t.Fatal(err)
	}
}

func TestShellRebind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		h, other := w.lock(nodeidtest.ID(100), "x"), w.lock(nodeidtest.ID(101), "y")
		got := make(chan *Hold)
		go func() {
			h, err := w.clients[nodeidtest.ID(100)].Acquire(context.Background(), "y", false)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		synctest.Wait()
		w.clients[nodeidtest.ID(100)].Rebind(nil, nil)
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatalf("held after the end of the incarnation in which it was granted: %v", h.Err())
		}
		<-h.Done()
		time.Sleep(time.Second)
		if s := w.clients[nodeidtest.ID(100)].Status(); s.Session != 0 || s.Phase != Seeking {
			t.Errorf("between two incarnations: %+v", s)
		}
		w.clients[nodeidtest.ID(100)].Rebind([]byte("again"), []nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
		other.Release(t.Context())
		next := <-got
		if next.Err() != nil {
			t.Fatal(next.Err())
		}
		next.Release(t.Context())
		time.Sleep(worldTTL + time.Second) // the old session expires
		w.empty()
		if c := w.counts(); c.Sessions != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// TestErrAtTheDeadline checks that Err reports the loss exactly at the deadline, because from that
// time another caller may have the lock.
func TestErrAtTheDeadline(t *testing.T) {
	const deadline = clock.Time(1000)
	for name, row := range map[string]struct {
		limit clock.Time
		at    clock.Time
		want  error
	}{
		"before":               {0, deadline - 1, nil},
		"at the deadline":      {0, deadline, ErrLost},
		"behind it":            {0, deadline + 1, ErrLost},
		"before its own end":   {deadline - 10, deadline - 11, nil},
		"at its own end":       {deadline - 10, deadline - 10, OverdueError{}},
		"at both":              {deadline, deadline, ErrLost},
		"its own end is later": {deadline + 10, deadline, ErrLost},
	} {
		var now clock.Manual
		now.Advance(time.Duration(row.at))
		c := &Client{config: Config{Clock: &now}, core: NewCore(1, worldTTL), wake: make(chan struct{}, 1)}
		c.deadline.Store(int64(deadline))
		h := &Hold{client: c}
		if row.limit != 0 {
			h.limits = &holdLimits{limit: &limit{until: row.limit}}
		}
		err := h.Err()
		if (err == nil) != (row.want == nil) || row.want != nil && !errors.Is(err, row.want) ||
			err != nil && h.Until() > row.at {
			t.Errorf("%s: %v, held until %v; want %v", name, err, h.Until(), row.want)
		}
		if given := len(c.inbox) == 1 && c.inbox[0].kind == inputExpired; given != (row.want != nil) {
			t.Errorf("%s: the lock is given back: %v", name, given)
		}
	}
}
