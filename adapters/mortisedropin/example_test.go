package mortisedropin_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/concurrency"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redislock"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redsync"
)

// Code for redsync: only the import and the argument of New have changed.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	rs := redsync.New(node) // was: a pool of Redis connections
	mutex := rs.NewMutex("report", redsync.WithTries(10))
	if err := mutex.LockContext(ctx); err != nil {
		panic(err)
	}
	other := rs.NewMutex("report")
	var taken *redsync.ErrTaken
	fmt.Println("taken:", errors.As(other.TryLock(), &taken))
	ok, err := mutex.UnlockContext(ctx)
	fmt.Println("unlocked:", ok, err)
	// Output:
	// taken: true
	// unlocked: true <nil>
}

// Code for redislock.
func Example_redislock() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	locker := redislock.New(node) // was: a client of Redis
	lock, err := locker.Obtain(ctx, "report", time.Minute, &redislock.Options{Metadata: "orders-0"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = lock.Release(ctx) }()
	_, err = locker.Obtain(ctx, "report", time.Minute, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(10*time.Millisecond), 3),
	})
	fmt.Println("not obtained:", errors.Is(err, redislock.ErrNotObtained))
	ttl, err := lock.TTL(ctx)
	fmt.Println("more than 50 s left:", ttl > 50*time.Second, err)
	// Output:
	// not obtained: true
	// more than 50 s left: true <nil>
}

// Code for etcd's package concurrency.
func Example_concurrency() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	session, err := concurrency.NewSession(node, concurrency.WithTTL(5)) // was: a client of etcd
	if err != nil {
		panic(err)
	}
	defer func() { _ = session.Close() }()
	mutex := concurrency.NewMutex(session, "orders/42")
	if err := mutex.Lock(ctx); err != nil {
		panic(err)
	}
	err = concurrency.NewMutex(session, "orders/42").TryLock(ctx)
	fmt.Println("locked:", errors.Is(err, concurrency.ErrLocked))
	fmt.Println("unlocked:", mutex.Unlock(ctx))

	election := concurrency.NewElection(session, "orders/leader")
	if err := election.Campaign(ctx, "10.0.0.7:8080"); err != nil {
		panic(err)
	}
	leader, err := election.Leader(ctx)
	fmt.Println("leader:", string(leader.Kvs[0].Value), err)
	fmt.Println("resigned:", election.Resign(ctx))
	// Output:
	// locked: true
	// unlocked: <nil>
	// leader: 10.0.0.7:8080 <nil>
	// resigned: <nil>
}
