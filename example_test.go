package mortise_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/mortise-lock/mortise"
)

// A node without Join is a group of its own: for a laptop and for tests.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Leave(ctx)

	lock, err := node.Lock(ctx, "orders/42") // waits its turn
	if err != nil {
		log.Fatal(err)
	}
	charge(lock.Context(ctx), lock.Token()) // the context ends if the lock is lost
	if err := lock.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: charged
}

func charge(ctx context.Context, token mortise.Token) {
	if ctx.Err() == nil && token > 0 {
		fmt.Println("charged")
	}
}

// Do cannot leak a lock: it unlocks when the function returns, or panics.
func ExampleNode_Do() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Leave(ctx)

	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		charge(ctx, token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// charged
	// <nil>
}

// TryLock never queues; its error says who holds the lock.
func ExampleNode_TryLock() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{Name: "orders-0"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Leave(ctx)
	if err := node.Ready(ctx); err != nil {
		log.Fatal(err)
	}

	lock, err := node.TryLock(ctx, "nightly report")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)

	_, err = node.TryLock(ctx, "nightly report")
	var held *mortise.HeldError
	if errors.As(err, &held) {
		fmt.Printf("held by %s, %d waiting\n", held.Holder, held.Waiters)
	}
	// Output: held by orders-0, 0 waiting
}

// Several replicas get the same configuration.
func ExampleConfig() {
	config := mortise.Config{
		Bind:     ":7947",
		Join:     []string{"orders-0.orders:7947", "orders-1.orders:7947", "orders-2.orders:7947"},
		Founders: []string{"orders-0", "orders-1", "orders-2"}, // or Replicas: 3
		Secret:   os.Getenv("ORDERS_LOCK_SECRET"),              // openssl rand -hex 32, the same for all
	}
	fmt.Println(len(config.Join), "addresses")
	// Output: 3 addresses
}
