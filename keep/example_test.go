package keep_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Leave(ctx)

	importers := mortise.Request{Key: "importers", Permits: 1, Of: 3}
	err = keep.Run(ctx, node, importers, keep.Options{}, func(ctx context.Context, lock *mortise.Lock) error {
		fmt.Println("imports, and two other instances may, too:", lock.Err() == nil)
		return nil // the work is done
	})
	fmt.Println(err)
	// Output:
	// imports, and two other instances may, too: true
	// <nil>
}
