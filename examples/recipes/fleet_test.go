package recipes_test

import (
	"context"
	"log"
	"log/slog"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// startFleet starts the instances of a service in one process, over loopback. It returns them when
// they are ready, with a function that stops them. In production each instance is a process, and
// Join lists the others.
func startFleet(ctx context.Context, names ...string) (nodes []*mortise.Node, stop func()) {
	var mu sync.Mutex
	var addresses []string
	for _, name := range names {
		node, err := mortise.Start(ctx, mortise.Config{
			Name: name, Bind: "127.0.0.1:0", Replicas: len(names),
			Secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c",
			// JoinFunc is used instead of Join because the ports are not known before the start.
			JoinFunc: func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(addresses), nil
			},
			Grace:  -1, // no earlier group exists
			Logger: slog.New(slog.DiscardHandler),
		})
		check(err)
		mu.Lock()
		addresses = append(addresses, node.Status().Address)
		mu.Unlock()
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		check(node.Ready(ctx))
	}
	return nodes, func() {
		for _, node := range nodes {
			check(node.Close())
		}
	}
}

// startAnother starts an instance that joins the fleet of member.
func startAnother(ctx context.Context, name string, member *mortise.Node) *mortise.Node {
	node, err := mortise.Start(ctx, mortise.Config{
		Name: name, Bind: "127.0.0.1:0", Join: []string{member.Status().Address}, Replicas: 3,
		Secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c",
		Grace:  -1, Logger: slog.New(slog.DiscardHandler),
	})
	check(err)
	check(node.Ready(ctx))
	return node
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
