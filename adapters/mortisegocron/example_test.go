package mortisegocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisegocron"
	"github.com/mortise-lock/mortise/election"
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
	scheduler, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		panic(err)
	}
	defer scheduler.Shutdown()

	ran := make(chan mortise.Token)
	locker := mortisegocron.NewLocker(node, tick.Every(time.Second), mortisegocron.Options{})
	_, err = scheduler.NewJob(
		gocron.CronJob("* * * * * *", true), // every second
		gocron.NewTask(func() { ran <- locker.Held("reports").Token() }),
		gocron.WithName("reports"),
		gocron.WithDistributedJobLocker(locker),
	)
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	fmt.Println("ran, with a fencing token:", <-ran > 0)
	// Output:
	// ran, with a fencing token: true
}

func ExampleElector() {
	ctx, cancel := context.WithCancel(context.Background())
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(context.Background()) }()
	defer cancel()

	elector := mortisegocron.NewElector(node, "scheduler", election.Options{})
	go elector.Run(ctx, "10.0.0.7:8080")
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		panic(err)
	}
	defer scheduler.Shutdown()
	ran := make(chan bool)
	_, err = scheduler.NewJob(gocron.DurationJob(100*time.Millisecond), gocron.NewTask(func() { ran <- true }))
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	fmt.Println("the leader runs the job:", <-ran)
	// Output:
	// the leader runs the job: true
}
