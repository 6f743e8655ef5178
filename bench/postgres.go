package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

func postgresPeer() Peer {
	const connection = "a connection for each"
	return Peer{
		Name: "postgres", Kind: "postgres",
		Promise: "one server",
		Missing: func() string {
			if postgresPrograms() == "" {
				return "no PostgreSQL below /usr/lib/postgresql"
			}
			_, why := postgresUser()
			return why
		},
		Open: openPostgres,
		Lacks: map[string]string{"idle": "no instances of its own", "kill": "no leader", "held": connection,
			"waiters": connection},
	}
}

func postgresPrograms() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return filepath.Dir(found[len(found)-1])
}

// postgresUser returns the user of the server, because PostgreSQL refuses to run as root. Nil means
// the user of this process.
func postgresUser() (*syscall.Credential, string) {
	if os.Getuid() != 0 {
		return nil, ""
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, "it refuses to run as root, and there is no user postgres"
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		return nil, "the user postgres has no number"
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, ""
}

type postgresCluster struct {
	server    *server
	instances []Instance
}

const connectionsEach = 32

func openPostgres(ctx context.Context, dir string) (_ Cluster, err error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	as, _ := postgresUser()
	if as != nil {
		if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o711), os.Chown(dir, int(as.Uid), int(as.Gid))); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(postgresPrograms(), "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-N")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if text, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, text)
	}
	host, port, _ := net.SplitHostPort(addresses[0])
	c := &postgresCluster{}
	c.server, err = startServer(dir, as, filepath.Join(postgresPrograms(), "postgres"), "-D", data, "-h", host, "-p",
		port, "-k", "",
		"-c", fmt.Sprintf("max_connections=%d", membersOf*connectionsEach+10))
	if err != nil {
		return nil, err
	}
	for range membersOf {
		pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://bench@%s/postgres?sslmode=disable&pool_max_conns=%d",
			addresses[0], connectionsEach))
		if err == nil {
			c.instances = append(c.instances, postgresInstance{pool})
			err = c.server.await(ctx, func() error { return pool.Ping(ctx) })
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *postgresCluster) Instances() []Instance { return c.instances }

func (c *postgresCluster) Version() string {
	text, _ := exec.Command(filepath.Join(postgresPrograms(), "postgres"), "--version").Output()
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "unknown"
	}
	return fields[2]
}

func (c *postgresCluster) Close() error {
	for _, i := range c.instances {
		i.(postgresInstance).pool.Close()
	}
	return stopAll([]*server{c.server})
}

type postgresInstance struct{ pool *pgxpool.Pool }

func (i postgresInstance) Caller(context.Context, bool) (Locker, error) { return i, nil }

func (i postgresInstance) Lock(ctx context.Context, key string) (Hold, error) {
	conn, err := i.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", key); err != nil {
		conn.Release()
		return nil, err
	}
	return postgresHold{conn, key}, nil
}

type postgresHold struct {
	conn *pgxpool.Conn
	key  string
}

func (h postgresHold) Unlock(ctx context.Context) error {
	_, err := h.conn.Exec(ctx, "select pg_advisory_unlock(hashtextextended($1, 0))", h.key)
	h.conn.Release()
	return err
}
