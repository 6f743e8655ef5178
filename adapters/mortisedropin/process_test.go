package mortisedropin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/concurrency"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redislock"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redsync"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, takeAll) }

// takeAll runs in a process of its own. It takes a lock with each package, and keeps them.
func takeAll(ctx context.Context, node *mortise.Node) error {
	session, err := concurrency.NewSession(node, concurrency.WithTTL(2))
	if err != nil {
		return err
	}
	if err := concurrency.NewMutex(session, "etcd").Lock(ctx); err != nil {
		return err
	}
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Second)}
	if _, err := redislock.Obtain(ctx, node, "redislock", time.Hour, options); err != nil {
		return err
	}
	mutex := redsync.New(node).NewMutex("redsync", redsync.WithTries(1000), redsync.WithExpiry(time.Hour))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	fmt.Println("has all locks")
	return nil
}

// The process that has the locks is killed. Another one gets them when its sessions have expired,
// long before the expiry of an hour.
func TestAProcessIsKilled(t *testing.T) {
	f := trio.Start(t)
	first := f.Await(1, "has all locks")[0]
	f.Kill(first)
	if got := f.Await(2, "has all locks"); got[1] == first {
		t.Errorf("process %d is dead", first)
	}
}
