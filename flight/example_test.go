package flight_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/flight"
)

// Twenty requests on two instances find the cache empty at the same time. Only one request renders
// the page. The two Groups on one node stand for two instances.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	var mu sync.Mutex // stands for a cache that all instances share
	pages := map[string]string{}
	fresh := func(context.Context) (string, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		page, ok := pages["start"]
		return page, ok, nil
	}
	render := func(_ context.Context, token mortise.Token) (string, error) {
		fmt.Println("rendered once") // real code sends token to the cache with each write
		mu.Lock()
		defer mu.Unlock()
		pages["start"] = "<h1>Hello</h1>"
		return pages["start"], nil
	}

	var requests sync.WaitGroup
	for range 2 {
		group := flight.New[string](node)
		defer group.Close()
		for range 10 {
			requests.Go(func() {
				if page, err := group.Do(ctx, "page/start", fresh, render); err != nil || page != "<h1>Hello</h1>" {
					log.Fatal(page, err)
				}
			})
		}
	}
	requests.Wait()
	// Output: rendered once
}
