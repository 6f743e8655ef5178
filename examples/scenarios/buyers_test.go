package scenarios_test

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

// Many buyers of one piece: nine people on three instances want to check out the same chair. One
// can; the others are told at once who is at it, instead of waiting in a queue for something that
// will be gone.
func Example_manyBuyers() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "shop-0", "shop-1", "shop-2")
	defer stop()

	var bought, told atomic.Int32
	var others, buyers sync.WaitGroup
	others.Add(8)
	for i := range 9 {
		buyers.Go(func() {
			// Without a Value it is nodes[i%3].TryLock(ctx, "orders/chair").
			lock, err := nodes[i%3].Acquire(ctx, mortise.Request{Key: "orders/chair", Try: true,
				Value: fmt.Sprintf("buyer %d", i)})
			var held *mortise.HeldError
			switch {
			case errors.As(err, &held):
				if strings.HasPrefix(held.Value, "buyer ") { // "sorry, buyer 3 is at the checkout"
					told.Add(1)
				}
				others.Done()
			case err != nil:
				log.Panic(err) // mortise.ErrNotReady: nobody can tell, ask the buyer to come again
			default:
				others.Wait() // he pays; here for as long as it takes the others to ask
				bought.Add(1)
				check(lock.Unlock(ctx))
			}
		})
	}
	buyers.Wait()
	fmt.Println(bought.Load(), "bought it")
	fmt.Println(told.Load(), "were told who is at it")
	// Output:
	// 1 bought it
	// 8 were told who is at it
}
