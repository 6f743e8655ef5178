package mortisepair

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

func nothing(context.Context, locker.Token) error { return nil }

// holdUntil runs Do in the background, and holds the lock until free is called. free returns the
// result of Do. It is for tests in a bubble.
func holdUntil(t *testing.T, l locker.Locker, key string) (free func() error) {
	t.Helper()
	release, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.Do(context.Background(), key, func(context.Context, locker.Token) error { <-release; return nil })
	}()
	synctest.Wait()
	return func() error { close(release); return <-done }
}

// free reports whether nothing holds the lock.
func free(t *testing.T, l locker.Locker, key string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	return l.Do(ctx, key, nothing) == nil
}
