package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// draft represents a document in a database. In a database, add is one UPDATE, whose condition
// checks the token.
type draft struct {
	mu     sync.Mutex
	text   string
	newest mortise.Token // the highest token with which the text was changed
}

func (d *draft) add(token mortise.Token, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if token < d.newest {
		return errors.New("a later holder of the lock has written")
	}
	d.text, d.newest = d.text+text, token
	return nil
}

// save locks the draft for one keystroke. With LockSticky, the instance keeps the lock after
// Unlock, so that its next save needs no message to another instance.
func save(ctx context.Context, node *mortise.Node, d *draft, char rune) error {
	lock, err := node.LockSticky(ctx, "drafts/7", mortise.StickyOptions{})
	if err != nil {
		return err
	}
	return errors.Join(d.add(lock.Token(), string(char)), lock.Unlock(ctx))
}

// Each keystroke of an author is saved under the lock of the draft. All connections of an author
// usually lead to one instance, which therefore locks the same key again and again. After a break
// the author is connected to another instance. That instance gets the lock with its first save.
func Example_saveEveryKeystroke() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "docs-0", "docs-1", "docs-2")
	defer stop()

	var d draft
	for i, sentence := range []string{"It was a dark night. ", "The rain had stopped."} {
		for _, char := range sentence {
			check(save(ctx, nodes[i], &d, char))
		}
	}
	fmt.Println(d.text)
	// Output:
	// It was a dark night. The rain had stopped.
}
