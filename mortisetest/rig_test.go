package mortisetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

const ttl = 2 * time.Second

// both is a helper that runs a test inside a bubble and, unless -short is given, also outside.
func both(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short")
		}
		t.Parallel()
		test(t)
	})
}

func lock(t *testing.T, node *mortise.Node, key string) *mortise.Lock {
	t.Helper()
	l, err := tryFor(t, node, key, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryFor(t *testing.T, node *mortise.Node, key string, d time.Duration) (*mortise.Lock, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return node.Lock(ctx, key)
}

// later starts a goroutine that locks key, and returns a channel. The goroutine sends the lock on
// the channel, or nil if the lock was not granted.
func later(t *testing.T, node *mortise.Node, key string) <-chan *mortise.Lock {
	granted := make(chan *mortise.Lock, 1)
	go func() {
		l, err := tryFor(t, node, key, 30*time.Second)
		if err != nil {
			t.Error(err)
		}
		granted <- l
	}()
	return granted
}

func unlock(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if l == nil {
		t.FailNow()
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func wantLost(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if err := l.Err(); !errors.Is(err, mortise.ErrLost) {
		t.Fatalf("the holder says %v, want ErrLost", err)
	}
	<-l.Done()
	if err := l.Unlock(t.Context()); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("Unlock of what was lost: %v", err)
	}
}
