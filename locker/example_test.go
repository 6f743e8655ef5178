package locker_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/locker"
)

// Orders is a service that needs locks and uses any Locker.
type Orders struct {
	locks locker.Locker
	paid  map[string]locker.Token
}

// Pay charges an order once.
func (o *Orders) Pay(ctx context.Context, id string) error {
	return o.locks.Do(ctx, "orders/"+id, func(ctx context.Context, token locker.Token) error {
		if o.paid[id] != 0 {
			return fmt.Errorf("order %s is paid already", id)
		}
		o.paid[id] = token
		return ctx.Err()
	})
}

// A service that takes a Locker gets a *mortise.Node in production and a Local in its test.
func Example() {
	ctx := context.Background()
	underTest := &Orders{locks: new(locker.Local), paid: map[string]locker.Token{}}
	fmt.Println(underTest.Pay(ctx, "42"))
	fmt.Println(underTest.Pay(ctx, "42"))
	// Output:
	// <nil>
	// order 42 is paid already
}
