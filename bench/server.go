package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type server struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
	err    error // result of cmd.Wait; set before the channel exited is closed
}

// startServer starts a program that writes its output to a file in dir. The program runs as the
// given user, or as the user of this process if none is given. It is killed when this process ends.
func startServer(dir string, as *syscall.Credential, program string, args ...string) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), log: filepath.Join(dir, "log"), exited: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

// await calls try() again and again until it succeeds, the server ends, or half a minute is over.
func (s *server) await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("%s has ended: %w: %s", s.cmd.Path, s.err, text)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", s.cmd.Path, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	return nil // the exit code of a stopped server does not matter
}

func stopAll(servers []*server) error {
	return together(len(servers), func(i int) error { return servers[i].stop() })
}

func needs(program string) func() string {
	return func() string {
		if _, err := exec.LookPath(program); err != nil {
			return "no " + program + " in the path"
		}
		return ""
	}
}

// freeAddresses returns loopback addresses on which no process listens now. Their ports are lower
// than those of outgoing connections.
func freeAddresses(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n && tries < 1000+10*n; tries++ {
		l, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if listenErr != nil {
			err = listenErr
			continue
		}
		defer func() { _ = l.Close() }() // at the end, so that no address is returned twice
		addresses = append(addresses, l.Addr().String())
	}
	if len(addresses) < n {
		return nil, err
	}
	return addresses, nil
}

func hostAndPort(address string) (string, int) {
	host, text, _ := strings.Cut(address, ":")
	port, _ := strconv.Atoi(text)
	return host, port
}

func memberDir(dir string, i int) string {
	path := filepath.Join(dir, fmt.Sprint(i))
	_ = os.MkdirAll(path, 0o700) // an error appears when the directory is used
	return path
}

func together(n int, call func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = call(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
