package counter_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/counter"
)

// The numbers of invoices rise by one.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	invoices := counter.New(node, "invoices/2026")
	fmt.Println(invoices.Add(ctx, 1))
	one := invoices.Addition(1)
	for range 2 { // may be repeated after an error: it counts once
		fmt.Println(one.Do(ctx))
	}
	fmt.Println(invoices.Value(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 2 <nil>
	// 2 <nil>
}
