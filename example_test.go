package mortise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// A node without Join is a group by itself, for a laptop and for tests.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	lock, err := node.Lock(ctx, "orders/42") // waits until the lock is granted
	if err != nil {
		panic(err)
	}
	charge(lock.Context(ctx), lock.Token()) // the context ends if the lock is lost
	if err := lock.Unlock(ctx); err != nil {
		panic(err)
	}
	// Output: charged
}

func charge(ctx context.Context, token mortise.Token) {
	if ctx.Err() == nil && token > 0 {
		fmt.Println("charged")
	}
}

// Do always releases the lock: it unlocks when the function returns or panics.
func ExampleNode_Do() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		charge(ctx, token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// charged
	// <nil>
}

// A goroutine profile, such as that of /debug/pprof/goroutine?debug=1, names the holder: the
// goroutine of the work, and those that it starts, have the key and the token as labels.
func ExampleNode_Do_goroutineProfile() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		labels := pprof.Labels("lock", "orders/42", "token", strconv.FormatUint(uint64(token), 10))
		pprof.Do(ctx, labels, func(ctx context.Context) { charge(ctx, token) })

		var profile strings.Builder // a look from inside, for this example
		pprof.Do(ctx, labels, func(context.Context) { _ = pprof.Lookup("goroutine").WriteTo(&profile, 1) })
		fmt.Println(strings.Contains(profile.String(), `"lock":"orders/42", "token":"`))
		return nil
	})
	fmt.Println(err)
	// Output:
	// charged
	// true
	// <nil>
}

// With JeopardyGrace, a lock can be good again after an outage of the whole group. The work stops
// when the context ends, and begins again with a new context.
func ExampleLock_Regain() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	lock, err := node.Acquire(ctx, mortise.Request{Key: "orders/42", JeopardyGrace: time.Minute})
	if err != nil {
		panic(err)
	}
	for again := true; again; {
		charge(lock.Context(ctx), lock.Token())
		again = errors.Is(lock.Err(), mortise.ErrInJeopardy) && lock.Regain(ctx) == nil
	}
	fmt.Println(lock.Unlock(ctx)) // ErrLost if the lock was lost
	// Output:
	// charged
	// <nil>
}

// TryLock never waits in the queue. Its error names the holder.
func ExampleNode_TryLock() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{Name: "orders-0"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	if err := node.Ready(ctx); err != nil {
		panic(err)
	}

	lock, err := node.TryLock(ctx, "nightly report")
	if err != nil {
		panic(err)
	}
	defer func() { _ = lock.Unlock(ctx) }()

	_, err = node.TryLock(ctx, "nightly report")
	var held *mortise.HeldError
	if errors.As(err, &held) {
		fmt.Printf("held by %s, %d waiting\n", held.Holder, held.Waiters)
	}
	// Output: held by orders-0, 0 waiting
}

// A service can read its configuration from the environment, as a Deployment of Kubernetes sets it.
// The error names every variable with a mistake.
func ExampleConfigFromEnv() {
	os.Setenv("ORDERS_LOCK_JOIN", "dns:///orders-lock:7947") // a headless Service
	os.Setenv("ORDERS_LOCK_REPLICAS", "3")
	os.Setenv("ORDERS_LOCK_SECRET_FILE", "testdata/example.secret")

	config, err := mortise.ConfigFromEnv("ORDERS_LOCK")
	if err != nil {
		panic(err)
	}
	fmt.Println(config.Join[0], config.Replicas, len(config.Secret) >= 16)

	os.Setenv("ORDERS_LOCK_REPLICSA", "5")
	_, err = mortise.ConfigFromEnv("ORDERS_LOCK")
	fmt.Println(err)
	// Output:
	// dns:///orders-lock:7947 3 true
	// mortise: the environment has 1 mistake(s):
	// ORDERS_LOCK_REPLICSA: there is no such setting: is ORDERS_LOCK_REPLICAS meant?
}

// All instances that found the group get the same configuration.
func ExampleConfig() {
	config := mortise.Config{
		Bind:     ":7947",
		Join:     []string{"orders-0.orders:7947", "orders-1.orders:7947", "orders-2.orders:7947"},
		Founders: []string{"orders-0", "orders-1", "orders-2"}, // or Replicas: 3
		// A secret made by `mortise secret`, the same for all founders.
		Secret: os.Getenv("ORDERS_LOCK_SECRET"),
	}
	fmt.Println(len(config.Join), "addresses")
	// Output: 3 addresses
}
