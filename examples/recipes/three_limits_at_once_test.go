package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise"
)

// job is work for an order of a tenant.
type job struct{ order, tenant string }

// run executes a job under three limits: one job for each order, two for each tenant, and four in
// all. The narrowest limit is first, so a job that waits for its tenant takes no place of all.
func (j job) run(ctx context.Context, node *mortise.Node, work func(token mortise.Token) error) error {
	limits := []mortise.Request{
		{Key: "orders/" + j.order},
		{Key: "tenants/" + j.tenant, Mode: mortise.Permits(1, 2)},
		{Key: "jobs", Mode: mortise.Permits(1, 4)},
	}
	return node.DoNested(ctx, limits, func(ctx context.Context, token mortise.Token) error {
		return work(token) // the token fences what is written about the order
	})
}

// A tenant queues many jobs at once. The limits hold, and a job of another tenant begins before
// them.
func Example_threeLimitsAtOnce() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "jobs-0", "jobs-1", "jobs-2")
	defer stop()

	var now, most, done atomic.Int32
	stuck := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 20 {
		workers.Go(func() {
			large := job{order: fmt.Sprint("large/", i%10), tenant: "large"}
			check(large.run(ctx, nodes[i%3], func(mortise.Token) error {
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				<-stuck // represents slow work
				now.Add(-1)
				done.Add(1)
				return nil
			}))
		})
	}
	for now.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	small := job{order: "small/1", tenant: "small"}
	check(small.run(ctx, nodes[2], func(mortise.Token) error {
		fmt.Println("the small tenant runs; jobs of the large one that are done:", done.Load())
		return nil
	}))
	close(stuck)
	workers.Wait()
	fmt.Println(done.Load(), "jobs, more than two at once:", most.Load() > 2)
	// Output:
	// the small tenant runs; jobs of the large one that are done: 0
	// 20 jobs, more than two at once: false
}
