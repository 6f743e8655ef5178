package comingfrom_test

import (
	"context"
	"log"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// start starts a node on its own, and returns the node and a function that stops it. For a fleet
// only the Config differs.
func start(ctx context.Context, name string) (node *mortise.Node, stop func()) {
	node, err := mortise.Start(ctx, mortise.Config{Name: name})
	check(err)
	check(node.Ready(ctx))
	return node, func() { check(node.Leave(ctx)) }
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// database takes the place of your database. It compares the token in the same step as the write.
// The zero value is empty.
type database struct {
	mark fence.Mark

	mu   sync.Mutex // guards rows
	rows map[string]string
}

// put writes a row. It fails if a later holder of the row's lock has written the row.
func (d *database) put(ctx context.Context, key, value string, token mortise.Token) error {
	return d.mark.Do(ctx, key, token, func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.rows == nil {
			d.rows = map[string]string{}
		}
		d.rows[key] = value
		return nil
	})
}

func (d *database) get(key string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows[key]
}
