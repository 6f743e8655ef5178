package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// awaitWaiters returns when n requests wait for key.
func awaitWaiters(ctx context.Context, node *mortise.Node, key string, n int) {
	for {
		info, err := node.Peek(ctx, key)
		check(err)
		if info.Waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Two transfers between the same accounts lock one account each and then request the other account.
// The request that would cause a deadlock fails, and the other transfer continues. LockAll requests
// both accounts in one request, so no deadlock is possible, in whatever order the keys are given.
func Example_transferBetweenAccounts() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{Name: "bank-0"})
	check(err)
	defer func() { _ = node.Leave(ctx) }()

	there, err := node.Lock(ctx, "accounts/anna")
	check(err)
	back, err := node.Lock(ctx, "accounts/ben")
	check(err)
	done := make(chan error, 1)
	go func() { // from anna to ben
		// The context shows under which lock the request is made.
		second, err := node.Lock(there.Context(ctx), "accounts/ben")
		if err == nil {
			err = second.Unlock(ctx)
		}
		done <- errors.Join(err, there.Unlock(ctx))
	}()
	awaitWaiters(ctx, node, "accounts/ben", 1)

	_, err = node.Lock(back.Context(ctx), "accounts/anna") // from ben to anna
	var deadlock *mortise.DeadlockError
	fmt.Println(errors.As(err, &deadlock))
	fmt.Println(err)
	check(back.Unlock(ctx)) // release the first account
	fmt.Println("the other transfer:", <-done)

	for _, keys := range [][]string{{"accounts/anna", "accounts/ben"}, {"accounts/ben", "accounts/anna"}} {
		both, err := node.LockAll(ctx, keys...) // one lock for both, with one token
		check(err)
		check(both.Unlock(ctx))
	}
	fmt.Println("with LockAll there is no deadlock")
	// Output:
	// true
	// mortise: deadlock: bank-0 waits for "accounts/anna", bank-0 waits for "accounts/ben"
	// the other transfer: <nil>
	// with LockAll there is no deadlock
}
