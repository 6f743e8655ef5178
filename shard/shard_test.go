package shard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/shard"
)

// stage checks that no shard runs twice at a time and that tokens rise, and counts the owners.
type stage struct {
	t      *testing.T
	mu     sync.Mutex // guards the fields below
	on     map[int]string
	tokens map[int]mortise.Token
	begun  int
}

func newStage(t *testing.T) *stage {
	return &stage{t: t, on: map[int]string{}, tokens: map[int]mortise.Token{}}
}

func (s *stage) enter(who string, sh shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.on[sh.Index]; before != "" {
		s.t.Errorf("shard %d runs on %s beside %s", sh.Index, who, before)
	}
	if sh.Token <= s.tokens[sh.Index] {
		s.t.Errorf("shard %d runs with token %d after %d", sh.Index, sh.Token, s.tokens[sh.Index])
	}
	s.on[sh.Index], s.tokens[sh.Index] = who, sh.Token
	s.begun++
}

func (s *stage) exit(sh shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.on, sh.Index)
}

// counts returns how many shards each instance runs, and how many have begun so far.
func (s *stage) counts() (each map[string]int, begun int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each = map[string]int{}
	for _, who := range s.on {
		each[who]++
	}
	return each, s.begun
}

func (s *stage) wants(want string) (begun int) {
	s.t.Helper()
	each, begun := s.counts()
	if got := fmt.Sprint(each); got != "map["+want+"]" {
		s.t.Errorf("the shards are at %s, want %s", got, want)
	}
	return begun
}

type instance struct {
	leave context.CancelCauseFunc
	ended chan error
}

func (s *stage) run(node *mortise.Node, who string, w shard.Work) instance {
	ctx, leave := context.WithCancelCause(s.t.Context())
	in := instance{leave, make(chan error, 1)}
	w.Name = "orders"
	if w.Run == nil {
		w.Run = func(ctx context.Context, sh shard.Shard) error {
			s.enter(who, sh)
			defer s.exit(sh)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), mortise.ErrLost) {
				time.Sleep(100 * time.Millisecond) // cleans up
			}
			return ctx.Err()
		}
	}
	go func() { in.ended <- shard.Run(ctx, node, w) }()
	return in
}

const settled = 30 * time.Second

func TestShardsFollowTheInstances(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		c, s := mortisetest.New(t, 3), newStage(t)
		w := shard.Work{Count: 12}
		a := s.run(c.Node(0), "a", w)
		time.Sleep(settled)
		begun := s.wants("a:12")
		b := s.run(c.Node(1), "b", w)
		time.Sleep(settled)
		if now := s.wants("a:6 b:6"); now-begun != 6 {
			t.Errorf("%d shards have moved to the second instance, want 6", now-begun)
		}
		begun += 6
		w.Weight = 2
		d := s.run(c.Node(2), "d", w)
		time.Sleep(settled)
		if now := s.wants("a:3 b:3 d:6"); now-begun != 6 {
			t.Errorf("%d shards have moved to the heavy instance, want 6", now-begun)
		}

		owners, err := shard.Owners(t.Context(), c.Node(0), "orders")
		if err != nil || len(owners) != 12 ||
			!slices.IsSortedFunc(owners, func(x, y shard.Owner) int { return x.Index - y.Index }) {
			t.Errorf("the owners are %+v, %v", owners, err)
		}

		// An instance that leaves gives its shards up before Run returns.
		why := errors.New("deployment")
		b.leave(why)
		if err := <-b.ended; err != why {
			t.Errorf("Run returns %v", err)
		}
		if each, _ := s.counts(); each["b"] != 0 {
			t.Errorf("Run has returned, and %d functions run", each["b"])
		}
		time.Sleep(settled)
		s.wants("a:4 d:8")

		// An instance that is cut off loses its shards before the other one gets them, and comes back.
		c.Isolate(2)
		time.Sleep(2 * settled)
		s.wants("a:12")
		c.Heal()
		time.Sleep(2 * settled)
		s.wants("a:4 d:8")

		if err := c.Node(2).Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-d.ended; !errors.Is(err, mortise.ErrLeaving) && !errors.Is(err, mortise.ErrClosed) {
			t.Errorf("Run on a node that leaves returns %v", err)
		}
		a.leave(why)
		<-a.ended
	})
}

// TestObserveShowsTheOwners compares what an observer has seen last with the owners, before and
// after an instance leaves and while one is cut off.
func TestObserveShowsTheOwners(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		c, _, all := started(t)
		ctx, stop := context.WithCancelCause(t.Context())
		var mu sync.Mutex
		var seen [][]shard.Owner
		ended := make(chan error, 1)
		go func() {
			for owners, err := range shard.Observe(ctx, c.Node(0), "orders") {
				if err != nil {
					ended <- err
					return
				}
				mu.Lock()
				if n := len(seen); n > 0 && slices.Equal(owners, seen[n-1]) {
					t.Errorf("seen twice: %v", owners)
				}
				seen = append(seen, owners)
				mu.Unlock()
			}
		}()
		same := func(when string) {
			t.Helper()
			time.Sleep(2 * settled)
			owners, err := shard.Owners(t.Context(), c.Node(0), "orders")
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(owners) != 12 || len(seen) == 0 || !slices.Equal(seen[len(seen)-1], owners) {
				t.Errorf("%s: the owners are %v, %v, seen after %d reports: %v", when, owners, err, len(seen),
					seen[max(0, len(seen)-1):])
			}
		}
		same("at the beginning")
		c.Isolate(2)
		same("one is cut off")
		c.Heal()
		same("it has come back")
		end(all[1])
		same("one has left")
		why := errors.New("enough")
		stop(why)
		if err := <-ended; err != why {
			t.Errorf("Observe ends with %v", err)
		}
		end(all[0], all[2])
	})
}

// started runs twelve shards on three instances.
func started(t *testing.T) (c *mortisetest.Cluster, s *stage, all []instance) {
	c, s = mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), newStage(t)
	for i, who := range []string{"a", "b", "d"} {
		all = append(all, s.run(c.Node(i), who, shard.Work{Count: 12}))
	}
	time.Sleep(settled)
	s.wants("a:4 b:4 d:4")
	return c, s, all
}

func end(all ...instance) {
	for _, in := range all {
		in.leave(nil)
		<-in.ended
	}
}

func TestWithoutAMajorityAllFunctionsEnd(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		c, s, all := started(t)
		c.Isolate(0)
		c.Cut(1, 2)
		time.Sleep(settled)
		s.wants("")
		c.Heal()
		time.Sleep(2 * settled)
		s.wants("a:4 b:4 d:4")

		// Run does not wait for the group before it ends its functions.
		c.Isolate(0)
		began := time.Now()
		all[0].leave(errors.New("deployment"))
		time.Sleep(200 * time.Millisecond)
		if each, _ := s.counts(); each["a"] != 0 {
			t.Errorf("%d functions run %v after the end of the context", each["a"], time.Since(began))
		}
		c.Heal()
		end(all...)
	})
}

func TestAKilledInstanceIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, all := started(t)
		c.Kill(2)
		<-all[2].ended
		time.Sleep(settled)
		s.wants("a:6 b:6")
		node := c.Start(2)
		c.Ready()
		again := s.run(node, "e", shard.Work{Count: 12})
		time.Sleep(settled)
		s.wants("a:4 b:4 e:4")
		end(all[0], all[1], again)
	})
}

// A function that ignores the end of its context keeps its shard, and no other instance begins it.
func TestAShardIsNotTakenFromARunningFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mortisetest.New(t, 2), newStage(t)
		free := make(chan struct{})
		stubborn := func(ctx context.Context, sh shard.Shard) error {
			s.enter("a", sh)
			defer s.exit(sh)
			<-free
			return nil
		}
		a := s.run(c.Node(0), "a", shard.Work{Count: 2, Run: stubborn})
		time.Sleep(settled)
		b := s.run(c.Node(1), "b", shard.Work{Count: 2})
		time.Sleep(settled)
		s.wants("a:2")
		close(free)
		time.Sleep(settled)
		if each, _ := s.counts(); each["b"] != 1 {
			t.Errorf("the shards are at %v", each)
		}
		for _, in := range []instance{a, b} {
			in.leave(nil)
			<-in.ended
		}
	})
}

// TestAFunctionThatEndsItsGoroutineRunsAgain lets a function call runtime.Goexit at once. Its shard
// runs again after the pause, and not before.
func TestAFunctionThatEndsItsGoroutineRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mortisetest.New(t, 1), newStage(t)
		in := s.run(c.Node(0), "a", shard.Work{Count: 1, Backoff: time.Minute,
			Run: func(ctx context.Context, sh shard.Shard) error {
				s.enter("a", sh)
				defer s.exit(sh)
				if _, begun := s.counts(); begun == 1 {
					runtime.Goexit()
				}
				<-ctx.Done()
				return nil
			},
		})
		for _, want := range []int{1, 2} {
			time.Sleep(50 * time.Second)
			if _, begun := s.counts(); begun != want {
				t.Errorf("it has run %d times, want %d", begun, want)
			}
		}
		in.leave(nil)
		<-in.ended
	})
}

func TestAFailedShardRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mortisetest.New(t, 1), newStage(t)
		fails := errors.New("no disk")
		var mu sync.Mutex
		var reports []error
		runs := 0
		in := s.run(c.Node(0), "a", shard.Work{
			Count: 1, Backoff: 10 * time.Second,
			Report: func(index int, err error) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, err)
			},
			Run: func(ctx context.Context, sh shard.Shard) error {
				s.enter("a", sh)
				defer s.exit(sh)
				mu.Lock()
				runs++
				n := runs
				mu.Unlock()
				switch n {
				case 1:
					return fails
				case 2:
					return nil
				}
				<-ctx.Done()
				return nil
			},
		})
		time.Sleep(9 * time.Second)
		if _, begun := s.counts(); begun != 1 {
			t.Errorf("it has run %d times before its pause is over", begun)
		}
		time.Sleep(2 * settled)
		s.wants("a:1")
		in.leave(nil)
		<-in.ended
		if runs != 3 || len(reports) != 1 || reports[0] != fails {
			t.Errorf("%d runs, reported %v", runs, reports)
		}
	})
}

// A deployment raises the Count from 4 to 8 under one Name, one instance after the other.
func TestARollingChangeOfTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := mortisetest.New(t, 2), newStage(t)
		var mu sync.Mutex
		var reports []string
		work := func(who string, count int) shard.Work {
			return shard.Work{Count: count, Report: func(index int, err error) {
				if index != -1 || !errors.Is(err, shard.ErrCounts) {
					t.Errorf("%s reports %d, %v", who, index, err)
				}
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, who+": "+err.Error())
			}}
		}
		a, b := s.run(c.Node(0), "a", work("a", 4)), s.run(c.Node(1), "b", work("b", 4))
		time.Sleep(settled)
		s.wants("a:2 b:2")
		a.leave(nil)
		<-a.ended
		a = s.run(c.Node(0), "a", work("a", 8))
		time.Sleep(settled)
		s.wants("a:6 b:2") // shards 0 to 3 are divided, and only a has 4 to 7
		b.leave(nil)
		<-b.ended
		b = s.run(c.Node(1), "b", work("b", 8))
		time.Sleep(settled)
		s.wants("a:4 b:4")
		slices.Sort(reports)
		const advice = ": set one Count on all instances, or run the new Count under another Name"
		if want := []string{
			"a: " + shard.ErrCounts.Error() + `: "orders" has Count 8 here, and 4 on "node-1"` + advice,
			"b: " + shard.ErrCounts.Error() + `: "orders" has Count 4 here, and 8 on "node-0"` + advice,
		}; !slices.Equal(reports, want) {
			t.Errorf("reported %q, want %q", reports, want)
		}
		for _, in := range []instance{a, b} {
			in.leave(nil)
			<-in.ended
		}
	})
}

func TestWrongWork(t *testing.T) {
	run := func(context.Context, shard.Shard) error { return nil }
	for _, w := range []shard.Work{
		{Name: "a", Count: 1}, {Name: "a", Run: run}, {Name: "a", Count: 4097, Run: run},
		{Name: "a", Count: 1, Weight: -1, Run: run}, {Name: "a", Count: 1, Weight: 1001, Run: run},
	} {
		if err := shard.Run(t.Context(), nil, w); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
