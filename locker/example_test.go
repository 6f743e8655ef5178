package locker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

// Orders is a service that needs locks and uses any Locker.
type Orders struct {
	locks locker.Locker
	paid  map[string]mortise.Token
}

// Pay charges an order once.
func (o *Orders) Pay(ctx context.Context, id string) error {
	return o.locks.Do(ctx, "orders/"+id, func(ctx context.Context, token mortise.Token) error {
		if o.paid[id] != 0 {
			return fmt.Errorf("order %s is paid already", id)
		}
		o.paid[id] = token
		return ctx.Err()
	})
}

// A service that takes a Locker gets a node in production and a Local in its test.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	production := &Orders{locks: node, paid: map[string]mortise.Token{}}
	fmt.Println(production.Pay(ctx, "42"))

	underTest := &Orders{locks: new(locker.Local), paid: map[string]mortise.Token{}}
	fmt.Println(underTest.Pay(ctx, "42"))
	fmt.Println(underTest.Pay(ctx, "42"))
	// Output:
	// <nil>
	// <nil>
	// order 42 is paid already
}

// The move from an old lock service: instances that hold both locks exclude instances that hold
// only the old lock, and instances that hold only the new lock.
func ExampleBoth() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	var service locker.Local // in place of the client of the old service
	old := locker.Func(func(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
		return service.Do(ctx, key, func(ctx context.Context, token mortise.Token) error {
			fmt.Println("old lock of", key)
			defer fmt.Println("old unlock of", key)
			return fn(ctx, token)
		})
	})
	both, err := locker.NewBoth(locker.BothConfig{First: old, Second: node, Authority: locker.FirstLock})
	if err != nil {
		panic(err)
	}
	err = both.Do(ctx, "orders/42", func(_ context.Context, token mortise.Token) error {
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

// Two tenants share a node. Each may hold and wait for a limited number of locks at a time.
func ExampleRouter() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	locks, err := locker.NewRouter(
		locker.Route{Prefix: "acme/", Locker: node, MaxHolds: 1, MaxWaiting: 10},
		locker.Route{Prefix: "umbrella/", Locker: node, MaxHolds: 100, MaxWaiting: 1000},
	)
	if err != nil {
		panic(err)
	}
	work := func(context.Context, mortise.Token) error { return nil }
	err = locks.Do(ctx, "acme/1", func(ctx context.Context, _ mortise.Token) error {
		err := locks.Do(ctx, "acme/2", work)
		fmt.Println(err)
		fmt.Println(errors.Is(err, mortise.ErrOverloaded), locks.Do(ctx, "umbrella/1", work))
		return nil
	})
	fmt.Println(err, locks.Do(ctx, "acme/2", work))
	// Output:
	// locker: route "acme/" has reached its MaxHolds of 1 calls (lock "acme/2")
	// true <nil>
	// <nil> <nil>
}

// A nightly report must be made at least once, and may be made by two instances. Without a
// quorum, each instance falls back to a lock in its own process, and reports this.
func ExampleBreaker() {
	ctx := context.Background()
	down := locker.Func(func(context.Context, string, func(context.Context, mortise.Token) error) error {
		return fmt.Errorf("%w: no quorum", mortise.ErrNotReady)
	})
	locks, err := locker.NewBreaker(locker.BreakerConfig{
		Locker: down, Wait: 5 * time.Second, Failures: 2, Fallback: new(locker.Local),
		OnChange: func(c locker.Change) { fmt.Println("the breaker is", c.To, "-", c.Cause) },
	})
	if err != nil {
		panic(err)
	}
	for range 3 {
		err := locks.Do(ctx, "nightly report", func(ctx context.Context, _ mortise.Token) error {
			fmt.Println("report, via", locker.Via(ctx))
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

// A Locker that calls TryLock several times. A caller that begins later may get the lock first.
func ExampleRetry() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	try := locker.Func(func(ctx context.Context, key string,
		fn func(context.Context, mortise.Token) error) (err error) {
		lock, err := node.TryLock(ctx, key)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
		return fn(lock.Context(ctx), lock.Token())
	})
	locks, err := locker.NewRetry(locker.RetryConfig{Locker: try, Attempts: 3, Pause: time.Millisecond})
	if err != nil {
		panic(err)
	}
	err = locks.Do(ctx, "nightly report", func(context.Context, mortise.Token) error {
		// this stands for a call of another instance
		err := locks.Do(ctx, "nightly report", func(context.Context, mortise.Token) error { return nil })
		fmt.Println(errors.Is(err, mortise.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// Readers of a catalogue share its lock, through the same wrappers as the writer.
func ExampleRequests() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	shared, err := locker.NewRequests(node, func(string) mortise.Request { return mortise.Request{Shared: true} })
	if err != nil {
		panic(err)
	}
	readers, err := locker.NewRetry(locker.RetryConfig{Locker: shared})
	if err != nil {
		panic(err)
	}
	fmt.Println(readers.Do(ctx, "catalogue", func(ctx context.Context, _ mortise.Token) error {
		fmt.Println("one of several readers")
		return ctx.Err()
	}))
	// Output:
	// one of several readers
	// <nil>
}
