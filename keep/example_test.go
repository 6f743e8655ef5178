package keep_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

// Every instance of a service calls Run. At most three of them poll the partner at a time.
func ExampleRun() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	request := mortise.Request{Key: "partners/acme", Mode: mortise.Permits(1, 3)}
	err = keep.Run(ctx, node, request, keep.Options{}, func(ctx context.Context, l *mortise.Lock) error {
		fmt.Println("polls under", l.Key()) // until ctx ends
		return nil                          // the work is done
	})
	fmt.Println(err)
	// Output:
	// polls under partners/acme
	// <nil>
}
