package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

const zookeeperJar = "/usr/share/java/zookeeper.jar"

func zookeeperPeer() Peer {
	return Peer{
		Name: "zookeeper", Kind: "zookeeper", Durable: true,
		Promise: "three servers",
		Missing: func() string {
			if why := needs("java")(); why != "" {
				return why
			}
			if _, err := os.Stat(zookeeperJar); err != nil {
				return "no " + zookeeperJar
			}
			return ""
		},
		Open:  openZookeeper,
		Lacks: map[string]string{"idle": "no instances of its own", "kill": "not measured"},
	}
}

type zookeeperCluster struct {
	servers   []*server
	clients   []string
	instances []Instance
}

func openZookeeper(ctx context.Context, dir string) (_ Cluster, err error) {
	addresses, err := freeAddresses(3 * membersOf)
	if err != nil {
		return nil, err
	}
	c := &zookeeperCluster{clients: addresses[:membersOf]}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	for i := range membersOf {
		s, err := startZookeeper(memberDir(dir, i), addresses, i)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	var last Instance
	for i := range membersOf {
		instance, err := c.connect(ctx, i)
		if err != nil {
			return nil, err
		}
		if strings.Contains(fourLetters(c.clients[i], "srvr"), "Mode: leader") {
			last = instance
			continue
		}
		c.instances = append(c.instances, instance)
	}
	if last != nil {
		c.instances = append(c.instances, last)
	}
	return c, nil
}

// startZookeeper starts server i. The first three elements of addresses are for clients, the next
// three are for the log, and the last three are for elections.
func startZookeeper(dir string, addresses []string, i int) (*server, error) {
	_, port, _ := net.SplitHostPort(addresses[i])
	var b strings.Builder
	b.WriteString("tickTime=2000\ninitLimit=10\nsyncLimit=5\n")
	fmt.Fprintf(&b, "dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\n", dir, port)
	b.WriteString("admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n")
	for m := range membersOf {
		_, election, _ := net.SplitHostPort(addresses[2*membersOf+m])
		fmt.Fprintf(&b, "server.%d=%s:%s\n", m+1, addresses[membersOf+m], election)
	}
	config := filepath.Join(dir, "zoo.cfg")
	if err := errors.Join(os.WriteFile(config, []byte(b.String()), 0o600), os.WriteFile(filepath.Join(dir, "myid"),
		fmt.Append(nil, i+1), 0o600)); err != nil {
		return nil, err
	}
	return startServer(dir, nil, "java", "-Xmx512m", "-cp", dir+":"+zookeeperJar,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
}

func (c *zookeeperCluster) connect(ctx context.Context, i int) (Instance, error) {
	err := c.servers[i].await(ctx, func() error {
		if text := fourLetters(c.clients[i], "srvr"); !strings.Contains(text, "Mode:") {
			return fmt.Errorf("zookeeper: %q", text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	conn, _, err := zk.Connect([]string{c.clients[i]}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silence{}))
	if err != nil {
		return nil, err
	}
	return zookeeperInstance{conn}, c.servers[i].await(ctx, func() error {
		_, err := conn.Create("/locks", nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
}

type silence struct{}

// Printf implements zk.Logger.
func (silence) Printf(string, ...any) {}

func fourLetters(address, word string) string {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return err.Error()
	}
	text, _ := io.ReadAll(conn)
	return string(text)
}

func (c *zookeeperCluster) Instances() []Instance { return c.instances }

func (c *zookeeperCluster) Version() string {
	_, text, _ := strings.Cut(fourLetters(c.clients[0], "srvr"), "version: ")
	text, _, _ = strings.Cut(text, "-")
	return cmp.Or(text, "unknown")
}

func (c *zookeeperCluster) Close() error {
	for _, i := range c.instances {
		i.(zookeeperInstance).conn.Close()
	}
	return stopAll(c.servers)
}

type zookeeperInstance struct{ conn *zk.Conn }

func (i zookeeperInstance) Caller(context.Context, bool) (Locker, error) { return i, nil }

// Lock ignores its context, because go-zookeeper's lock has none.
func (i zookeeperInstance) Lock(_ context.Context, key string) (Hold, error) {
	lock := zk.NewLock(i.conn, "/locks/"+key, zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	return zookeeperHold{lock}, nil
}

type zookeeperHold struct{ lock *zk.Lock }

func (h zookeeperHold) Unlock(context.Context) error { return h.lock.Unlock() }
