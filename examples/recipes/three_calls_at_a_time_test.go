package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
)

// A partner allows three concurrent calls from all instances together. A bulk call counts as two
// calls.
func Example_threeCallsAtATime() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()

	var now, most, calls atomic.Int32
	call := func(permits int) error {
		lock, err := node.Acquire(ctx, mortise.Request{Key: "partners/acme", Mode: mortise.Permits(permits, 3)})
		if err != nil {
			return err
		}
		n := now.Add(int32(permits))
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		calls.Add(1) // represents the call
		now.Add(-int32(permits))
		return lock.Unlock(ctx)
	}
	var workers sync.WaitGroup
	for i := range 20 {
		workers.Go(func() { check(call(1 + i%2)) })
	}
	workers.Wait()
	fmt.Println(calls.Load(), "calls, more than three at once:", most.Load() > 3)

	bulk, err := node.Acquire(ctx, mortise.Request{Key: "partners/acme", Mode: mortise.Permits(2, 3)})
	check(err)
	defer func() { check(bulk.Unlock(ctx)) }()
	_, err = node.Acquire(ctx, mortise.Request{Key: "partners/acme", Mode: mortise.Permits(2, 3), Try: true})
	fmt.Println("a second bulk call must wait:", errors.Is(err, mortise.ErrHeld))
	single, err := node.Acquire(ctx, mortise.Request{Key: "partners/acme", Mode: mortise.Permits(1, 3), Try: true})
	check(err)
	fmt.Println("a single one need not:", single.Unlock(ctx) == nil)
	// Output:
	// 20 calls, more than three at once: false
	// a second bulk call must wait: true
	// a single one need not: true
}
