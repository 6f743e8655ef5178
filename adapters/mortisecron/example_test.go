package mortisecron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisecron"
	"github.com/mortise-lock/mortise/tick"
)

// A service with three instances runs this in each of them.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	ran := make(chan mortise.Token)
	reports := mortisecron.Func(func(ctx context.Context, at time.Time) { // ctx ends if the lock is lost
		token, _ := mortise.TokenFrom(ctx)
		ran <- token
	})
	jobs := mortisecron.New(node, mortisecron.Options{})
	schedule := tick.Every(time.Second) // or what cron.ParseStandard returns
	c := cron.New(cron.WithLocation(time.UTC))
	c.Schedule(schedule, cron.NewChain(jobs.Once("reports", schedule)).Then(reports))
	c.Start()
	fmt.Println("ran, with a fencing token:", <-ran > 0)
	<-c.Stop().Done() // before the node leaves
	// Output:
	// ran, with a fencing token: true
}
