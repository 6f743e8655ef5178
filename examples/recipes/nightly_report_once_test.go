package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

type reports struct {
	mu     sync.Mutex
	days   []time.Time
	tokens []mortise.Token
}

// write stores one report for each day, and returns the number of reports. It refuses a report if
// a later run has already stored one.
func (r *reports) write(day time.Time, token mortise.Token) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.days, day) {
		return 0, fmt.Errorf("there is a report of %v", day)
	}
	if n := len(r.tokens); n > 0 && token <= r.tokens[n-1] {
		return 0, errors.New("a later run was here")
	}
	r.days, r.tokens = append(r.days, day), append(r.tokens, token)
	return len(r.days), nil
}

// A report is made once a day, on one of three instances. Every instance runs the same code. In
// this example, a day has 200 ms.
func Example_nightlyReportOnce() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "reports-0", "reports-1", "reports-2")
	defer stop()

	var made reports
	running, enough := context.WithCancel(ctx) // in production, SIGTERM ends it
	defer enough()
	var instances sync.WaitGroup
	for _, node := range nodes {
		instances.Go(func() {
			err := tick.Run(running, node, tick.Job{
				Name: "reports/daily",
				// In production, use tick.Every(24 * time.Hour) or the schedule of a cron library.
				Schedule: tick.Every(200 * time.Millisecond),
				Run: func(ctx context.Context, t tick.Tick) error {
					n, err := made.write(t.Time, t.Token)
					if n == 3 {
						enough()
					}
					return err
				},
				Report: func(t tick.Tick, err error) {
					if err != nil {
						log.Println("day", t.Time, err)
					}
				},
			})
			if !errors.Is(err, context.Canceled) {
				log.Panic(err)
			}
		})
	}
	instances.Wait()

	first, second, third := made.days[0], made.days[1], made.days[2]
	fmt.Println("three days, one report each:", first.Before(second) && second.Before(third))
	fmt.Println("a later report has a higher token:", slices.IsSorted(made.tokens))
	// Output:
	// three days, one report each: true
	// a later report has a higher token: true
}
