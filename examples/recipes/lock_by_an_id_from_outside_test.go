package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keys"
)

// Callers of an API choose the IDs of what they lock. An ID can contain a slash, or be missing. It
// must never lead to the key of another thing.
func Example_lockByAnIDFromOutside() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()

	change := func(customer, file string) error {
		key, err := keys.Join("files", "customer", customer, file)
		if err != nil {
			return err
		}
		return node.Do(ctx, key, func(context.Context, mortise.Token) error {
			fmt.Println("changes", key)
			return nil
		})
	}
	check(change("7", "2026/report.csv"))
	check(change("7/2026", "report.csv")) // another customer, another key
	err = change("7", "")
	fmt.Println("refused:", errors.Is(err, mortise.ErrBadKey))

	prefix, err := keys.Prefix("files", "customer", "7")
	check(err)
	lock, err := node.Lock(ctx, prefix+"notes.txt")
	check(err)
	for info, err := range node.List(ctx, prefix) {
		check(err)
		fmt.Println("customer 7 has locked", info.Key)
	}
	check(lock.Unlock(ctx))
	// Output:
	// changes files/customer/7/2026%2Freport.csv
	// changes files/customer/7%2F2026/report.csv
	// refused: true
	// customer 7 has locked files/customer/7/notes.txt
}
