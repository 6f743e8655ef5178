//go:build linux

package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

var server struct {
	once    sync.Once
	dir     string // "" if no directory was created
	process *exec.Cmd
	exited  chan error
	missing string // the reason why PostgreSQL is not installed on this machine, or ""
	err     error
	next    int
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.missing != "" {
		fmt.Fprintf(os.Stderr, "\n*** SKIPPED: fencing on PostgreSQL. %s: "+
			"apt-get install -y --no-install-recommends postgresql ***\n\n", server.missing)
	}
	stopPostgres()
	os.Exit(code)
}

func postgres(t *testing.T) *sql.DB {
	server.once.Do(func() { server.err = startPostgres() })
	if server.missing != "" {
		t.Skip(server.missing)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	server.next++
	name := fmt.Sprint("test", server.next)
	main := connect(t, "postgres")
	if _, err := main.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return connect(t, name)
}

func connect(t *testing.T, name string) *sql.DB {
	db, err := open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// open connects through the Unix socket in the server's directory.
func open(name string) (*sql.DB, error) {
	return sql.Open("pgx", fmt.Sprintf("host=%s port=5432 user=test dbname=%s sslmode=disable", server.dir, name))
}

func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return filepath.Dir(found[len(found)-1])
}

// credential returns the user under which the server runs, because PostgreSQL refuses to run as
// root. Nil means the user of the test process.
func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// startPostgres creates a database directory and starts the server in it, on a Unix socket in that
// directory and on no TCP port.
func startPostgres() error {
	bin := programs()
	if bin == "" {
		server.missing = "no PostgreSQL below /usr/lib/postgresql"
		return nil
	}
	as, err := credential()
	if err != nil {
		server.missing = "PostgreSQL refuses to run as root, and there is no other user: " + err.Error()
		return nil
	}
	server.dir, err = os.MkdirTemp("", "fence") // not t.TempDir: the path of a socket is limited to about 100 bytes
	if err != nil {
		return err
	}
	if as != nil {
		if err := os.Chown(server.dir, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(server.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-N", "-E", "UTF8",
		"--locale=C")
	initdb.Dir, initdb.SysProcAttr = server.dir, &syscall.SysProcAttr{Credential: as}
	if text, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, text)
	}
	log, err := os.Create(filepath.Join(server.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", server.dir, "-h", "", "-p", "5432", "-c",
		"fsync=off", "-c", "max_connections=100")
	p.Dir, p.Stdout, p.Stderr, p.SysProcAttr = server.dir, log, log, &syscall.SysProcAttr{
		Credential: as, Pdeathsig: syscall.SIGQUIT, // an immediate shutdown if the tests are killed
	}
	if err := p.Start(); err != nil {
		return err
	}
	server.process, server.exited = p, make(chan error, 1)
	go func() { server.exited <- p.Wait() }()
	return awaitPostgres()
}

func awaitPostgres() error {
	db, err := open("postgres")
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case ended := <-server.exited:
			server.exited <- ended
			text, _ := os.ReadFile(filepath.Join(server.dir, "log"))
			return fmt.Errorf("postgres has ended: %w: %s", ended, text)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func stopPostgres() {
	if server.process != nil {
		_ = server.process.Process.Signal(syscall.SIGINT)
		select {
		case <-server.exited:
		case <-time.After(10 * time.Second):
			_ = server.process.Process.Kill()
			<-server.exited
		}
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}
