package mortisecertmagic

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/mortise-lock/mortise/internal/lab/trio"
	"github.com/mortise-lock/mortise/mortisetest"
)

// storages returns a Storage on each node, with common files.
func storages(t *testing.T, cluster *mortisetest.Cluster) (all []*Storage) {
	t.Helper()
	files := &certmagic.FileStorage{Path: t.TempDir()}
	for i := range cluster.Len() {
		all = append(all, Wrap(files, cluster.Node(i), Options{}))
	}
	return all
}

// Callers of all instances, two in each, increment a number in a file.
func TestOneHolderAtATime(t *testing.T) {
	const rounds = 20
	all := storages(t, mortisetest.New(t, 3))
	var callers sync.WaitGroup
	for i := range 6 {
		s := all[i%3]
		callers.Go(func() {
			for range rounds {
				if err := s.Lock(t.Context(), "job"); err != nil {
					t.Error(err)
					return
				}
				n, err := s.Load(t.Context(), "n")
				if err != nil && len(n) > 0 {
					t.Error(err)
				}
				if err := s.Store(t.Context(), "n", append(n, '.')); err != nil {
					t.Error(err)
				}
				if err := s.Unlock(t.Context(), "job"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if n, err := all[0].Load(t.Context(), "n"); err != nil || len(n) != 6*rounds {
		t.Errorf("%d, %v, want %d", len(n), err, 6*rounds)
	}
}

func TestTryLock(t *testing.T) {
	all := storages(t, mortisetest.New(t, 3))
	for _, name := range []string{"job", strings.Repeat("x", 600), "with\na line"} {
		if ok, err := all[0].TryLock(t.Context(), name); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := all[1].TryLock(t.Context(), name); ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		if err := all[0].RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := all[1].Lock(ctx, name); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := all[0].Unlock(ctx, name); err != nil {
			t.Error(err)
		}
		if err := all[0].Unlock(t.Context(), name); err == nil {
			t.Error("unlocked twice")
		}
		if err := all[0].RenewLockLease(t.Context(), name, time.Minute); err == nil {
			t.Error("renewed, but not locked")
		}
	}
}

// A lock is lost, and another caller of the same instance is granted the next one. The unlock of
// the first caller does not release it.
func TestALostLockIsNotUnlockedTwice(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	all := storages(t, cluster)
	if err := all[0].Lock(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	cluster.Lose(0)
	<-all[0].held["job"][0].lock.Done()
	if err := all[0].Lock(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Unlock(t.Context(), "job"); err != nil { // by the first caller
		t.Error(err)
	}
	if ok, err := all[1].TryLock(t.Context(), "job"); ok || err != nil {
		t.Errorf("the lock of the second caller is not held: %v, %v", ok, err)
	}
	if err := all[0].Unlock(t.Context(), "job"); err != nil {
		t.Error(err)
	}
}

// Three processes obtain a certificate with CertMagic. The one that has the lock is killed while it
// orders. One of the others orders the certificate, and the third finds it.
func TestAProcessIsKilledInAnOrder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/bait", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := trio.Start(t, "FILES="+dir, "BAIT="+dir+"/bait")
	first := f.Await(1, "inside")[0]
	f.Kill(first)
	f.Await(2, "has a certificate")
	if got := f.Await(1, "ordered"); len(got) != 1 || got[0] == first {
		t.Errorf("ordered by %v", got)
	}
}
