package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Any number of readers may read the price list concurrently, and a writer excludes all others.
// Later readers do not overtake a waiting writer.
func Example_manyReadersOneWriter() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()

	one, err := node.RLock(ctx, "pricelist")
	check(err)
	two, err := node.RLock(ctx, "pricelist")
	check(err)
	fmt.Println("two read:", one.Err() == nil && two.Err() == nil)
	_, err = node.TryLock(ctx, "pricelist")
	fmt.Println("a writer must wait:", errors.Is(err, mortise.ErrHeld))
	check(one.Unlock(ctx))
	check(two.Unlock(ctx))

	writer, err := node.Lock(ctx, "pricelist")
	check(err)
	_, err = node.Acquire(ctx, mortise.Request{Key: "pricelist", Mode: mortise.Shared, Try: true})
	fmt.Println("a reader must wait:", errors.Is(err, mortise.ErrHeld))
	fmt.Println("the writer's token is higher than the readers':", writer.Token() > max(one.Token(), two.Token()))

	// The writer sends the list it has written to the shops. Meanwhile others may read it, but none
	// may change it.
	check(writer.Downgrade(ctx))
	three, err := node.RLock(ctx, "pricelist")
	check(err)
	fmt.Println("after the downgrade both read:", writer.Err() == nil && three.Err() == nil)
	check(three.Unlock(ctx))
	check(writer.Unlock(ctx))
	// Output:
	// two read: true
	// a writer must wait: true
	// a reader must wait: true
	// the writer's token is higher than the readers': true
	// after the downgrade both read: true
}
