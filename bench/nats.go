package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsBucket is the bucket of the locks. natsStream is the stream that the client makes for it.
const natsBucket, natsStream = "locks", "KV_locks"

func natsPeer(name string, durable bool) Peer {
	p := Peer{
		Name: name, Kind: "nats", Durable: durable,
		Promise: "three servers; nothing renews a lock, so it ends after a minute, and Unlock fails then",
		Missing: func() string { return "" },
		Lacks:   map[string]string{"waiters": "waiters that all wake are no queue"},
	}
	if !durable {
		p.Promise = "as nats-sync, but in memory, so two servers that restart at once may free the locks"
	}
	p.Member = func(_ context.Context, dir string, addresses []string, i int) (Member, error) {
		return startNats(natsOptions(dir, addresses, i, durable), durable)
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	return p
}

func natsOptions(dir string, addresses []string, i int, durable bool) *natsserver.Options {
	host, port := hostAndPort(addresses[i*addressesEach])
	clientHost, clientPort := hostAndPort(addresses[i*addressesEach+1])
	var all []string
	for m := range membersOf {
		all = append(all, "nats://"+addresses[m*addressesEach])
	}
	return &natsserver.Options{
		ServerName: fmt.Sprintf("m%d", i),
		Host:       clientHost, Port: clientPort, // with DontListen the server would not open its routes either
		Cluster:   natsserver.ClusterOpts{Name: "bench", Host: host, Port: port},
		Routes:    natsserver.RoutesFromStr(strings.Join(all, ",")),
		JetStream: true, StoreDir: dir, SyncAlways: durable,
		NoLog: true, NoSigs: true,
	}
}

// natsMember is one embedded server with a client, which is connected to it by a pipe.
type natsMember struct {
	server  *natsserver.Server
	storage jetstream.StorageType
	conn    *nats.Conn
	caller  natsCaller
}

func startNats(o *natsserver.Options, durable bool) (Member, error) {
	s, err := natsserver.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	m := &natsMember{server: s, storage: jetstream.MemoryStorage}
	if durable {
		m.storage = jetstream.FileStorage
	}
	if m.conn, err = nats.Connect("", nats.InProcessServer(s)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Ready repeats the request for the bucket until the servers have found each other and elected a
// leader. A server without a leader drops the request. Every member may make the same bucket.
func (m *natsMember) Ready(ctx context.Context) error {
	for {
		err := m.makeBucket(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nats: the bucket cannot be made: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (m *natsMember) makeBucket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	js, err := jetstream.New(m.conn)
	if err != nil {
		return err
	}
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: natsBucket, Storage: m.storage,
		Replicas: membersOf, LimitMarkerTTL: natsTTL})
	m.caller = natsCaller{js, kv, natsTTL}
	return err
}

func (m *natsMember) Leads() bool {
	return m.server.JetStreamIsStreamLeader(natsserver.DEFAULT_GLOBAL_ACCOUNT, natsStream)
}

func (m *natsMember) Version() string { return natsserver.VERSION }

func (m *natsMember) Caller(context.Context, bool) (Locker, error) { return m.caller, nil }

func (m *natsMember) Close() error {
	if m.conn != nil {
		m.conn.Close()
	}
	m.server.Shutdown()
	m.server.WaitForShutdown()
	return nil
}
