package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

type node struct {
	*mortise.Node
	outside.Inside
	config mortise.Config // the Config of the start, with the default Cluster filled in
}

func start(ctx context.Context, c mortise.Config, w outside.World) (*node, error) {
	n := &node{config: c}
	n.config.Cluster = cmp.Or(c.Cluster, "mortise")
	w.Inside = func(i outside.Inside) { n.Inside = i }
	var err error
	if n.Node, err = mortise.Start(outside.In(ctx, w), c); err != nil {
		return nil, err
	}
	return n, nil
}

// realWorld returns the World of a node in production, with each field set.
func realWorld() outside.World {
	var dialer net.Dialer
	return outside.World{
		Listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
		Resolve: net.DefaultResolver.LookupHost,
		Clock:   clock.Boot(),
		Wall:    time.Now,
		Random:  func(b []byte) { _, _ = rand.Read(b) },
		Files:   storage.OSFS(),
		Limits:  lockfsm.DefaultLimits(),
	}
}
