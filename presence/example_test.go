package presence_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/presence"
)

func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{Name: "orders-0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Leave(ctx) }()

	joined, leave := context.WithCancel(ctx)
	defer leave()
	go presence.Run(joined, node, "workers", "10.0.0.7:8080")

	for members, err := range presence.Observe(ctx, node, "workers") {
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(members) == 1 {
			fmt.Println(members[0].Instance, members[0].Value)
			return
		}
	}
	// Output:
	// orders-0 10.0.0.7:8080
}
