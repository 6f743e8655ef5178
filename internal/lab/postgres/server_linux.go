package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Server is a running server with the user test, who needs no password.
type Server struct {
	bin     string
	dir     string
	process *exec.Cmd
	exited  chan error
}

// Start makes a new directory, starts a server in it and waits until it answers.
func Start() (*Server, error) {
	bin := programs()
	if bin == "" {
		return nil, ErrAbsent
	}
	as, err := credential()
	if err != nil {
		return nil, fmt.Errorf("%w: it refuses to run as root, and there is no other user: %w", ErrAbsent, err)
	}
	dir, err := os.MkdirTemp("", "pg") // short, because the path of a socket is limited to about 100 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir}
	if err := s.start(as); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
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

func (s *Server) start(as *syscall.Credential) error {
	if as != nil {
		if err := os.Chown(s.dir, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-N",
		"-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: as}
	if text, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, text)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p := exec.Command(filepath.Join(s.bin, "postgres"), "-D", data, "-k", s.dir, "-h", "", "-p", "5432", "-c",
		"fsync=off", "-c", "max_connections=100")
	p.Dir, p.Stdout, p.Stderr, p.SysProcAttr = s.dir, log, log, &syscall.SysProcAttr{
		Credential: as, Pdeathsig: syscall.SIGQUIT, // an immediate shutdown if the tests are killed
	}
	if err := p.Start(); err != nil {
		return err
	}
	s.process, s.exited = p, make(chan error, 1)
	go func() { s.exited <- p.Wait() }()
	return s.await()
}

func (s *Server) await() error {
	end := time.Now().Add(30 * time.Second)
	for s.run("pg_isready", "-q") != nil {
		select {
		case ended := <-s.exited:
			s.exited <- ended
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres has ended: %w: %s", ended, text)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			return errors.New("postgres does not answer within 30 s")
		}
	}
	return nil
}

func (s *Server) run(program string, args ...string) error {
	text, err := exec.Command(filepath.Join(s.bin, program), append([]string{"-h", s.dir, "-U", "test"},
		args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return nil
}

// Create creates a database.
func (s *Server) Create(name string) error { return s.run("createdb", name) }

// URL returns the address of a database, as drivers take it. It names the socket in the server's
// directory.
func (s *Server) URL(database string) string {
	query := url.Values{"host": {s.dir}, "port": {"5432"}, "user": {"test"}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + query.Encode()
}

// Stop stops the server and removes its directory.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT)
		select {
		case <-s.exited:
		case <-time.After(10 * time.Second):
			_ = s.process.Process.Kill()
			<-s.exited
		}
	}
	_ = os.RemoveAll(s.dir)
}
