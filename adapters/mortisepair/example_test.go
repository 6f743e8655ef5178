package mortisepair_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/adapters/mortisepair"
	"github.com/mortise-lock/mortise/locker"
)

// The move from an old lock service: instances that hold both locks exclude instances that hold
// only the old lock, and instances that hold only the new lock.
func ExampleBoth() {
	ctx := context.Background()
	var node locker.Local    // in place of the *mortise.Node
	var service locker.Local // in place of the client of the old service
	old := locker.Func(func(ctx context.Context, key string, fn func(context.Context, locker.Token) error) error {
		return service.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
			fmt.Println("old lock of", key)
			defer fmt.Println("old unlock of", key)
			return fn(ctx, token)
		})
	})
	both, err := mortisepair.NewBoth(mortisepair.BothConfig{First: old, Second: &node,
		Authority: mortisepair.FirstLock})
	if err != nil {
		panic(err)
	}
	err = both.Do(ctx, "orders/42", func(_ context.Context, token locker.Token) error {
		fmt.Println("charged under both, with the old token", token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// old lock of orders/42
	// charged under both, with the old token 1
	// old unlock of orders/42
	// <nil>
}

// A nightly report must be made at least once, and may be made by two instances. Without a
// quorum, each instance falls back to a lock in its own process, and reports this.
func ExampleBreaker() {
	ctx := context.Background()
	down := locker.Func(func(context.Context, string, func(context.Context, locker.Token) error) error {
		return fmt.Errorf("%w: no quorum", locker.ErrNotReady)
	})
	locks, err := mortisepair.NewBreaker(mortisepair.BreakerConfig{
		Locker: down, Wait: 5 * time.Second, Failures: 2, Fallback: new(locker.Local),
		OnChange: func(c mortisepair.Change) { fmt.Println("the breaker is", c.To, "-", c.Cause) },
	})
	if err != nil {
		panic(err)
	}
	for range 3 {
		err := locks.Do(ctx, "nightly report", func(ctx context.Context, _ locker.Token) error {
			fmt.Println("report, via", mortisepair.Via(ctx))
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// mortise: the group cannot answer now: no quorum
	// the breaker is open - mortise: the group cannot answer now: no quorum
	// report, via [fallback]
	// <nil>
	// report, via [fallback]
	// <nil>
}
