package stripe_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/stripe"
)

// A flash sale of 100 seats in four stripes of 25. Four buyers are served at a time, and no seat is
// sold twice. A buyer whose stripe is sold out tries the other stripes.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	seats, err := stripe.New(node, "sale/42/seats", 4)
	if err != nil {
		panic(err)
	}
	stock := [4]int{25, 25, 25, 25} // represents four rows of a database

	sell := func(i int, lock *mortise.Lock) bool {
		defer func() { _ = lock.Unlock(ctx) }()
		if stock[i] == 0 {
			return false
		}
		stock[i]--
		return true
	}
	buy := func() bool {
		first, lock, err := seats.Any(ctx)
		if err != nil {
			panic(err)
		}
		if sell(first, lock) {
			return true
		}
		for step := 1; step < seats.Len(); step++ {
			i := (first + step) % seats.Len()
			lock, err := seats.At(ctx, i)
			if err != nil {
				panic(err)
			}
			if sell(i, lock) {
				return true
			}
		}
		return false // every stripe was sold out at that time
	}

	var buyers sync.WaitGroup
	var sold atomic.Int32
	for range 120 {
		buyers.Go(func() {
			if buy() {
				sold.Add(1)
			}
		})
	}
	buyers.Wait()
	fmt.Println(sold.Load(), "sold,", stock, "left")
	// Output: 100 sold, [0 0 0 0] left
}

// Nothing is sold while all stripes are held.
func ExampleSet_All() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	seats, err := stripe.New(node, "sale/42/seats", 4)
	if err != nil {
		panic(err)
	}

	all, err := seats.All(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(all), "stripes are ours, from", all[0].Key(), "to", all[3].Key())
	fmt.Println(all.Unlock(ctx))
	// Output:
	// 4 stripes are ours, from sale/42/seats/0 to sale/42/seats/3
	// <nil>
}

func ExampleKey() {
	fmt.Println(stripe.Key("accounts", "customer-4711", 64))
	// Output: accounts/33
}
