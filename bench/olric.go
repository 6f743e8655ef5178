package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/olric-data/olric"
	"github.com/olric-data/olric/config"
)

// olricTTL frees the lock of a crashed holder, and olricPatience is longer than any workload waits.
// Olric renews a lock only if the caller asks for it.
const olricTTL, olricPatience = time.Minute, time.Hour

func olricPeer() Peer {
	p := Peer{
		Name: "olric", Kind: "olric",
		Promise: "three members with a copy each; callers poll every 10 ms; nothing renews a lock, so it ends after a " +
			"minute, and Unlock fails then",
		Missing: func() string { return "" },
		Lacks:   map[string]string{"kill": "no leader", "waiters": "callers that poll are no queue"},
	}
	p.Member = func(ctx context.Context, _ string, addresses []string, i int) (Member, error) {
		c, err := olricConfig(addresses, i)
		if err != nil {
			return nil, err
		}
		return startOlric(ctx, c)
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	return p
}

func olricConfig(addresses []string, i int) (*config.Config, error) {
	gossip, err := config.NewMemberlistConfig("local")
	if err != nil {
		return nil, err
	}
	gossip.BindAddr, gossip.BindPort = hostAndPort(addresses[i*addressesEach])
	gossip.AdvertisePort = gossip.BindPort
	c := config.New("local")
	c.BindAddr, c.BindPort = hostAndPort(addresses[i*addressesEach+1])
	c.MemberlistConfig, c.LogOutput = gossip, io.Discard
	for m := range membersOf {
		if m != i {
			c.Peers = append(c.Peers, addresses[m*addressesEach])
		}
	}
	c.ReplicaCount, c.ReplicationMode = membersOf, config.SyncReplicationMode
	c.WriteQuorum, c.MemberCountQuorum = 2, 2
	// enough for all callers, because members that wait for each other's connections end in timeouts
	c.Client.PoolSize, c.Client.PoolTimeout = 4096, time.Minute
	return c, nil
}

type olricMember struct {
	db    *olric.Olric
	ended chan error // receives the result of Start when the member has ended
	locks olric.DMap
}

func startOlric(ctx context.Context, c *config.Config) (Member, error) {
	started := make(chan struct{})
	c.Started = func() { close(started) }
	db, err := olric.New(c)
	if err != nil {
		return nil, err
	}
	m := &olricMember{db: db, ended: make(chan error, 1)}
	go func() { m.ended <- db.Start() }()
	select {
	case <-started:
		m.locks, err = db.NewEmbeddedClient().NewDMap("locks")
		return m, err
	case err := <-m.ended:
		return nil, fmt.Errorf("olric has ended: %w", err)
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), m.Close())
	}
}

// Ready waits until each member has its share of the keys, because a lock may be lost on the way to
// another member.
func (m *olricMember) Ready(ctx context.Context) error {
	for {
		table, err := m.db.NewEmbeddedClient().RoutingTable(ctx)
		if err == nil && olricDivided(table) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("olric: the keys are not divided among the members: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func olricDivided(table olric.RoutingTable) bool {
	owners := map[string]bool{}
	for _, route := range table {
		if len(route.PrimaryOwners) != 1 || len(route.ReplicaOwners) != membersOf-1 {
			return false
		}
		owners[route.PrimaryOwners[0]] = true
	}
	return len(owners) == membersOf
}

func (m *olricMember) Leads() bool { return false }

func (m *olricMember) Version() string { return olric.ReleaseVersion }

func (m *olricMember) Caller(context.Context, bool) (Locker, error) { return olricCaller{m.locks}, nil }

func (m *olricMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := m.db.Shutdown(ctx)
	return errors.Join(err, <-m.ended)
}

type olricCaller struct{ locks olric.DMap }

func (c olricCaller) Lock(ctx context.Context, key string) (Hold, error) {
	return c.locks.LockWithTimeout(ctx, key, olricTTL, olricPatience)
}
