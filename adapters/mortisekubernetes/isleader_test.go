package mortisekubernetes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// watched is a candidate whose IsLeader is compared with its lock.
type watched struct {
	*candidate
	lock *Lock
}

func (w watched) holds() bool { l := w.lock.Held(); return l != nil && l.Err() == nil }

// pod runs a candidate of node i.
func pod(c *mortisetest.Cluster, l *leaders, i int, identity string, release bool) watched {
	lock := New(c.Node(i), key, identity, Options{})
	return watched{l.run(lock, usual, release), lock}
}

// never fails the test if a candidate takes itself for the leader without the lock within d.
func never(t *testing.T, d time.Duration, all ...watched) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for i, w := range all {
			if w.IsLeader() && !w.holds() {
				t.Fatalf("%v before the end candidate %d takes itself for the leader without the lock; it sees %q",
					time.Until(end), i, w.GetLeader())
			}
		}
	}
}

// A pod of a StatefulSet is killed while it leads, and starts again under its name.
func TestARestartedPodDoesNotLeadBeforeItHasTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		l, former := &leaders{t: t}, &leaders{t: t}
		first := pod(c, former, 0, "orders-0", true)
		c.Until("it leads", first.holds)
		other := pod(c, l, 1, "orders-1", true)
		c.Kill(0)
		first.stop() // the process is gone
		c.Start(0)
		c.Ready(0)
		again := pod(c, l, 0, "orders-0", true)
		seen := func() string { return again.GetLeader() }
		never(t, 10*time.Second, again, other)
		if seen() != "orders-0"+another || other.GetLeader() != "orders-0" {
			t.Errorf("the restarted pod sees %q, and the other one %q", seen(), other.GetLeader())
		}
		never(t, 2*time.Minute, again, other)
		if again.holds() == other.holds() || !again.IsLeader() && !other.IsLeader() {
			t.Error("not exactly one of them leads")
		}
	})
}

// Two pods have the same identity, for example because both use the network of one machine.
func TestTwoPodsOfOneIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), &leaders{t: t}
		a, b := pod(c, l, 0, "host-1", true), pod(c, l, 1, "host-1", true)
		never(t, time.Minute, a, b)
		if a.holds() == b.holds() || a.IsLeader() == b.IsLeader() || l.count() != 1 {
			t.Errorf("hold %v %v, lead %v %v, %d leaders", a.holds(), b.holds(), a.IsLeader(), b.IsLeader(), l.count())
		}
	})
}

// However a leadership ends, the candidate is at once no leader, also after its elector has
// stopped. A new elector with the same Lock leads again.
func TestIsLeaderEndsWithTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(c *mortisetest.Cluster, w watched)
		release bool
	}{
		"lost":                 {func(c *mortisetest.Cluster, _ watched) { c.Lose(0); c.Ready(0) }, true},
		"lost, no release":     {func(c *mortisetest.Cluster, _ watched) { c.Lose(0); c.Ready(0) }, false},
		"released":             {func(_ *mortisetest.Cluster, w watched) { w.cancel() }, true},
		"stopped, no release":  {func(_ *mortisetest.Cluster, w watched) { w.cancel() }, false},
		"cut off, then ended":  {func(c *mortisetest.Cluster, w watched) { c.Isolate(0); w.cancel() }, true},
		"cut off, then healed": {func(c *mortisetest.Cluster, _ watched) { c.Isolate(0) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
				l := &leaders{t: t}
				w := pod(cluster, l, 0, "orders-0", c.release)
				cluster.Until("it leads", func() bool { return w.IsLeader() && l.count() == 1 })
				never(t, 5*time.Second, w)
				c.end(cluster, w)
				never(t, 40*time.Second, w)
				select {
				case <-w.done:
				default:
					t.Fatal("the elector still runs")
				}
				if w.IsLeader() {
					t.Error("it leads after the end of Run")
				}
				cluster.Heal()
				cluster.Ready(0)
				next := watched{l.run(w.lock, usual, true), w.lock}
				never(t, 40*time.Second, next)
				if !next.holds() || !next.IsLeader() || next.GetLeader() != "orders-0" {
					t.Errorf("the next elector holds the lock: %v, leads: %v, sees %q", next.holds(), next.IsLeader(),
						next.GetLeader())
				}
			})
		})
	}
}

// A candidate that has given up holds nothing later: an elector tries, and does not wait.
func TestACandidateThatHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), &leaders{t: t}
		a := pod(c, l, 0, "orders-0", true)
		c.Until("it leads", a.holds)
		b := pod(c, l, 1, "orders-1", true)
		time.Sleep(5 * time.Second)
		b.stop()
		a.stop()
		time.Sleep(time.Minute)
		if info, err := c.Node(2).Peek(t.Context(), key); err != nil || info.Held > 0 || l.count() != 1 {
			t.Errorf("a minute later %d hold the lock, %d have led: %v", info.Held, l.count(), err)
		}
	})
}

// The errors are of the kinds that code for client-go looks for, and name the key and the cause
// once.
func TestWordsOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), t.Context()
		a, b := New(c.Node(0), key, "a", Options{}), New(c.Node(1), key, "b", Options{})
		if err := a.Create(ctx, record("a")); err != nil {
			t.Fatal(err)
		}
		c.Lose(0)
		c.Ready(0)
		_, _, get := a.Get(ctx)
		for what, err := range map[string]error{"get": get, "create": a.Create(ctx, record("a")),
			"update": a.Update(ctx, record("a")), "create of b": b.Create(ctx, record("b")),
			"update of b": b.Update(ctx, record("b"))} {
			known := slices.ContainsFunc([]func(error) bool{apierrors.IsConflict, apierrors.IsAlreadyExists,
				func(err error) bool { return errors.Is(err, mortise.ErrLost) }}, func(is func(error) bool) bool { return is(err) })
			if text := err.Error(); !known || strings.Count(text, key) != 1 || strings.Count(text, "mortise: ") > 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// An elector also describes its Lock when a release has failed. Only when it has stopped, a
// description is the beginning of the next leadership.
func TestTheIdentityAfterARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		l := New(mortisetest.New(t, 1).Node(0), key, "a", Options{})
		if err := errors.Join(l.Create(ctx, record("a")), l.Update(ctx, record(""))); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			do   func()
			want string
		}{{func() {}, "a" + former}, {func() { l.Describe() }, "a" + former},
			{func() { l.RecordEvent(stopped) }, "a" + former}, {func() { l.Describe() }, "a"}} {
			if step.do(); l.Identity() != step.want {
				t.Errorf("%q, want %q", l.Identity(), step.want)
			}
		}
	})
}
