package hosts

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// releaseFunc is globallock.ReleaseFunc of Gitea.
type releaseFunc func()

// giteaLocks has the methods of globallock.Locker in go-gitea/gitea, modules/globallock/locker.go
// at 1d7eaef20429d4c3043e6493d712259b2da9e342. A Gitea that you build returns it from
// globallock.DefaultLocker in each instance.
type giteaLocks struct {
	node *mortise.Node

	mu   sync.Mutex // guards held
	held map[string]*mortise.Lock
}

const giteaPrefix = "gitea/"

func newGiteaLocks(node *mortise.Node) *giteaLocks {
	return &giteaLocks{node: node, held: map[string]*mortise.Lock{}}
}

// Lock waits in the queue of the key. The result is never nil, and may be called several times.
func (g *giteaLocks) Lock(ctx context.Context, key string) (releaseFunc, error) {
	lock, err := g.node.Lock(ctx, giteaPrefix+key)
	if err != nil {
		return func() {}, err
	}
	return g.keep(key, lock), nil
}

// TryLock returns false without an error if the lock is held.
func (g *giteaLocks) TryLock(ctx context.Context, key string) (bool, releaseFunc, error) {
	lock, err := g.node.TryLock(ctx, giteaPrefix+key)
	if errors.Is(err, mortise.ErrHeld) {
		return false, func() {}, nil
	}
	if err != nil {
		return false, func() {}, err
	}
	return true, g.keep(key, lock), nil
}

// Unlock is for code that has no releaseFunc. It releases the lock of this instance, and does
// nothing if this instance does not hold the key, as with Gitea's locks in Redis.
func (g *giteaLocks) Unlock(_ context.Context, key string) error {
	g.mu.Lock()
	lock := g.held[key]
	g.mu.Unlock()
	if lock != nil {
		g.release(key, lock)
	}
	return nil
}

func (g *giteaLocks) keep(key string, lock *mortise.Lock) releaseFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[key] = lock
	return func() { g.release(key, lock) }
}

// release does nothing if the lock was released before. The context of the caller may have ended,
// so it is not used.
func (g *giteaLocks) release(key string, lock *mortise.Lock) {
	g.mu.Lock()
	if g.held[key] == lock {
		delete(g.held, key)
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = lock.Unlock(ctx) // a lost lock is free already; without a majority, it is freed later
}

func TestGiteaLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		var all []*giteaLocks
		for i := range cluster.Len() {
			all = append(all, newGiteaLocks(cluster.Node(i)))
		}
		try := func(i int, want bool) releaseFunc {
			t.Helper()
			is, release, err := all[i].TryLock(t.Context(), "repo_working_7")
			if is != want || err != nil || release == nil {
				t.Errorf("instance %d: %v, %v, want %v", i, is, err, want)
			}
			return release
		}
		first := try(0, true)
		refused := try(1, false)
		refused()
		if err := all[1].Unlock(t.Context(), "repo_working_7"); err != nil {
			t.Error(err)
		}
		try(2, false) // neither call of instance 1 has released the lock of instance 0
		first()
		second := try(1, true)
		first() // the second call does not release the next lock
		try(2, false)
		if err := all[1].Unlock(t.Context(), "repo_working_7"); err != nil {
			t.Error(err)
		}
		third := try(0, true)
		second()
		try(2, false)

		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		given, err := all[1].Lock(ended, "repo_working_7")
		if !errors.Is(err, context.DeadlineExceeded) || given == nil {
			t.Errorf("a caller that gives up: %v", err)
		}
		given()
		cluster.Kill(0)
		fourth, err := all[2].Lock(t.Context(), "repo_working_7") // waits until the session has expired
		if err != nil {
			t.Fatal(err)
		}
		third() // of the killed instance
		try(1, false)
		fourth()
		try(1, true)()
	})
}
