package recipes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

// pollers is the set of the instances that poll a partner.
type pollers struct {
	mu    sync.Mutex
	names []string
	most  int
	begun chan string
}

// poll represents a loop that asks the partner until ctx ends.
func (p *pollers) poll(ctx context.Context, name string) error {
	p.mu.Lock()
	p.names = append(p.names, name)
	p.most = max(p.most, len(p.names))
	p.mu.Unlock()
	p.begun <- name
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = slices.DeleteFunc(p.names, func(other string) bool { return other == name })
	return ctx.Err()
}

// Two of three instances poll a partner. When one of them leaves, or loses its permit, the third
// takes its place. No instance is special, and each runs the same code.
func Example_twoOfThreePoll() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "orders-0", "orders-1", "orders-2")
	defer stop()

	partner := &pollers{begun: make(chan string)}
	permit := mortise.Request{Key: "partners/acme/poll", Mode: mortise.Permits(1, 2)}
	var running sync.WaitGroup
	stops := map[string]context.CancelFunc{}
	for i, node := range nodes {
		name := fmt.Sprint("orders-", i)
		ctx, cancel := context.WithCancel(ctx)
		stops[name] = cancel
		running.Go(func() {
			_ = keep.Run(ctx, node, permit, keep.Options{}, func(ctx context.Context, _ *mortise.Lock) error {
				return partner.poll(ctx, name)
			})
		})
	}
	first, second := <-partner.begun, <-partner.begun
	fmt.Println("two poll:", first != second)
	stops[first]()
	third := <-partner.begun
	fmt.Println("the third takes its place:", third != first && third != second)
	for _, stop := range stops {
		stop()
	}
	running.Wait()
	fmt.Println("never more than", partner.most)
	// Output:
	// two poll: true
	// the third takes its place: true
	// never more than 2
}
