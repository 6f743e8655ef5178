package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

func etcdPeer(name string, durable, remote bool) Peer {
	p := Peer{
		Name: name, Kind: "etcd", Durable: durable,
		Promise: "three members, called inside of their processes",
		Missing: func() string { return "" },
	}
	if remote {
		p.Promise = "three members, called by gRPC"
	}
	if !durable {
		p.Promise = "as etcd, but nothing is synced, so a machine that loses its power may forget"
	}
	p.Member = func(_ context.Context, dir string, addresses []string, i int) (Member, error) {
		return startEtcd(etcdConfig(dir, addresses, i, durable), remote)
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	return p
}

func etcdConfig(dir string, addresses []string, i int, durable bool) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = fmt.Sprintf("m%d", i), dir
	c.UnsafeNoFsync = !durable
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	peer, client := httpURL(addresses[i*addressesEach]), httpURL(addresses[i*addressesEach+1])
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	var all []string
	for m := range membersOf {
		all = append(all, fmt.Sprintf("m%d=http://%s", m, addresses[m*addressesEach]))
	}
	c.InitialCluster = strings.Join(all, ",")
	return c
}

func httpURL(address string) url.URL { return url.URL{Scheme: "http", Host: address} }

// etcdMember is one embedded server with a client and a session. Callers that never lock the same
// key share that session.
type etcdMember struct {
	server *embed.Etcd
	remote bool
	client *clientv3.Client

	mu      sync.Mutex
	session *concurrency.Session // guarded by mu
}

func startEtcd(c *embed.Config, remote bool) (Member, error) {
	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	return &etcdMember{server: server, remote: remote}, nil
}

func (m *etcdMember) Ready(ctx context.Context) (err error) {
	select {
	case <-m.server.Server.ReadyNotify():
	case err := <-m.server.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
	if !m.remote {
		m.client = v3client.New(m.server.Server)
	} else if m.client, err = clientv3.New(clientv3.Config{Endpoints: []string{m.server.Clients[0].Addr().String()},
		Logger: zap.NewNop()}); err != nil {
		return err
	}
	m.session, err = m.newSession()
	return err
}

func (m *etcdMember) newSession() (*concurrency.Session, error) {
	return concurrency.NewSession(m.client, concurrency.WithTTL(10))
}

func (m *etcdMember) Leads() bool     { return m.server.Server.Leader() == m.server.Server.MemberID() }
func (m *etcdMember) Version() string { return version.Version }

// Caller opens a new session for a shared caller, because two mutexes of one session do not exclude
// each other.
func (m *etcdMember) Caller(_ context.Context, shared bool) (Locker, error) {
	if shared {
		session, err := m.newSession()
		return etcdCaller{session}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.session.Done(): // an earlier overload has let the session expire
		session, err := m.newSession()
		if err != nil {
			return nil, err
		}
		m.session = session
	default:
	}
	return etcdCaller{m.session}, nil
}

func (m *etcdMember) Close() error {
	if m.session != nil {
		m.session.Orphan() // the members are stopped too, so the lease need not be revoked
	}
	var err error
	if m.client != nil {
		err = m.client.Close()
	}
	m.server.Server.HardStop() // all members stop at the same time, so do not transfer the leadership
	m.server.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type etcdCaller struct{ session *concurrency.Session }

func (c etcdCaller) Lock(ctx context.Context, key string) (Hold, error) {
	mutex := concurrency.NewMutex(c.session, "locks/"+key)
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	return mutex, nil
}
