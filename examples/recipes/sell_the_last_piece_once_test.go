package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
)

// Nine customers on three instances want to buy the same chair. One succeeds. The others learn
// immediately that another buyer is at the checkout.
func Example_sellTheLastPieceOnce() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "shop-0", "shop-1", "shop-2")
	defer stop()

	var bought, told atomic.Int32
	var others, buyers sync.WaitGroup
	others.Add(8)
	for i := range 9 {
		buyers.Go(func() {
			// If no Value is needed, use nodes[i%3].TryLock(ctx, "orders/chair").
			lock, err := nodes[i%3].Acquire(ctx, mortise.Request{Key: "orders/chair", Try: true,
				Value: fmt.Sprintf("buyer %d", i)})
			var held *mortise.HeldError
			switch {
			case errors.As(err, &held):
				if strings.HasPrefix(held.Value, "buyer ") { // show "sorry, buyer 3 is at the checkout"
					told.Add(1)
				}
				others.Done()
			case err != nil:
				log.Panic(err) // mortise.ErrNotReady: ask the buyer to try again
			default:
				others.Wait() // stands for the payment; lasts until the other buyers have tried
				bought.Add(1)
				check(lock.Unlock(ctx))
			}
		})
	}
	buyers.Wait()
	fmt.Println(bought.Load(), "bought it")
	fmt.Println(told.Load(), "learned which buyer is ahead")
	// Output:
	// 1 bought it
	// 8 learned which buyer is ahead
}
