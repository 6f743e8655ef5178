package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/flight"
)

// cache represents the cache that all instances share. It stores each page with the token under
// which the page was rendered.
type cache struct {
	mu    sync.Mutex
	page  string
	token mortise.Token
}

func (c *cache) get(context.Context) (page string, found bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.page, c.page != "", nil
}

func (c *cache) put(page string, token mortise.Token) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token < c.token {
		return errors.New("there is a newer page")
	}
	c.page, c.token = page, token
	return nil
}

// The cached start page has expired, and thirty requests on three instances need it at the same
// time. Only one of them renders it.
func Example_rebuildACacheOnce() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "web-0", "web-1", "web-2")
	defer stop()

	var pages cache
	render := func(_ context.Context, token mortise.Token) (string, error) {
		fmt.Println("rendering")
		page := "<h1>Hello</h1>"
		return page, pages.put(page, token)
	}
	var served sync.Map
	var requests sync.WaitGroup
	for i, node := range nodes {
		group := flight.New[string](node) // one group per instance
		defer group.Close()
		for j := range 10 {
			requests.Go(func() {
				page, err := group.Do(ctx, "pages/start", pages.get, render)
				check(err)
				served.Store([2]int{i, j}, page)
			})
		}
	}
	requests.Wait()
	count := 0
	for _, page := range served.Range {
		if page == "<h1>Hello</h1>" {
			count++
		}
	}
	fmt.Println(count, "requests have the page")
	// Output:
	// rendering
	// 30 requests have the page
}
