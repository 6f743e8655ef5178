package comingfrom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// primary holds the lock until the work ends or the lock is lost. The value of the lock can be
// read on every instance.
func primary(ctx context.Context, node *mortise.Node, address string,
	work func(ctx context.Context) error) (err error) {
	lock, err := node.Acquire(ctx, mortise.Request{
		Key:       "service/orders/primary",
		Value:     address,
		LockDelay: 15 * time.Second, // the default of Consul; the default of mortise is none
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return work(lock.Context(ctx)) // ends when Consul would close the channel of Lock
}

func Example_consul() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	err := primary(ctx, node, "10.0.0.7:8080", func(ctx context.Context) error {
		info, err := node.Peek(ctx, "service/orders/primary") // on any instance
		if err != nil {
			return err
		}
		fmt.Println(info.Queue[0].Holder, "at", info.Queue[0].Value, "with", info.Waiting, "waiting")
		return nil
	})
	fmt.Println(err)
	// Output:
	// orders-0 at 10.0.0.7:8080 with 0 waiting
	// <nil>
}

// In mortise, a semaphore is a field of the request.
func Example_consulSemaphore() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	var slots []*mortise.Lock
	for range 4 {
		slot, err := node.Acquire(ctx, mortise.Request{Key: "exports", Mode: mortise.Permits(1, 3), Try: true})
		if err != nil {
			fmt.Println("the fourth is refused")
			continue
		}
		slots = append(slots, slot)
	}
	fmt.Println(len(slots), "at a time")
	for _, slot := range slots {
		check(slot.Unlock(ctx))
	}
	// Output:
	// the fourth is refused
	// 3 at a time
}
