package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// shop is the configuration, with who has made the last change and why. It is the data of one key,
// so all of it changes at once.
type shop struct {
	Prices  string
	Limit   int
	By, Why string
}

const shopKey = "config/shop"

// change is what stands behind the button. Put refuses what was made of an old configuration: it is
// made again, of the present one.
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

// follow tells the present configuration and then each change, in order, none left out. At a reset
// ("what follows is what there is now") the configuration in force is told again, which here does
// no harm.
func follow(ctx context.Context, node *mortise.Node, tell func(at time.Time, c shop)) {
	for event, err := range node.Watch(ctx, shopKey, 0) {
		if err != nil {
			return // ctx has ended, or the node
		}
		var c shop
		if event.What == mortise.EventData && event.Key == shopKey && json.Unmarshal(event.Data, &c) == nil {
			tell(event.At, c)
		}
	}
}

// A change of the configuration with an audit: two people change it at once and neither overwrites
// the other, all instances are told at once, and the record says who has changed what, and why.
func Example_configurationChange() {
	ctx, stopFollowing := context.WithCancel(context.Background())
	nodes, stop := startFleet(ctx, "shop-0", "shop-1", "shop-2")
	defer stop()
	defer stopFollowing()
	check(change(ctx, nodes[0], func(c *shop) { *c = shop{"normal", 10, "deploy", "first version"} }))

	// Every instance follows. One of them keeps the record; in life it writes it where it stays,
	// with event.Position, from which Watch goes on.
	applied, record := make(chan shop, 10), make(chan string, 10)
	go follow(ctx, nodes[1], func(_ time.Time, c shop) { applied <- c })
	go follow(ctx, nodes[2], func(_ time.Time, c shop) {
		record <- fmt.Sprintf("%s: %s: prices %s, limit %d", c.By, c.Why, c.Prices, c.Limit)
	})
	fmt.Println("in force:", (<-applied).Prices)
	fmt.Println("record:", <-record) // both follow from here on

	// While Ben looks at the form, Anna saves: his change is made again on top of hers.
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
