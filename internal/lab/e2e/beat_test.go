package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestAHoldLastsAsLongAsTheWorkMoves beats for a lock in each way that there is, for longer than
// its MaxIdle, and then not any more. The next waiter must be granted the lock not before MaxIdle
// and LockDelay have passed, and soon after 1.25 MaxIdle and the LockDelay.
func TestAHoldLastsAsLongAsTheWorkMoves(t *testing.T) {
	slow.UnderRace(t)
	const idle, delay = time.Minute, 20 * time.Second
	for name, way := range map[string]struct {
		mode mortise.Mode
		// begins returns how the work beats.
		begins func(f *fleet, l *mortise.Lock) (beat func())
	}{
		"Lock.Beat": {begins: func(_ *fleet, l *mortise.Lock) func() { return l.Beat }},
		"the context": {begins: func(f *fleet, l *mortise.Lock) func() {
			ctx := l.Context(f.t.Context())
			return func() { mortise.Beat(ctx) }
		}},
		"a nested lock": {begins: func(f *fleet, l *mortise.Lock) func() {
			inner, err := f.nodes[0].Lock(l.Context(f.t.Context()), "inner")
			if err != nil {
				f.t.Fatal(err)
			}
			ctx := inner.Context(l.Context(f.t.Context()))
			return func() { mortise.Beat(ctx) }
		}},
		"another handle": {begins: func(f *fleet, l *mortise.Lock) func() {
			again, err := f.nodes[0].Acquire(l.Context(f.t.Context()), mortise.Request{Key: "k", MaxIdle: idle})
			if err != nil {
				f.t.Fatal(err)
			}
			return again.Beat
		}},
		"an upgrade": {mode: mortise.Upgradable, begins: func(f *fleet, l *mortise.Lock) func() {
			up, err := l.Upgrade(f.t.Context())
			if err != nil {
				f.t.Fatal(err)
			}
			return up.Beat
		}},
		"the context of an upgrade": {mode: mortise.Upgradable, begins: func(f *fleet, l *mortise.Lock) func() {
			up, err := l.Upgrade(f.t.Context())
			if err != nil {
				f.t.Fatal(err)
			}
			ctx := up.Context(f.t.Context())
			return func() { mortise.Beat(ctx) }
		}},
		"Put": {begins: func(f *fleet, l *mortise.Lock) func() {
			revision := uint64(0)
			return func() {
				var err error
				if revision, err = l.Put(f.t.Context(), "progress", []byte("some"), revision); err != nil {
					f.t.Error(err)
				}
			}
		}},
		"SetValue": {begins: func(f *fleet, l *mortise.Lock) func() {
			return func() {
				if err := l.SetValue(f.t.Context(), "some"); err != nil {
					f.t.Error(err)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				request := mortise.Request{Key: "k", Mode: way.mode, MaxIdle: idle, LockDelay: delay}
				if way.mode == mortise.Upgradable {
					request.LockDelay = 0
				}
				l := f.acquire(0, request)
				next := f.later(1, mortise.Request{Key: "k"})
				ctx := l.Context(t.Context())
				beat := way.begins(f, l)
				for range 6 {
					time.Sleep(idle - time.Second)
					beat()
				}
				last := time.Now()
				if err := l.Err(); err != nil {
					t.Fatalf("while the work moves: %v", err)
				}
				<-ctx.Done()
				if took := time.Since(last); took < idle || took > idle*5/4+time.Second {
					t.Errorf("the context has ended %v after the last beat", took)
				}
				if err := context.Cause(ctx); !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "called Beat") {
					t.Errorf("the context has ended by %v", err)
				}
				l.Beat() // which is too late
				wantIs(t, l.Err(), mortise.ErrLost)
				unlock(t, <-next)
				if took := time.Since(last); took < idle+request.LockDelay || took > idle*5/4+request.LockDelay+2*time.Second {
					t.Errorf("the next had the lock %v after the last beat", took)
				}
				wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
				ends, err := f.nodes[1].Audit(t.Context())
				if err != nil || len(ends) == 0 || ends[0].Cause != mortise.OutcomeExpired || ends[0].Token != l.Token() ||
					!strings.Contains(ends[0].Reason, "it was idle: its holder had not called Beat for 1m0s") {
					t.Errorf("the audit has %+v, %v", ends, err)
				}
			})
		})
	}
}

// TestTheIdleTimePassesInDoubt cuts the holder off for longer than the lease. In doubt its work
// does not move, and the hold ends at its MaxIdle, before the grace is over.
func TestTheIdleTimePassesInDoubt(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "k", MaxIdle: time.Minute, JeopardyGrace: time.Hour})
		began := time.Now()
		f.isolate(0)
		<-l.Done()
		wantIs(t, l.Err(), mortise.ErrInJeopardy)
		err := l.Regain(t.Context())
		if took := time.Since(began); !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "called Beat") ||
			took < time.Minute || took > 75*time.Second {
			t.Errorf("%v after the grant: %v", took, err)
		}
		f.rejoin(0)
		unlock(t, f.acquire(1, mortise.Request{Key: "k"}))
		f.nothingLeft()
	})
}

// TestAHungLeaderIsFollowed lets the function of a leader hang, on the instance that renews its
// lease. Another instance must lead between 1 and 1.25 times MaxIdle after the last Beat.
func TestAHungLeaderIsFollowed(t *testing.T) {
	slow.UnderRace(t)
	const idle = time.Minute
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		first, err := election.New(f.nodes[0], "e", election.Options{MaxIdle: idle}).Campaign(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *election.Leadership)
		go func() {
			l, err := election.New(f.nodes[1], "e", election.Options{MaxIdle: idle}).Campaign(t.Context(), "")
			if err != nil {
				t.Error(err)
			}
			next <- l
		}()
		for range 5 {
			time.Sleep(idle * 4 / 5)
			first.Beat()
		}
		last := time.Now()
		second := <-next
		if took := time.Since(last); took < idle || took > idle*5/4+100*time.Millisecond {
			t.Errorf("the next leads %v after the last Beat", took)
		}
		wantIs(t, first.Err(), mortise.ErrLost)
		wantIs(t, first.Resign(t.Context()), mortise.ErrLost)
		if err := errors.Join(second.Err(), second.Resign(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
