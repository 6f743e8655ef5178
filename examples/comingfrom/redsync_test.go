package comingfrom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// rebuild waits up to five seconds for the lock, and then works as long as needed.
func rebuild(ctx context.Context, node *mortise.Node, db *database) (err error) {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second) // limits the wait, not the hold
	defer cancel()
	lock, err := node.Lock(wait, "report")
	if err != nil {
		return err // this call holds no lock and cannot get it later
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	work := lock.Context(ctx) // ends if the lock is lost; the lease is renewed automatically
	return db.put(work, "report", "rebuilt", lock.Token())
}

// skip does the work only if no other instance is doing it.
func skip(ctx context.Context, node *mortise.Node) (done bool, err error) {
	lock, err := node.TryLock(ctx, "report")
	var held *mortise.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder)
		return false, nil
	}
	if err != nil {
		return false, err // the call was not decided: no leader, or the group is in its grace
	}
	return true, lock.Unlock(ctx)
}

func Example_redsync() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	var db database
	check(rebuild(ctx, node, &db))
	fmt.Println("report:", db.get("report"))

	lock, err := node.Lock(ctx, "report")
	check(err)
	done, err := skip(ctx, node)
	fmt.Println(done, err)
	check(lock.Unlock(ctx))
	done, err = skip(ctx, node)
	fmt.Println(done, err)
	// Output:
	// report: rebuilt
	// held by orders-0
	// false <nil>
	// true <nil>
}
