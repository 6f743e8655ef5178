package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A waiter must get the lock of a holder that never unlocks, and that holder must notice.
func TestNatsFreesTheLockOfACrashedHolder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cluster := openNats(t, ctx)
	defer func() { _ = cluster.Close() }()
	crashed := cluster.Instances()[0].(*natsMember).caller
	crashed.ttl = time.Second // the server accepts no shorter one
	old, err := crashed.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	hold, err := cluster.Instances()[1].(*natsMember).caller.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Unlock(ctx); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		t.Errorf("the holder that lost the lock unlocks it: %v", err)
	}
	if err := hold.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

func openNats(t *testing.T, ctx context.Context) Cluster {
	p, _ := peerNamed("nats")
	cluster, err := p.Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}
