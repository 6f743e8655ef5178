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
	free := func(path string, shared bool) bool {
		lock, err := node.Acquire(ctx, mortise.Request{Path: path, Shared: shared, Try: true})
		if errors.Is(err, mortise.ErrHeld) {
			return false
		}
		check(err)
		check(lock.Unlock(ctx))
		return true
	}

	order, err := node.Acquire(ctx, mortise.Request{Path: "tenants/7/orders/42"})
	check(err)
	fmt.Println("another order:", free("tenants/7/orders/43", false))
	fmt.Println("invoices:", free("tenants/7/invoices", false))
	fmt.Println("an export of the tenant:", free("tenants/7", true))
	check(order.Unlock(ctx))

	export, err := node.Acquire(ctx, mortise.Request{Path: "tenants/7", Shared: true})
	check(err)
	fmt.Println("a second export, of a part:", free("tenants/7/orders", true))
	fmt.Println("an order of the tenant:", free("tenants/7/orders/42", false))
	fmt.Println("an order of another tenant:", free("tenants/8/orders/1", false))
	check(export.Unlock(ctx))

	migration, err := node.Acquire(ctx, mortise.Request{Path: "tenants/7"})
	check(err)
	fmt.Println("during the migration, a reader:", free("tenants/7/orders", true))
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
