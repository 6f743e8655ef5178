package mortisetusd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// patience limits what must happen. The longest takes a SessionTTL of 2 s.
const patience = time.Minute

// lockOf returns a lock of the upload, from a Locker of node i.
func lockOf(t *testing.T, cluster *mortisetest.Cluster, i int, id string) handler.Lock {
	t.Helper()
	l, err := New(cluster.Node(i), "uploads/").NewLock(id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lockFor locks l within d.
func lockFor(t *testing.T, l handler.Lock, d time.Duration, requestUnlock func()) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel() // tusd ends the context, too, when Lock has returned
	return l.Lock(ctx, requestUnlock)
}

func mustLock(t *testing.T, l handler.Lock, requestUnlock func()) {
	t.Helper()
	if err := lockFor(t, l, patience, requestUnlock); err != nil {
		t.Fatal(err)
	}
}

func mustUnlock(t *testing.T, l handler.Lock) {
	t.Helper()
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

func receive(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// never is the callback of a lock for which no other caller waits.
func never(t *testing.T) func() {
	return func() { t.Error("requestUnlock was called, and no other caller waits") }
}

func TestLockAndUnlock(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	l := lockOf(t, cluster, 0, "one")
	for range 2 {
		mustLock(t, l, never(t))
		other := lockOf(t, cluster, 1, "two")
		mustLock(t, other, never(t)) // another upload
		mustUnlock(t, other)
		mustUnlock(t, l)
	}
	mustUnlock(t, l) // an unlocked lock
	mustLock(t, l, nil)
	mustUnlock(t, l)
}

// The holder is asked once, keeps the lock, and the other caller gets tusd's own error: versions
// before v2.6.0 do not unwrap errors.
func TestTheTimeout(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	asked := make(chan struct{}, 10)
	first := lockOf(t, cluster, 0, "one")
	mustLock(t, first, func() { asked <- struct{}{} })
	for i := 0; i < 3 || len(asked) == 0 && i < 100; i++ { // a try on a busy machine may not reach the leader in time
		err := lockFor(t, lockOf(t, cluster, i%3, "one"), 100*time.Millisecond, never(t))
		if e, is := err.(handler.Error); !is || e.ErrorCode != handler.ErrLockTimeout.ErrorCode {
			t.Errorf("Lock at node %d: %v, want ErrLockTimeout", i%3, err)
		}
	}
	receive(t, "requestUnlock", asked)
	mustUnlock(t, first)
	if len(asked) != 0 {
		t.Error("requestUnlock was called again")
	}
}

func TestTheHolderUnlocksOnRequest(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	for i := range 3 { // on the holder's own node, too
		first, second := lockOf(t, cluster, 0, "one"), lockOf(t, cluster, i, "one")
		done := make(chan struct{})
		mustLock(t, first, func() {
			defer close(done)
			mustUnlock(t, first)
		})
		mustLock(t, second, never(t))
		receive(t, "requestUnlock", done)
		mustUnlock(t, second)
	}
}

// Callers that waited before the holder was granted the lock also ask it for the lock.
func TestAQueueOfCallers(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	const callers = 9
	var wait sync.WaitGroup
	var inside, granted atomic.Int32
	for i := range callers {
		l := lockOf(t, cluster, i%3, "one")
		wait.Go(func() {
			request := make(chan struct{})
			if err := lockFor(t, l, patience, func() { close(request) }); err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two callers hold the lock")
			}
			if granted.Add(1) < callers { // nothing waits for the last one
				select {
				case <-request:
				case <-time.After(patience):
					t.Errorf("a holder was not asked within %v", patience)
				}
			}
			inside.Add(-1)
			mustUnlock(t, l)
		})
	}
	wait.Wait()
}

// A request whose lock is lost is interrupted, because another instance may get the lock.
func TestALostLock(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	lost := make(chan struct{})
	l := lockOf(t, cluster, 0, "one")
	mustLock(t, l, func() { close(lost) })
	cluster.Lose(0)
	receive(t, "requestUnlock", lost)
	if err := l.Unlock(); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	mustUnlock(t, l)
}

// A node that leaves interrupts the requests of its instance, and waits for their Unlock.
func TestANodeLeaves(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	l := lockOf(t, cluster, 0, "one")
	done := make(chan struct{})
	mustLock(t, l, func() {
		defer close(done)
		mustUnlock(t, l)
	})
	if err := cluster.Node(0).Leave(t.Context()); err != nil {
		t.Error(err)
	}
	receive(t, "requestUnlock", done)
	err := lockFor(t, l, patience, never(t))
	if !errors.Is(err, mortise.ErrClosed) || errors.Is(err, handler.ErrLockTimeout) {
		t.Errorf("Lock after Leave: %v, want ErrClosed", err)
	}
}

// Clients choose the ID in a URL, so every ID has a lock.
func TestAllIDsHaveALock(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	long := strings.Repeat("x", 2000)
	for _, id := range []string{"", "a/b/c", "a+b", "a\x00b", "a\xffb", long, long + "y"} {
		l := lockOf(t, cluster, 0, id)
		mustLock(t, l, func() {})
		defer mustUnlock(t, l)
	}
	err := lockFor(t, lockOf(t, cluster, 0, long), 100*time.Millisecond, never(t))
	if !errors.Is(err, handler.ErrLockTimeout) {
		t.Errorf("a long ID twice: %v", err)
	}
}

func TestUseIn(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	composer, l := handler.NewStoreComposer(), New(cluster.Node(0), "uploads/")
	l.UseIn(composer)
	if !composer.UsesLocker || composer.Locker != l {
		t.Error("the composer does not use the Locker")
	}
}
