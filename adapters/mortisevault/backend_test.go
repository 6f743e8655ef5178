package mortisevault

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/inmem"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// patience limits what must happen. The longest takes a SessionTTL of 2 s.
const patience = time.Minute

func storage(t *testing.T, create func(map[string]string, hclog.Logger) (physical.Backend, error)) physical.Backend {
	t.Helper()
	b, err := create(nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The suites of Vault's SDK, with the two servers on each pair of three nodes.
func TestTheSuites(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	files := storage(t, inmem.NewInmem)
	for i := range 3 {
		for j := range 3 {
			physical.ExerciseHABackend(t, New(cluster.Node(i), files, Options{}), New(cluster.Node(j), files, Options{}))
		}
	}
	physical.ExerciseBackend(t, New(cluster.Node(0), storage(t, inmem.NewInmem), Options{}))
	physical.ExerciseBackend_ListPrefix(t, New(cluster.Node(0), storage(t, inmem.NewInmem), Options{}))
	physical.ExerciseTransactionalBackend(t, New(cluster.Node(0), storage(t, inmem.NewTransactionalInmem), Options{}))
}

func TestTransactionsAreThoseOfTheStorage(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	for want, b := range map[bool]Backend{
		true:  New(cluster.Node(0), storage(t, inmem.NewTransactionalInmem), Options{}),
		false: New(cluster.Node(0), storage(t, inmem.NewInmem), Options{}),
	} {
		if _, is := b.(physical.Transactional); is != want {
			t.Errorf("the Backend is a Transactional: %v, and its storage: %v", is, want)
		}
		if !b.HAEnabled() {
			t.Error("HAEnabled is false")
		}
	}
}

// lockOf returns a lock of node i with the given value. It needs no storage.
func lockOf(t *testing.T, cluster *mortisetest.Cluster, i int, value string, o Options) physical.Lock {
	t.Helper()
	l, err := New(cluster.Node(i), nil, o).LockWith("core/lock", value)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lockIn calls Lock, and fails the test if it does not return in time.
func lockIn(t *testing.T, l physical.Lock, stop <-chan struct{}) (lost <-chan struct{}, err error) {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		lost, err = l.Lock(stop)
	}()
	select {
	case <-returned:
		return lost, err
	case <-time.After(patience):
		t.Fatalf("Lock has not returned within %v", patience)
		return nil, nil
	}
}

func mustLock(t *testing.T, l physical.Lock) <-chan struct{} {
	t.Helper()
	lost, err := lockIn(t, l, nil)
	if err != nil || lost == nil {
		t.Fatalf("Lock: %v, %v", lost, err)
	}
	select {
	case <-lost:
		t.Fatal("the lock is lost")
	default:
	}
	return lost
}

func closes(t *testing.T, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatalf("the channel is not closed within %v", patience)
	}
}

func wantValue(t *testing.T, l physical.Lock, held bool, value string) {
	t.Helper()
	if h, v, err := l.Value(); h != held || v != value || err != nil {
		t.Errorf("Value: %v, %q, %v, want %v, %q", h, v, err, held, value)
	}
}

// The values are read by all servers while a server holds the lock.
func TestTheValue(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, standby := lockOf(t, cluster, 0, "https://first", Options{}), lockOf(t, cluster, 1, "https://standby", Options{})
	wantValue(t, standby, false, "")
	lost := mustLock(t, first)
	wantValue(t, first, true, "https://first")
	wantValue(t, standby, true, "https://first")
	wantValue(t, lockOf(t, cluster, 0, "", Options{Prefix: "another/"}), false, "")
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
	closes(t, lost)
	wantValue(t, first, false, "")
}

func TestASecondLock(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	l := lockOf(t, cluster, 0, "", Options{})
	if err := l.Unlock(); err != nil {
		t.Errorf("Unlock of an unlocked lock: %v", err)
	}
	mustLock(t, l)
	if lost, err := lockIn(t, l, nil); err == nil || lost != nil {
		t.Errorf("a second Lock: %v, %v", lost, err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
	long := lockOf(t, cluster, 0, strings.Repeat("x", 2000), Options{})
	if lost, err := lockIn(t, long, nil); lost != nil || !errors.Is(err, mortise.ErrBadRequest) {
		t.Errorf("a long value: %v, %v", lost, err)
	}
}

func TestStopEndsTheWait(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, second := lockOf(t, cluster, 0, "", Options{}), lockOf(t, cluster, 1, "", Options{})
	mustLock(t, first)
	stop := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	if lost, err := lockIn(t, second, stop); lost != nil || err != nil {
		t.Errorf("Lock: %v, %v, want nil, nil", lost, err)
	}
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
	// It waits no more. The leader may learn that after the end of the first.
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if held, _, err := second.Value(); err != nil || held && time.Now().After(until) {
			t.Fatalf("Value: %v, %v", held, err)
		} else if !held {
			break
		}
	}
}

// The channel closes when the lock is lost, and the lock can then be locked again.
func TestTheLoss(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	l := lockOf(t, cluster, 0, "", Options{})
	lost := mustLock(t, l)
	cluster.Lose(0)
	closes(t, lost)
	if err := l.Unlock(); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	lost = mustLock(t, l)
	cluster.Lose(0)
	closes(t, lost)
	mustLock(t, l) // without an Unlock
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
}

// A server steps down when its node begins to leave, and a standby is granted the lock.
func TestANodeLeaves(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, standby := lockOf(t, cluster, 0, "first", Options{}), lockOf(t, cluster, 1, "standby", Options{})
	lost := mustLock(t, first)
	left := make(chan error, 1)
	go func() { left <- cluster.Node(0).Leave(t.Context()) }()
	closes(t, lost)
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	mustLock(t, standby)
	wantValue(t, standby, true, "standby")
	if err := standby.Unlock(); err != nil {
		t.Error(err)
	}
	if _, err := lockIn(t, first, nil); !errors.Is(err, mortise.ErrClosed) {
		t.Errorf("Lock after Leave: %v, want ErrClosed", err)
	}
}
