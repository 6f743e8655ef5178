//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// agentFiles limits the open files of the agent, as service managers do.
const agentFiles = 2048

// startWithin is the time within which a process must be ready.
const startWithin = time.Minute

// agent is the process of an agent, which is one more instance of the cluster.
type agent struct {
	url   string // of its HTTP API
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	kib   int           // largest resident memory seen; belongs to the goroutine that samples
}

func startAgent(ctx context.Context, program, dir, secret string, addrs []string) (*agent, error) {
	free, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a := &agent{url: "http://" + free[0], ended: make(chan struct{})}
	a.cmd = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, agentFiles), program, "agent",
		"-name", "agent", "-listen", free[0], "-bind", free[1], "-join", strings.Join(addrs, ","), "-replicas",
		fmt.Sprint(len(addrs)))
	a.cmd.Env = append(os.Environ(), "MORTISE_SECRET="+secret)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	go func() {
		_ = a.cmd.Wait()
		close(a.ended)
	}()
	for ctx, cancel := context.WithTimeout(ctx, startWithin); ; wait(ctx, 100*time.Millisecond) {
		if a.ready(ctx) {
			cancel()
			return a, nil
		}
		if err := ctx.Err(); err != nil {
			cancel()
			return a, fmt.Errorf("the agent is not ready, see its log: %w", err)
		}
	}
}

func (a *agent) ready(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode == http.StatusOK
}

func (a *agent) sample() { a.kib = max(a.kib, resident(a.cmd.Process.Pid)) }

func (a *agent) end() error {
	select {
	case <-a.ended:
		return errors.New("the agent has ended: see its log")
	default:
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.ended:
		return nil
	case <-time.After(time.Minute):
		_ = a.cmd.Process.Kill()
		return errors.New("the agent does not stop")
	}
}

func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // closed after all addresses are chosen, so that no two are equal
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
