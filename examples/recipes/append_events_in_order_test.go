package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// events represents the event log of one account. In a database, append is one INSERT, whose
// condition checks the version and the token.
type events struct {
	mu     sync.Mutex
	log    []string
	newest mortise.Token // the highest token with which an event was added
}

// append adds an event if the log still has the given version, and if no later holder of the
// account's lock has added an event.
func (e *events) append(version int, token mortise.Token, event string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if version != len(e.log) {
		return fmt.Errorf("version %d is outdated, it is %d", version, len(e.log))
	}
	if token < e.newest {
		return errors.New("a later holder of the lock has written")
	}
	e.log, e.newest = append(e.log, event), token
	return nil
}

func (e *events) version() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.log)
}

// This example stores events with a version and a token. The token stops a former holder that reads
// the newest version and appends an outdated decision. The version stops an event that its holder
// sends twice.
func Example_appendEventsInOrder() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()
	var account events

	old, err := node.Lock(ctx, "accounts/7")
	check(err)
	check(old.Unlock(ctx)) // stands for a loss of the lock that the holder does not notice

	err = node.Do(ctx, "accounts/7", func(ctx context.Context, token mortise.Token) error {
		version := account.version()
		if err := account.append(version, token, "paid in 100"); err != nil {
			return err
		}
		// The answer was lost, so the client sends the event again.
		fmt.Println("sent twice:", account.append(version, token, "paid in 100"))
		return account.append(version+1, token, "paid out 30")
	})
	fmt.Println("new holder:", err)
	fmt.Println("old holder:", account.append(account.version(), old.Token(), "paid out 100"))
	fmt.Println(account.log)
	// Output:
	// sent twice: version 0 is outdated, it is 1
	// new holder: <nil>
	// old holder: a later holder of the lock has written
	// [paid in 100 paid out 30]
}
