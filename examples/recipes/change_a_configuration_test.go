package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// shop is the configuration, with the author and the reason of the last change. It is the data of
// one key, so all its fields change together.
type shop struct {
	Prices  string
	Limit   int
	By, Why string
}

const shopKey = "config/shop"

// change edits the configuration. If Put fails because the configuration was changed meanwhile, the
// edit is applied to the present configuration.
func change(ctx context.Context, node *mortise.Node, edit func(*shop)) error {
	for {
		data, revision, err := node.Get(ctx, shopKey)
		if err != nil {
			return err
		}
		var c shop
		if revision != 0 {
			if err := json.Unmarshal(data, &c); err != nil {
				return err
			}
		}
		edit(&c)
		if data, err = json.Marshal(c); err != nil {
			return err
		}
		if _, err = node.Put(ctx, shopKey, data, revision); !errors.Is(err, mortise.ErrConflict) {
			return err
		}
	}
}

// follow reports the present configuration and then each change, in order and without omission.
func follow(ctx context.Context, node *mortise.Node, tell func(at time.Time, c shop)) {
	for event, err := range node.Watch(ctx, shopKey, 0) {
		if err != nil {
			return // ctx has ended, or the node is closed
		}
		var c shop
		if event.Kind == mortise.EventData && event.Key == shopKey && json.Unmarshal(event.Data, &c) == nil {
			tell(event.At, c)
		}
	}
}

// Two people change the configuration at the same time, and neither change overwrites the other.
// All instances get each change, with its author and reason.
func Example_changeAConfiguration() {
	ctx, stopFollowing := context.WithCancel(context.Background())
	nodes, stop := startFleet(ctx, "shop-0", "shop-1", "shop-2")
	defer stop()
	defer stopFollowing()
	check(change(ctx, nodes[0], func(c *shop) { *c = shop{"normal", 10, "deploy", "first version"} }))

	// Every instance follows. One of them writes the record; in production it stores the record
	// permanently, with event.Position, from which Watch can continue.
	applied, record := make(chan shop, 10), make(chan string, 10)
	go follow(ctx, nodes[1], func(_ time.Time, c shop) { applied <- c })
	go follow(ctx, nodes[2], func(_ time.Time, c shop) {
		record <- fmt.Sprintf("%s: %s: prices %s, limit %d", c.By, c.Why, c.Prices, c.Limit)
	})
	fmt.Println("in force:", (<-applied).Prices)
	fmt.Println("record:", <-record) // now both follow

	// While Ben edits the form, Anna saves. Ben's change is then applied to what Anna has saved.
	tries := 0
	check(change(ctx, nodes[2], func(c *shop) {
		if tries++; tries == 1 {
			check(change(ctx, nodes[0], func(c *shop) {
				c.Prices, c.By, c.Why = "summer", "anna",
					"summer sale, CHG-17"
			}))
		}
		c.Limit, c.By, c.Why = 20, "ben", "higher limit, CHG-18"
	}))
	fmt.Println("ben has tried", tries, "times")
	fmt.Println("in force:", (<-applied).Prices)
	last := <-applied
	fmt.Println("in force:", last.Prices, last.Limit)
	for range 2 {
		fmt.Println("record:", <-record)
	}
	// Output:
	// in force: normal
	// record: deploy: first version: prices normal, limit 10
	// ben has tried 2 times
	// in force: summer
	// in force: summer 20
	// record: anna: summer sale, CHG-17: prices summer, limit 10
	// record: ben: higher limit, CHG-18: prices summer, limit 20
}
