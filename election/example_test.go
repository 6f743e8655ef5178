package election_test

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
)

// Every instance of a service calls Run. One instance leads until its context ends or its work is
// done.
func ExampleElection_Run() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{Name: "billing-0"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	e := election.New(node, "billing", election.Options{})
	err = e.Run(ctx, "10.0.0.7:8080", func(ctx context.Context, l *election.Leadership) error {
		leader, err := e.Leader(ctx) // may be called on any instance
		if err != nil {
			return err
		}
		fmt.Println(leader.Name, "leads, at", leader.Value)
		fmt.Println("fenced:", leader.Token == l.Token())
		return nil // the work is done
	})
	fmt.Println(err)
	// Output:
	// billing-0 leads, at 10.0.0.7:8080
	// fenced: true
	// <nil>
}

// A caller of Campaign must resign the Leadership. The next candidate in the queue then leads
// immediately.
func ExampleElection_Campaign() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	e := election.New(node, "billing", election.Options{})
	first, err := e.Campaign(ctx, "first")
	if err != nil {
		panic(err)
	}
	work := first.Context(ctx) // ends with the leadership
	if err := first.Resign(ctx); err != nil {
		panic(err)
	}
	<-work.Done()
	fmt.Println(context.Cause(work))

	second, err := e.Campaign(ctx, "second")
	if err != nil {
		panic(err)
	}
	defer func() { _ = second.Resign(ctx) }()
	fmt.Println("tokens rise:", second.Token() > first.Token())
	// Output:
	// mortise: the lock was released
	// tokens rise: true
}

// Any instance can observe which instance leads.
func ExampleElection_Observe() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	e := election.New(node, "billing", election.Options{})
	leadership, err := e.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		panic(err)
	}
	defer func() { _ = leadership.Resign(ctx) }()

	for leader, err := range e.Observe(ctx) {
		if err != nil {
			panic(err)
		}
		if leader.Token == 0 {
			continue // there is no leader
		}
		fmt.Println("requests go to", leader.Value)
		break
	}
	// Output: requests go to 10.0.0.7:8080
}
