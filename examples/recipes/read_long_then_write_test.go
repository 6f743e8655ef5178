package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// The yearly stocktaking compares a long list with the shelves, and corrects it at the end. Shops
// read the list meanwhile. A second stocktaking must not begin, because both would correct the same
// faults. So the caller asks for an upgradable lock: it is beside readers, and becomes exclusive
// for the correction only. An exclusive lock from the beginning would keep the shops out for hours.
func Example_readLongThenWrite() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()

	stocktaking, err := node.Acquire(ctx, mortise.Request{Key: "stocklist", Mode: mortise.Upgradable})
	check(err)
	shop, err := node.RLock(ctx, "stocklist")
	check(err)
	fmt.Println("a shop reads during the stocktaking:", shop.Err() == nil)
	_, err = node.Acquire(ctx, mortise.Request{Key: "stocklist", Mode: mortise.Upgradable, Try: true})
	fmt.Println("a second stocktaking must wait:", errors.Is(err, mortise.ErrHeld))

	// The upgrade waits until all shops have finished reading, and lets no other in.
	upgraded := make(chan *mortise.Lock, 1)
	go func() {
		lock, err := stocktaking.Upgrade(ctx)
		check(err)
		upgraded <- lock
	}()
	check(shop.Unlock(ctx))
	writer := <-upgraded
	_, err = node.Acquire(ctx, mortise.Request{Key: "stocklist", Mode: mortise.Shared, Try: true})
	fmt.Println("no shop reads during the correction:", errors.Is(err, mortise.ErrHeld))
	fmt.Println("only the new token belongs to what is written:", writer.Token() > shop.Token())

	// The step back: shops read again, and the stocktaking may go on.
	check(writer.Unlock(ctx))
	shop, err = node.RLock(ctx, "stocklist")
	check(err)
	fmt.Println("after the correction both read:", shop.Err() == nil && stocktaking.Err() == nil)
	check(shop.Unlock(ctx))
	check(stocktaking.Unlock(ctx))
	// Output:
	// a shop reads during the stocktaking: true
	// a second stocktaking must wait: true
	// no shop reads during the correction: true
	// only the new token belongs to what is written: true
	// after the correction both read: true
}
