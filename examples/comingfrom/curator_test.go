package comingfrom_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
)

// transfer locks both accounts in one request, so two opposite transfers do not deadlock.
func transfer(ctx context.Context, node *mortise.Node, from, to string) (err error) {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lock, err := node.LockAll(wait, from, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return book(lock.Context(ctx), node, from)
}

// This function locks an account. If its caller already holds the lock and passes the context of
// the lock, the lock is entered again.
func book(ctx context.Context, node *mortise.Node, account string) error {
	return node.Do(ctx, account, func(ctx context.Context, token mortise.Token) error {
		fmt.Println("booked on", account)
		return nil
	})
}

func Example_curator() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	check(transfer(ctx, node, "accounts/anna", "accounts/ben"))
	check(book(ctx, node, "accounts/ben"))
	// Output:
	// booked on accounts/anna
	// booked on accounts/ben
}

// In Curator, a Revoker writes to the ZooKeeper node of a lock to ask the holder to release it.
// In mortise, Request.Notice notifies the holder as soon as another request waits.
func Example_curatorRevoke() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	holder, err := node.Acquire(ctx, mortise.Request{Key: "index", Notice: true})
	check(err)
	done := make(chan error)
	go func() {
		done <- node.Do(ctx, "index", func(context.Context, mortise.Token) error { return nil })
	}()
	<-holder.Wanted() // another request waits; the holder decides when to unlock
	check(holder.Unlock(ctx))
	fmt.Println(<-done)
	// Output: <nil>
}

// Readers share a lock, and later readers do not overtake a waiting writer.
func Example_curatorReadWrite() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	one, err := node.RLock(ctx, "catalogue")
	check(err)
	two, err := node.RLock(ctx, "catalogue")
	check(err)
	info, err := node.Peek(ctx, "catalogue")
	check(err)
	fmt.Println(info.Held, "readers")
	check(one.Unlock(ctx))
	check(two.Unlock(ctx))
	writer, err := node.Lock(ctx, "catalogue")
	check(err)
	fmt.Println("then a writer")
	check(writer.Unlock(ctx))
	// Output:
	// 2 readers
	// then a writer
}

// A DistributedDoubleBarrier has a random name for each participant. Here the participant has a
// name, so a process that is started again does not count twice.
func Example_curatorDoubleBarrier() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	double, err := barrier.NewDouble(node, "batch/42", 2)
	check(err)
	var all sync.WaitGroup
	for _, participant := range []string{"orders-0", "orders-1"} {
		all.Go(func() {
			wait, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			presence, err := double.Enter(wait, participant)
			check(err)
			fmt.Println("all have entered")
			check(presence.Leave(ctx))
		})
	}
	all.Wait()
	// Output:
	// all have entered
	// all have entered
}
