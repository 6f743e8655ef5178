package mortisekubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

func record(identity string) resourcelock.LeaderElectionRecord {
	now := metav1.NewTime(time.Now())
	return resourcelock.LeaderElectionRecord{HolderIdentity: identity, LeaseDurationSeconds: 15, AcquireTime: now,
		RenewTime: now}
}

// Each method returns the kinds of errors that electors expect.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, ctx := mortisetest.New(t, 3), t.Context()
		a, b := New(cluster.Node(0), key, "a", Options{}), New(cluster.Node(1), key, "b", Options{})
		check := func(what string, err error, is func(error) bool) {
			t.Helper()
			if !is(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		none := func(err error) bool { return err == nil }
		_, _, err := a.Get(ctx)
		check("Get of a free lock", err, apierrors.IsNotFound)
		check("Update of a free lock", a.Update(ctx, record("a")), apierrors.IsConflict)
		check("Create", a.Create(ctx, record("a")), none)
		check("Create of the holder", a.Create(ctx, record("a")), apierrors.IsAlreadyExists)
		check("Create of another candidate", b.Create(ctx, record("b")), apierrors.IsAlreadyExists)
		check("Update of another candidate", b.Update(ctx, record("b")), apierrors.IsConflict)
		check("release of another candidate", b.Update(ctx, record("")), none)
		time.Sleep(5 * time.Second)
		want := record("a")
		check("Update of the holder", a.Update(ctx, want), none)
		got, raw, err := b.Get(ctx)
		check("Get of a taken lock", err, none)
		if got.HolderIdentity != "a" || got.RenewTime.Unix() != want.RenewTime.Unix() || len(raw) == 0 {
			t.Errorf("the record is %+v, not %+v", got, want)
		}
		check("release of the holder", a.Update(ctx, record("")), none)
		_, _, err = b.Get(ctx)
		check("Get after the release", err, apierrors.IsNotFound)
		check("Update after the release", a.Update(ctx, record("a")), apierrors.IsConflict)
		if !errors.Is(a.Held().Err(), mortise.ErrUnlocked) {
			t.Error(a.Held().Err())
		}
	})
}

// The errors of mortise itself are passed on, and are none of the kinds on which an elector acts.
func TestOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, ctx := mortisetest.New(t, 1), t.Context()
		node := cluster.Node(0)
		long := strings.Repeat("x", 1000)
		if err := New(node, key, long, Options{}).Create(ctx, record(long)); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("an identity of 1,000 bytes: %v", err)
		}
		long = long[:300]
		fits := New(node, key, long, Options{})
		if err := errors.Join(fits.Create(ctx, record(long)), fits.Update(ctx, record(""))); err != nil {
			t.Errorf("an identity of 300 bytes: %v", err)
		}
		lock, err := node.Lock(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = fits.Get(ctx)
		if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "not by an elector") {
			t.Errorf("a lock of other code: %v", err)
		}
		if err := lock.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := fits.Create(ended, record(long)); !errors.Is(err, context.Canceled) || fits.leading() != nil {
			t.Errorf("with a context that has ended: %v", err)
		}
		cluster.Kill(0)
		_, _, err = fits.Get(ctx)
		for _, err := range []error{err, fits.Create(ctx, record(long))} {
			if !errors.Is(err, mortise.ErrClosed) {
				t.Errorf("the node is closed: %v", err)
			}
		}
	})
}

// A leader that is cut off and has lost its lock gets its answers at once. Otherwise an elector
// that releases its lock would lead for another RenewDeadline, while the next one begins.
func TestALostLockIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, ctx := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true}), t.Context()
		l := New(cluster.Node(0), key, "a", Options{})
		if err := l.Create(ctx, record("a")); err != nil {
			t.Fatal(err)
		}
		cluster.Isolate(0)
		<-l.Held().Done()
		begin := time.Now()
		_, _, err := l.Get(ctx)
		for _, err := range []error{err, l.Create(ctx, record("a"))} {
			if !errors.Is(err, mortise.ErrLost) || apierrors.IsNotFound(err) {
				t.Errorf("the lock is lost: %v", err)
			}
		}
		if err := l.Update(ctx, record("a")); !apierrors.IsConflict(err) {
			t.Errorf("Update of a lost lock: %v", err)
		}
		if err := l.Update(ctx, record("")); err != nil {
			t.Errorf("release of a lost lock: %v", err)
		}
		if after := time.Since(begin); after > 0 {
			t.Errorf("the answers took %v", after)
		}
	})
}

// The lock of an elector that has stopped without a release stays taken for the LockDelay.
func TestLockDelay(t *testing.T) {
	for _, c := range []struct {
		option, want time.Duration
	}{{0, 16 * time.Second}, {40 * time.Second, 40 * time.Second}, {-1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			cluster, ctx := mortisetest.New(t, 1), t.Context()
			var events []string
			l := New(cluster.Node(0), key, "a", Options{
				LockDelay: c.option, Event: func(event string) { events = append(events, event) }})
			if err := l.Create(ctx, record("a")); err != nil {
				t.Fatal(err)
			}
			l.RecordEvent("became leader")
			begin := time.Now()
			l.RecordEvent(stopped)
			cluster.Await(key, 0, 0)
			if after := time.Since(begin); after < c.want || after > c.want+2*time.Second {
				t.Errorf("LockDelay %v: free after %v", c.option, after)
			}
			if want := []string{"became leader", stopped}; !slices.Equal(events, want) {
				t.Errorf("events: %q", events)
			}
			if l.Held() == nil || l.Held().Err() == nil {
				t.Error("Held is wrong")
			}
		})
	}
}
