package comingfrom_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
)

// control waits until it is the leader, and runs reconcile while it leads. It returns when ctx
// ends.
func control(ctx context.Context, node *mortise.Node, pod string,
	reconcile func(context.Context, mortise.Token) error) error {
	e := election.New(node, "orders-controller", election.Options{})
	return e.Run(ctx, pod, func(ctx context.Context, l *election.Leadership) error {
		return reconcile(ctx, l.Token()) // ctx ends with the leadership; reconcile must then return
	})
}

func Example_leaderelection() {
	ctx := context.Background()
	node, stop := start(ctx, "orders-0")
	defer stop()

	deploy, terminate := context.WithCancel(ctx) // in production, SIGTERM ends this context
	err := control(deploy, node, "orders-0", func(ctx context.Context, token mortise.Token) error {
		leader, err := election.New(node, "orders-controller", election.Options{}).Leader(ctx) // any instance may ask
		if err != nil {
			return err
		}
		fmt.Println(leader.Value, "leads, fenced by the token:", leader.Token == token)
		terminate()
		<-ctx.Done() // end what was started and return; then Run resigns
		return nil
	})
	fmt.Println(err)
	// Output:
	// orders-0 leads, fenced by the token: true
	// context canceled
}
