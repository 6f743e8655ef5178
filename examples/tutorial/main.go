// Command tutorial is the program of docs/TUTORIAL.md: three instances of a service in one
// process, a lock that one of them loses, and a write that is refused because it arrives too
// late. This file consists of the code blocks of that page, in the same order.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// start starts three instances on loopback addresses. In production each instance is a process.
func start(ctx context.Context) []*mortise.Node {
	addresses := []string{"127.0.0.1:7951", "127.0.0.1:7952", "127.0.0.1:7953"}
	var nodes []*mortise.Node
	for i, address := range addresses {
		node, err := mortise.Start(ctx, mortise.Config{
			Name:       fmt.Sprintf("orders-%d", i),
			Bind:       address,
			Join:       addresses,
			Replicas:   len(addresses),
			Secret:     "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c",
			SessionTTL: 3 * time.Second,
			Logger:     slog.New(slog.DiscardHandler),
		})
		check(err)
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		check(node.Ready(ctx))
	}
	return nodes
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// orders takes the place of your database. It compares the token in the same step as the write.
type orders struct {
	highest fence.Mark
	state   string
}

func (o *orders) set(ctx context.Context, state string, token mortise.Token) error {
	return o.highest.Do(ctx, "orders/42", token, func(context.Context) error {
		o.state = state
		return nil
	})
}

func main() {
	ctx := context.Background()
	nodes := start(ctx)
	db := &orders{}

	err := nodes[0].Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		return db.set(ctx, "reserved", token)
	})
	check(err)
	fmt.Println("order 42 is", db.state)

	first, err := nodes[0].Lock(ctx, "orders/42")
	check(err)
	_, err = nodes[1].TryLock(ctx, "orders/42")
	var held *mortise.HeldError
	if errors.As(err, &held) {
		fmt.Println("the lock is held by", held.Holder)
	}

	check(nodes[0].Close()) // without Unlock, like a crash
	fmt.Println("orders-0 has lost the lock:", first.Err() != nil)

	second, err := nodes[1].Lock(ctx, "orders/42") // waits until the lease of orders-0 has expired
	check(err)
	check(db.set(ctx, "paid", second.Token()))
	fmt.Println("orders-1 has a higher token:", second.Token() > first.Token())

	err = db.set(ctx, "cancelled", first.Token())
	fmt.Println("the late write is refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("order 42 is", db.state)

	check(second.Unlock(ctx))
	for _, node := range nodes[1:] {
		check(node.Leave(ctx))
	}
}
