package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/olric-data/olric"
	"github.com/olric-data/olric/config"
)

// olricTTL frees the lock of a crashed holder. Nothing renews it, so it is longer than any workload
// holds a lock. A call waits for at most as long.
const olricTTL = time.Minute

func olricPeer() Peer {
	p := Peer{
		Name: "olric", Kind: "olric",
		Promise: "three members in memory, each key on two; its documentation calls the locks approximate; no order: " +
			"the key's owner tries every 10 ms; no token that could fence; a lock ends after a minute, because nothing " +
			"renews it, and Unlock fails then",
		Missing: func() string { return "" },
		Lacks:   map[string]string{"kill": "no leader"},
	}
	p.Member = func(ctx context.Context, _ string, addresses []string, i int) (Member, error) {
		return startOlric(ctx, olricConfig(addresses, i))
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	return p
}

func olricConfig(addresses []string, i int) *config.Config {
	c := config.New("local")
	c.BindAddr, c.BindPort = hostAndPort(addresses[i*addressesEach])
	gossip := c.MemberlistConfig
	gossip.BindAddr, gossip.BindPort = hostAndPort(addresses[i*addressesEach+1])
	c.LogOutput = io.Discard
	for m := range membersOf {
		if m != i {
			c.Peers = append(c.Peers, addresses[m*addressesEach+1])
		}
	}
	c.ReplicaCount, c.MemberCountQuorum = 2, 2
	return c
}

// olricMember is one embedded member with a client for the locks.
type olricMember struct {
	server  *olric.Olric
	stopped chan error // the result of Start, which returns when the member stops
	locks   olric.DMap
}

func startOlric(ctx context.Context, c *config.Config) (Member, error) {
	started := make(chan struct{})
	c.Started = func() { close(started) }
	server, err := olric.New(c)
	if err != nil {
		return nil, err
	}
	m := &olricMember{server: server, stopped: make(chan error, 1)}
	go func() { m.stopped <- server.Start() }()
	select {
	case <-started:
	case err := <-m.stopped:
		return nil, err
	case <-ctx.Done():
		return m, ctx.Err()
	}
	m.locks, err = server.NewEmbeddedClient().NewDMap("locks")
	return m, err
}

// Ready waits until this member sees the others.
func (m *olricMember) Ready(ctx context.Context) error {
	client := m.server.NewEmbeddedClient()
	for {
		all, err := client.Members(ctx)
		if err == nil && len(all) == membersOf {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("olric: it sees %d members: %w", len(all), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Leads is false for every member, because each owns a part of the keys.
func (m *olricMember) Leads() bool { return false }

func (m *olricMember) Version() string { return olric.ReleaseVersion }

func (m *olricMember) Caller(context.Context, bool) (Locker, error) { return m, nil }

func (m *olricMember) Lock(ctx context.Context, key string) (Hold, error) {
	return m.locks.LockWithTimeout(ctx, key, olricTTL, olricTTL)
}

func (m *olricMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := m.server.Shutdown(ctx)
	<-m.stopped
	return err
}
