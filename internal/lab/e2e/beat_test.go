package e2e

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/shard"
	"github.com/mortise-lock/mortise/tick"
)

// TestAHoldLastsAsLongAsTheWorkMoves beats for a lock in each way that there is, for longer than
// its MaxIdle, and then not any more. The next waiter must be granted the lock not before MaxIdle
// and LockDelay have passed, and soon after 1.25 MaxIdle and the LockDelay.
func TestAHoldLastsAsLongAsTheWorkMoves(t *testing.T) {
	slow.UnderRace(t)
	const idle, delay = 20 * time.Second, 10 * time.Second
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
					!strings.Contains(ends[0].Reason, "it was idle: its holder had not called Beat for 20s") {
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

// TestAHungTickIsFollowed lets the job of a tick hang, after some beats, on the instance that got
// the tick. Another instance must run the same tick between 1 and 1.25 times MaxIdle after the last
// Beat, and the tick is then recorded, so that no third run follows. The next ticks run, too.
func TestAHungTickIsFollowed(t *testing.T) {
	slow.UnderRace(t)
	const idle = time.Minute
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		const every = 10 * time.Minute
		time.Sleep(time.Until(time.Now().Truncate(every).Add(every - time.Minute)))
		type run struct {
			at, tick time.Time
			token    mortise.Token
		}
		runs, reports := make(chan run, 10), make(chan error, 10)
		var second atomic.Bool
		lastBeat, goOn := make(chan time.Time, 1), make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		for i := range 3 {
			job := tick.Job{Name: "report", Schedule: tick.Every(every), Late: every / 2, MaxIdle: idle}
			job.Run = func(ctx context.Context, k tick.Tick) error {
				runs <- run{time.Now(), k.Time, k.Token}
				if second.Swap(true) {
					return nil
				}
				for range 4 {
					time.Sleep(idle * 4 / 5)
					mortise.Beat(ctx)
				}
				lastBeat <- time.Now()
				<-goOn
				return context.Cause(ctx)
			}
			job.Report = func(_ tick.Tick, err error) { reports <- err }
			go func() { ended <- tick.Run(ctx, f.nodes[i], job) }()
		}
		hung := <-runs
		next := <-runs
		if took := next.at.Sub(<-lastBeat); took < idle || took > idle*5/4+100*time.Millisecond {
			t.Errorf("the next run begins %v after the last Beat", took)
		}
		if !next.tick.Equal(hung.tick) || next.token <= hung.token {
			t.Errorf("after %+v it is %+v", hung, next)
		}
		if err := <-reports; err != nil {
			t.Errorf("the second run reports %v", err)
		}
		if later := <-runs; !later.tick.Equal(hung.tick.Add(every)) {
			t.Errorf("the third run is of %v, after two of %v", later.tick, hung.tick)
		}
		if err := <-reports; err != nil {
			t.Errorf("the third run reports %v", err)
		}
		close(goOn)
		if err := <-reports; !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "called Beat") {
			t.Errorf("the hung job reports %v", err)
		}
		stop()
		for range 3 {
			wantIs(t, <-ended, context.Canceled)
		}
	})
}

// TestAHungShardIsFollowed lets the function of one shard of six hang, after many beats. The shard
// must run again between 1 and 1.25 times MaxIdle after the last Beat, with a higher token, and the
// loss is reported at once. The other shards, whose functions beat, must not move.
func TestAHungShardIsFollowed(t *testing.T) {
	slow.UnderRace(t)
	const idle = time.Minute
	type run struct {
		at time.Time
		shard.Shard
	}
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, stop := context.WithCancel(t.Context())
		hang, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 3)
		runs, reports := make(chan run, 100), make(chan error, 100)
		works := func(ctx context.Context, s shard.Shard) error {
			runs <- run{time.Now(), s}
			hangs := hang
			if s.Index != 4 {
				hangs = nil
			}
			for {
				select {
				case <-time.After(idle / 2):
					mortise.Beat(ctx)
				case <-hangs:
					mortise.Beat(ctx)
					<-goOn
					return context.Cause(ctx)
				case <-ctx.Done():
					return nil
				}
			}
		}
		for i := range 3 {
			go func() {
				ended <- shard.Run(ctx, f.nodes[i], shard.Work{Name: "orders", Count: 6, MaxIdle: idle, Run: works,
					Report: func(_ int, err error) { reports <- err }})
			}()
		}
		time.Sleep(2 * time.Minute)
		last := map[int]run{}
		for range len(runs) {
			r := <-runs
			last[r.Index] = r
		}
		hang <- struct{}{}
		hung := time.Now()
		next := <-runs
		if took := next.at.Sub(hung); took < idle || took > idle*5/4+100*time.Millisecond {
			t.Errorf("the shard runs again %v after the last Beat", took)
		}
		if next.Index != 4 || next.Token <= last[4].Token {
			t.Errorf("after %+v it is %+v", last[4], next)
		}
		time.Sleep(2 * time.Minute)
		close(goOn)
		time.Sleep(2 * time.Minute)
		if len(runs) > 0 {
			t.Errorf("%+v runs, too", <-runs)
		}
		if err := <-reports; !errors.Is(err, mortise.ErrLost) || !strings.Contains(err.Error(), "called Beat") ||
			len(reports) > 0 {
			t.Errorf("reported %v and %d more", err, len(reports))
		}
		stop()
		for range 3 {
			wantIs(t, <-ended, context.Canceled)
		}
		f.nothingLeft()
	})
}

// TestAStatusHasTheIdleTimes compares the locks with MaxIdle that a status lists: those of all
// sessions of the instance, those that end first before the others, and no more than 100.
func TestAStatusHasTheIdleTimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		n := f.nodes[0]
		wants := func(want ...mortise.IdleHold) {
			t.Helper()
			got := n.Status().Idle
			for i := range got {
				got[i].Idle = got[i].Idle.Round(time.Second)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the status lists %+v, want %+v", got, want)
			}
		}
		plain := f.acquire(0, mortise.Request{Key: "plain"})
		wants()
		long := f.acquire(0, mortise.Request{Key: "long", MaxIdle: time.Minute})
		other := f.session(0, 2*time.Second)
		short, err := other.Acquire(t.Context(), mortise.Request{Key: "short", MaxIdle: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		long.Beat()
		wants(mortise.IdleHold{Key: "short", Token: short.Token(), MaxIdle: 40 * time.Second, Idle: 25 * time.Second},
			mortise.IdleHold{Key: "long", Token: long.Token(), MaxIdle: time.Minute})
		time.Sleep(6 * time.Second)
		short.Beat()
		time.Sleep(15 * time.Second) // the Beat of long was found 30 s after its grant, that of short after 40 s
		wants(mortise.IdleHold{Key: "short", Token: short.Token(), MaxIdle: 40 * time.Second, Idle: 6 * time.Second},
			mortise.IdleHold{Key: "long", Token: long.Token(), MaxIdle: time.Minute, Idle: 16 * time.Second})
		unlock(t, plain)
		unlock(t, long)
		unlock(t, short)
		wants()
		for i := range 101 {
			f.acquire(0, mortise.Request{Key: strconv.Itoa(i), MaxIdle: time.Hour})
		}
		if all := n.Status().Idle; len(all) != 100 || all[0].Key != "0" || all[99].Key != "99" {
			t.Errorf("of 101 locks the status lists %d: %+v", len(all), all)
		}
	})
}
