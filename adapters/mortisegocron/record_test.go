package mortisegocron

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

// TestTheRecordOfAJob takes more ticks than a record has, in two instances by turns, and compares
// the record, the lock and what the instances report after each.
func TestTheRecordOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx := mortisetest.New(t, 2), t.Context()
		for prefix, key := range map[string]string{"": "gocron/job", "other/": "other/job"} {
			var all []*Locker
			for i := range 2 {
				all = append(all, NewLocker(c.Node(i), tick.Every(2*time.Second), Options{Prefix: prefix}))
			}
			var ticks []string
			for i := range maxTaken + 3 {
				time.Sleep(time.Until(time.Now().Truncate(2 * time.Second).Add(2 * time.Second)))
				at, l, other := time.Now().UTC(), all[i%2], all[1-i%2]
				ticks = append(ticks, name(at))
				lock, err := l.Lock(ctx, "job")
				if err != nil {
					t.Fatal(err)
				}
				_, taken := other.Lock(ctx, "job")
				if want := fmt.Sprintf(`mortisegocron: job "job" does not run here, for the tick %s: %v`, name(at),
					ErrTaken); !errors.Is(taken, ErrTaken) || taken.Error() != want {
					t.Errorf("%v, want %s", taken, want)
				}
				data, _, err := c.Node(0).Get(ctx, key)
				if want := strings.Join(ticks[max(0, len(ticks)-maxTaken):], " "); err != nil || string(data) != want {
					t.Fatalf("the record is %q, %v, want %q", data, err, want)
				}
				info, err := c.Node(0).Peek(ctx, key)
				if err != nil || info.Held != 1 || info.Queue[0].Token != l.Held("job").Token() ||
					fmt.Sprint(info.Queue[0].Labels) != "map[mortise.purpose:job]" {
					t.Fatalf("%+v, %v", info, err)
				}
				if !l.Tick("job").Equal(at) || l.Tick("job").Location() != time.UTC || l.Tick("x") != (time.Time{}) ||
					l.Held("x") != nil || other.Held("job") != nil || !other.Tick("job").IsZero() {
					t.Errorf("tick %v of %v", l.Tick("job"), at)
				}
				if err := lock.Unlock(ctx); err != nil || l.Held("job") != nil || !l.Tick("job").IsZero() {
					t.Errorf("after Unlock: %v, %v, %v", err, l.Held("job"), l.Tick("job"))
				}
			}
		}
	})
}

// TestHowLongLockWaits tries calls that cannot get their lock: because the job runs, because the
// group cannot answer, and because the node is closed.
func TestHowLongLockWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), t.Context()
		running := NewLocker(c.Node(1), tick.Every(time.Minute), Options{})
		next := func() { time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))) }
		next()
		if _, err := running.Lock(ctx, "job"); err != nil {
			t.Fatal(err)
		}
		try := func(what string, want time.Duration, is error, o Options) {
			t.Helper()
			begin := time.Now()
			_, err := NewLocker(c.Node(0), tick.Every(time.Minute), o).Lock(ctx, "job")
			if took := time.Since(begin); took < want || took > want+10*time.Millisecond || !errors.Is(err, is) {
				t.Errorf("%s: %v after %v, want %v after %v", what, err, took, is, want)
			}
		}
		next()
		try("it runs", 5*time.Second, context.DeadlineExceeded, Options{})
		next()
		try("it runs, with a Late of 3 s", 3*time.Second, context.DeadlineExceeded, Options{Late: 3 * time.Second})
		next()
		try("it runs, with a Late of an hour", 30*time.Second, context.DeadlineExceeded, Options{Late: time.Hour})
		c.Isolate(0)
		next()
		try("cut off", 5*time.Second, context.DeadlineExceeded, Options{})
		c.Heal()
		c.Ready(0)
		if err := c.Node(0).Close(); err != nil {
			t.Fatal(err)
		}
		next()
		try("closed", 0, mortise.ErrClosed, Options{})
	})
}

// TestPutConflicts lets many instances record different runs of one job at the same moment. Each
// is recorded once.
func TestPutConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx := mortisetest.New(t, 3), t.Context()
		locks := make(chan gocron.Lock)
		const n = 9
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(20 * time.Second))) // beside all ticks
		begin := time.Now()
		for i := range n {
			l := NewLocker(c.Node(i%3), tick.Every(time.Hour), Options{
				Now: func() time.Time { return time.Now().Add(time.Duration(i) * 10 * time.Second) }})
			go func() {
				lock, err := l.Lock(ctx, "job")
				if err != nil {
					t.Error(err)
				}
				locks <- lock
			}()
		}
		for range n {
			if err := (<-locks).Unlock(ctx); err != nil {
				t.Error(err)
			}
		}
		data, _, err := c.Node(0).Get(ctx, "gocron/job")
		seen := map[string]bool{}
		for _, turn := range strings.Fields(string(data)) {
			seen[turn] = true
		}
		for i := range n {
			if at := begin.Add(time.Duration(i) * 10 * time.Second).Round(5 * time.Second); !seen["+"+name(at)] {
				t.Errorf("the run at %s is not recorded", name(at))
			}
		}
		if len(seen) != n || err != nil {
			t.Errorf("%d runs are recorded: %q, %v", len(seen), data, err)
		}
	})
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		lock, err := NewLocker(c.Node(0), tick.Every(time.Minute), Options{}).Lock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = all[:1] // the context of Unlock is that of the caller
		if len(all) != 1 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
