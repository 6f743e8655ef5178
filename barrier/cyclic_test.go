package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

func cyclic(node barrier.Node, n int, participant string) *barrier.Cyclic {
	return must(barrier.NewCyclic(node, "phases", n, participant))
}

func await(ctx context.Context, c *barrier.Cyclic) *call {
	return start(func() error { return c.Await(ctx) })
}

// passes fails the test unless all participants pass the next generation.
func passes(t *testing.T, all ...*barrier.Cyclic) {
	t.Helper()
	var calls []*call
	for i, c := range all {
		calls = append(calls, await(t.Context(), c))
		if i < len(all)-1 {
			calls[0].waits(t, "Await")
		}
	}
	for _, c := range calls {
		if err := c.end(t, "Await"); err != nil {
			t.Error(err)
		}
	}
}

func broken(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, barrier.ErrBroken) || !strings.Contains(err.Error(), why) {
		t.Errorf("Await returned %v, not ErrBroken with %q", err, why)
	}
}

func TestGenerationsFollowEachOther(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		var all []*barrier.Cyclic
		for i := range 3 {
			all = append(all, cyclic(c.Node(i), 3, fmt.Sprint("orders-", i)))
		}
		for range 3 {
			passes(t, all...)
		}
		if err := all[0].Remove(t.Context()); err != nil {
			t.Error(err)
		}
		nothingLeft(t, c.Node(0), "phases")
	})
}

// Every participant must get ErrBroken once, also the one that was not waiting.
func TestOneThatGivesUpBreaksTheGeneration(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		one, two, three := cyclic(c.Node(0), 3, "one"), cyclic(c.Node(0), 3, "two"), cyclic(c.Node(0), 3, "three")
		passes(t, one, two, three)
		waits := await(t.Context(), one)
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, enough)
		defer cancel()
		gives := await(ctx, two)
		waits.waits(t, "Await")
		if err := gives.end(t, "Await with a limit"); !errors.Is(err, enough) || errors.Is(err, barrier.ErrBroken) {
			t.Error(err)
		}
		broken(t, waits.end(t, "Await"), `participant "two" has stopped waiting`)
		again := await(t.Context(), one)
		again.waits(t, "Await in the next generation")
		broken(t, await(t.Context(), three).end(t, "a late Await"), `participant "two" has stopped waiting`)
		again.waits(t, "Await in the next generation")
		others := []*call{await(t.Context(), two), await(t.Context(), three), again}
		for _, o := range others {
			if err := o.end(t, "Await"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestACrashBreaksTheGeneration(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		one, two, three := cyclic(c.Node(0), 3, "one"), cyclic(c.Node(1), 3, "two"), cyclic(c.Node(2), 3, "three")
		passes(t, one, two, three)
		waits, dies := await(t.Context(), one), await(t.Context(), two)
		dies.waits(t, "Await")
		c.Kill(1)
		if err := dies.end(t, "Await on a killed node"); err == nil {
			t.Error("Await succeeded on a killed node")
		}
		broken(t, waits.end(t, "Await"), `participant "two" has crashed`)
		broken(t, three.Await(t.Context()), `participant "two" has crashed`)
		passes(t, one, cyclic(c.Start(1), 3, "two"), three) // the new process begins without a memory
	})
}

// If all that waited have crashed, the next one to arrive must find out.
func TestAnUnseenCrashBreaksTheGeneration(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		one, two := cyclic(c.Node(0), 2, "one"), cyclic(c.Node(1), 2, "two")
		passes(t, one, two)
		dies := await(t.Context(), two)
		dies.waits(t, "Await")
		c.Kill(1)
		_ = dies.end(t, "Await on a killed node")
		time.Sleep(time.Minute)
		broken(t, one.Await(t.Context()), "a participant has crashed")
		passes(t, one, cyclic(c.Start(1), 2, "two"))
	})
}

// A process that is started again before its former session has expired breaks the generation in
// which that session waits, and joins the next.
func TestARestartBreaksTheGeneration(t *testing.T) {
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		one, two := cyclic(c.Node(0), 3, "one"), cyclic(c.Node(1), 3, "two")
		waits, dies := await(t.Context(), one), await(t.Context(), two)
		dies.waits(t, "Await")
		c.Kill(1)
		restarted := await(t.Context(), cyclic(c.Node(2), 3, "two"))
		broken(t, waits.end(t, "Await"), `participant "two" has crashed, or was started again`)
		restarted.waits(t, "Await after the restart")
		calls := []*call{restarted, await(t.Context(), one), await(t.Context(), cyclic(c.Node(0), 3, "three"))}
		for _, a := range calls {
			if err := a.end(t, "Await"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRemovingACyclicBarrierBreaksIt(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		one, two := cyclic(c.Node(0), 2, "one"), cyclic(c.Node(0), 2, "two")
		passes(t, one, two)
		waits := await(t.Context(), one)
		waits.waits(t, "Await")
		if err := two.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		broken(t, waits.end(t, "Await"), "was removed")
		broken(t, two.Await(t.Context()), "was removed")
		passes(t, one, two)
	})
}

// An unknown change of the data: the next Await must begin with the end of that generation.
func TestAwaitAfterAnUnknownChange(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := &faulty{Node: c.Node(0)}
		one, two := cyclic(node, 2, "one"), cyclic(c.Node(0), 2, "two")
		passes(t, one, two)
		node.fail(nil, errUnknown) // it joins, and then withdraws
		if err := one.Await(t.Context()); !errors.Is(err, errUnknown) || errors.Is(err, barrier.ErrBroken) {
			t.Error(err)
		}
		broken(t, two.Await(t.Context()), `participant "one" has stopped waiting`)
		waits := await(t.Context(), two)
		waits.waits(t, "Await")
		node.fail(nil, errUnknown) // the generation becomes complete
		if err := one.Await(t.Context()); err != nil {
			t.Error(err)
		}
		if err := waits.end(t, "Await"); err != nil {
			t.Error(err)
		}
		passes(t, one, two)
	})
}

// deaf is a node that can stop answering, after a change that has taken effect.
type deaf struct {
	faulty
	silent atomic.Bool
}

func (d *deaf) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	revision, err := d.faulty.Put(ctx, key, data, revision)
	if d.silent.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return revision, err
}

func (d *deaf) Peek(ctx context.Context, key string) (mortise.KeyInfo, error) {
	info, err := d.faulty.Peek(ctx, key)
	if d.silent.Load() && d.puts > 0 {
		<-ctx.Done()
		return mortise.KeyInfo{}, ctx.Err()
	}
	return info, err
}

func TestAwaitBeginsWithAnUnknownEnd(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		node := &deaf{faulty: faulty{Node: c.Node(0)}}
		one, two := cyclic(node, 2, "one"), cyclic(c.Node(0), 2, "two")
		passes(t, one, two)
		waits := await(t.Context(), two)
		waits.waits(t, "Await")
		node.puts = 0
		node.silent.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := one.Await(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, barrier.ErrBroken) ||
			!strings.Contains(err.Error(), "is unknown") || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := waits.end(t, "Await"); err != nil {
			t.Error(err)
		}
		node.silent.Store(false)
		if err := one.Await(t.Context()); err != nil { // of the generation that is complete
			t.Error(err)
		}
		passes(t, one, two)
	})
}

func TestOneAwaitAtATime(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		one := cyclic(c.Node(0), 2, "one")
		ctx, cancel := context.WithCancel(t.Context())
		waits := await(ctx, one)
		waits.waits(t, "Await")
		if err := one.Await(t.Context()); err == nil {
			t.Error("a second Await succeeded")
		}
		waits.waits(t, "Await")
		same := await(t.Context(), cyclic(c.Node(0), 2, "one"))
		if err := waits.end(t, "Await"); err == nil {
			t.Error("Await succeeded twice for one participant")
		}
		passes(t, cyclic(c.Node(0), 2, "two"))
		if err := same.end(t, "Await of the later call"); err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// The number of participants may change between two generations, but not within one.
func TestTheSizeOfAGeneration(t *testing.T) {
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		passes(t, cyclic(c.Node(0), 2, "one"), cyclic(c.Node(0), 2, "two"))
		ctx, cancel := context.WithCancel(t.Context())
		waits := await(ctx, cyclic(c.Node(0), 3, "one"))
		waits.waits(t, "Await")
		if err := cyclic(c.Node(0), 2, "two").Await(t.Context()); !errors.Is(err, barrier.ErrMismatch) {
			t.Error(err)
		}
		waits.waits(t, "Await")
		cancel()
		_ = waits.end(t, "Await")
	})
}

// A group in memory that loses its majority is founded anew, without holds and data.
func TestABarrierEndsWithItsGroup(t *testing.T) {
	slow.UnderRace(t)
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		one, two := cyclic(c.Node(0), 2, "one"), cyclic(c.Node(0), 2, "two")
		passes(t, one, two)
		waits, enters := await(t.Context(), one), enter(t.Context(), c.Node(0), 2, "one")
		waits.waits(t, "Await")
		c.Kill(1)
		c.Kill(2)
		c.Start(1)
		c.Start(2)
		c.Ready()
		err := waits.end(t, "Await")
		if !errors.Is(err, barrier.ErrBroken) {
			if !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "is unknown") {
				t.Errorf("Await, when the group has ended: %v", err)
			}
			broken(t, one.Await(t.Context()), "founded anew")
		}
		if err := enters.end(t, "Enter"); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Enter, when the group has ended: %v", err)
		}
		broken(t, two.Await(t.Context()), "founded anew")
		passes(t, one, two)
		if err := leave(t, enter(t.Context(), c.Node(0), 1, "one").in(t)).end(t, "Leave"); err != nil {
			t.Error(err)
		}
	})
}

// Participants that begin a barrier at the same time conflict with each other. That breaks nothing.
func TestABarrierBegunByAllAtOnce(t *testing.T) {
	slow.UnderRace(t)
	inFakeTime(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		for i := range 20 {
			var all sync.WaitGroup
			for j := range 5 {
				one := must(barrier.NewCyclic(c.Node(0), fmt.Sprint("phases-", i), 5, fmt.Sprint(j)))
				all.Go(func() {
					if err := one.Await(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
	})
}

// Participants wait for many generations and give up at random. Nodes lose their sessions and are
// cut off. Each participant counts the generations that it has passed. It must never have passed
// more than one generation more than another: for each generation, either all pass or none.
func TestNoParticipantIsAhead(t *testing.T) {
	slow.UnderRace(t)
	inFakeTime(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		const n, generations = 4, 60
		var passed [n]atomic.Int64
		var broke, gaveUp, lost, unknown atomic.Int64
		all, over := sync.WaitGroup{}, make(chan struct{})
		for i := range n {
			one := cyclic(c.Node(i%3), n, fmt.Sprint(i))
			all.Go(func() {
				for passed[i].Load() < generations {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(300))*time.Millisecond)
					err := one.Await(ctx)
					cancel()
					switch {
					case err == nil:
						mine := passed[i].Add(1)
						for other := range passed {
							if theirs := passed[other].Load(); theirs < mine-1 || theirs > mine {
								t.Errorf("%d has passed %d generations, %d has passed %d", i, mine, other, theirs)
							}
						}
						time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
					case errors.Is(err, barrier.ErrBroken):
						broke.Add(1)
					case strings.Contains(err.Error(), "is unknown"):
						unknown.Add(1)
					case errors.Is(err, context.DeadlineExceeded):
						gaveUp.Add(1)
					case errors.Is(err, mortise.ErrLost):
						lost.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		go func() {
			all.Wait()
			close(over)
		}()
		for ended := false; !ended; {
			c.Lose(rand.IntN(3))
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			i := rand.IntN(3)
			c.Isolate(i)
			time.Sleep(time.Duration(rand.IntN(9000)) * time.Millisecond)
			c.Heal()
			time.Sleep(time.Duration(rand.IntN(9000)) * time.Millisecond)
			select {
			case <-over:
				ended = true
			default:
			}
		}
		t.Logf("%d broken, %d gave up, %d lost, %d unknown", broke.Load(), gaveUp.Load(), lost.Load(), unknown.Load())
		if gaveUp.Load() == 0 || broke.Load() == 0 {
			t.Error("the test did not try what it should")
		}
	})
}
