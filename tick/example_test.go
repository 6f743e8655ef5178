package tick_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

// Each tick runs on one of the instances that call Run with the same job.
func ExampleRun() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	enough := errors.New("enough for an example")
	ctx, stop := context.WithCancelCause(ctx)
	runs := 0
	err = tick.Run(ctx, node, tick.Job{
		Name:     "reports/quick",
		Schedule: tick.Every(20 * time.Millisecond),
		Run: func(ctx context.Context, t tick.Tick) error {
			fmt.Println("run of", t.Job, "on a full tick:", t.Time.UnixMilli()%20 == 0, "fenced:", t.Token > 0)
			if runs++; runs == 2 {
				stop(enough)
			}
			return nil
		},
	})
	fmt.Println(err)
	// Output:
	// run of reports/quick on a full tick: true fenced: true
	// run of reports/quick on a full tick: true fenced: true
	// enough for an example
}

// The ticks of Every are whole multiples of its duration since the Unix epoch, in UTC.
func ExampleEvery() {
	now := time.Date(2026, 11, 22, 10, 17, 4, 0, time.UTC)
	fmt.Println(tick.Every(15 * time.Minute).Next(now).Format(time.TimeOnly))
	// Output: 10:30:00
}
