package barrier_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
)

// Three workers prepare, and one caller waits for all of them.
func ExampleLatch() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	latch, err := barrier.NewLatch(node, "warm/42", 3)
	if err != nil {
		panic(err)
	}
	for _, worker := range []string{"orders-0", "orders-1", "orders-2"} {
		for range 2 { // may be repeated after an error: a worker counts once
			if err := latch.CountDown(ctx, worker); err != nil {
				panic(err)
			}
		}
	}
	fmt.Println(latch.Wait(ctx))
	fmt.Println(latch.Counted(ctx))
	fmt.Println(latch.Remove(ctx))
	// Output:
	// <nil>
	// [orders-0 orders-1 orders-2] <nil>
	// <nil>
}

// Three workers begin a batch together, and none continues before all have finished it.
func ExampleDouble() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	double, err := barrier.NewDouble(node, "batch/42", 3)
	if err != nil {
		panic(err)
	}
	work := func(participant string) error {
		presence, err := double.Enter(ctx, participant)
		if err != nil {
			return err
		}
		fmt.Println("works")
		return presence.Leave(ctx)
	}
	var workers sync.WaitGroup
	for i := range 3 {
		workers.Go(func() {
			if err := work(fmt.Sprint("orders-", i)); err != nil {
				panic(err)
			}
		})
	}
	workers.Wait()
	// Output:
	// works
	// works
	// works
}

// Two workers compute in phases. Each begins a phase when both have finished the one before.
func ExampleCyclic() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	var workers sync.WaitGroup
	for i := range 2 {
		phases, err := barrier.NewCyclic(node, "simulation/42", 2, fmt.Sprint("orders-", i))
		if err != nil {
			panic(err)
		}
		workers.Go(func() {
			for phase := range 3 {
				fmt.Println("phase", phase)
				if err := phases.Await(ctx); err != nil { // after ErrBroken, repeat the phase
					panic(err)
				}
			}
		})
	}
	workers.Wait()
	// Output:
	// phase 0
	// phase 0
	// phase 1
	// phase 1
	// phase 2
	// phase 2
}
