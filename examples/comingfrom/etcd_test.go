package comingfrom_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// pay writes while it holds the lock. The database compares the token. With etcd, a transaction
// would check IsOwner.
func pay(ctx context.Context, node *mortise.Node, db *database) error {
	return node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		return db.put(ctx, "orders/42", "paid", token)
	})
}

func Example_etcd() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()
	var db database

	// This holder loses its lock and does not notice.
	late, err := node.Lock(ctx, "orders/42")
	check(err)
	check(late.Unlock(ctx)) // represents the loss

	check(pay(ctx, node, &db))
	err = db.put(ctx, "orders/42", "refunded", late.Token())
	fmt.Println("refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("order 42:", db.get("orders/42"))

	// A resource that cannot compare tokens asks the group. The answer was true at one moment during
	// the call.
	held, err := node.Check(ctx, "orders/42", late.Token())
	fmt.Println("held with the old token:", held, err)
	// Output:
	// refused: true
	// order 42: paid
	// held with the old token: false <nil>
}

// Two calls exclude each other even in one process. With etcd, two mutexes with the same session
// and the same prefix are one holder.
func Example_etcdOneProcess() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	lock, err := node.Lock(ctx, "orders/42")
	check(err)
	_, err = node.TryLock(ctx, "orders/42")
	fmt.Println("second caller is refused:", errors.Is(err, mortise.ErrHeld))

	again, err := node.Lock(lock.Context(ctx), "orders/42") // re-enters the lock
	check(err)
	fmt.Println("same token:", again.Token() == lock.Token())
	check(again.Unlock(ctx))
	check(lock.Unlock(ctx))
	// Output:
	// second caller is refused: true
	// same token: true
}
