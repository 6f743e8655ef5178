package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Each tenant has orders and invoices. A migration of a tenant excludes all work on that tenant, an
// export of it only the changes, and work on other tenants goes on.
func Example_workOnATree() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()
	free := func(path string, mode mortise.Mode) bool {
		lock, err := node.Acquire(ctx, mortise.Request{Key: path, Mode: mode, Tree: true, Try: true})
		if errors.Is(err, mortise.ErrHeld) {
			return false
		}
		check(err)
		check(lock.Unlock(ctx))
		return true
	}

	order, err := node.Acquire(ctx, mortise.Request{Key: "tenants/7/orders/42", Tree: true})
	check(err)
	fmt.Println("another order:", free("tenants/7/orders/43", mortise.Exclusive))
	fmt.Println("invoices:", free("tenants/7/invoices", mortise.Exclusive))
	fmt.Println("an export of the tenant:", free("tenants/7", mortise.Shared))
	check(order.Unlock(ctx))

	export, err := node.Acquire(ctx, mortise.Request{Key: "tenants/7", Tree: true, Mode: mortise.Shared})
	check(err)
	fmt.Println("a second export, of a part:", free("tenants/7/orders", mortise.Shared))
	fmt.Println("an order of the tenant:", free("tenants/7/orders/42", mortise.Exclusive))
	fmt.Println("an order of another tenant:", free("tenants/8/orders/1", mortise.Exclusive))
	check(export.Unlock(ctx))

	migration, err := node.Acquire(ctx, mortise.Request{Key: "tenants/7", Tree: true})
	check(err)
	fmt.Println("during the migration, a reader:", free("tenants/7/orders", mortise.Shared))
	check(migration.Unlock(ctx))
	// Output:
	// another order: true
	// invoices: true
	// an export of the tenant: false
	// a second export, of a part: true
	// an order of the tenant: false
	// an order of another tenant: true
	// during the migration, a reader: false
}
