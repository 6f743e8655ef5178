package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redisPeer(name string, servers int, durable bool) Peer {
	p := Peer{
		Name: name, Kind: "redis", Durable: durable,
		Promise: "callers poll every 5 ms",
		Missing: needs("redis-server"),
		Lacks: map[string]string{"idle": "no instances of its own", "kill": "no leader",
			"waiters": "callers that poll are no queue"},
	}
	if servers == 1 {
		p.Promise = "one server; " + p.Promise
	} else {
		p.Promise = "three unrelated servers; " + p.Promise
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openRedis(ctx, dir, servers, durable) }
	return p
}

type redisCluster struct {
	servers   []*server
	instances []Instance
	clients   []*redis.Client
}

func openRedis(ctx context.Context, dir string, servers int, durable bool) (_ Cluster, err error) {
	addresses, err := freeAddresses(servers)
	if err != nil {
		return nil, err
	}
	c := &redisCluster{}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	for i, address := range addresses {
		s, err := startRedis(memberDir(dir, i), address, durable)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	for range membersOf {
		var pools []redsyncredis.Pool
		for i, address := range addresses {
			client := redis.NewClient(&redis.Options{Addr: address, PoolSize: 32, PoolTimeout: time.Minute})
			c.clients = append(c.clients, client)
			if err := c.servers[i].await(ctx, func() error { return client.Ping(ctx).Err() }); err != nil {
				return nil, err
			}
			pools = append(pools, goredis.NewPool(client))
		}
		c.instances = append(c.instances, redisInstance{redsync.New(pools...)})
	}
	return c, nil
}

func startRedis(dir, address string, durable bool) (*server, error) {
	host, port, _ := strings.Cut(address, ":")
	args := []string{"--bind", host, "--port", port, "--save", "", "--daemonize", "no", "--maxclients", "4096",
		"--dir", dir}
	if durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	return startServer(dir, nil, "redis-server", args...)
}

func (c *redisCluster) Instances() []Instance { return c.instances }

func (c *redisCluster) Version() string {
	text, _ := exec.Command("redis-server", "--version").Output()
	for field := range strings.FieldsSeq(string(text)) {
		if v, ok := strings.CutPrefix(field, "v="); ok {
			return v
		}
	}
	return "unknown"
}

func (c *redisCluster) Close() (err error) {
	for _, client := range c.clients {
		err = errors.Join(err, client.Close())
	}
	return errors.Join(err, stopAll(c.servers))
}

type redisInstance struct{ redsync *redsync.Redsync }

func (i redisInstance) Caller(context.Context, bool) (Locker, error) { return i, nil }

func (i redisInstance) Lock(ctx context.Context, key string) (Hold, error) {
	mutex := i.redsync.NewMutex(key, redsync.WithExpiry(10*time.Second), redsync.WithTries(1<<30),
		redsync.WithRetryDelay(5*time.Millisecond))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return redisHold{mutex}, nil
}

type redisHold struct{ mutex *redsync.Mutex }

func (h redisHold) Unlock(ctx context.Context) error {
	ok, err := h.mutex.UnlockContext(ctx)
	if err == nil && !ok {
		return fmt.Errorf("redis: the lock was lost")
	}
	return err
}
