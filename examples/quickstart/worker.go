package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// event is a report of a worker to the show, sent as one line of JSON.
type event struct {
	Worker  string
	Kind    string // granted, released, noted or ended
	Token   uint64 `json:",string"`
	Leading bool
	Asked   time.Time // when the worker requested the lock
	At      time.Time // when the lock was granted
	Text    string
}

const (
	granted  = "granted"
	released = "released"
	noted    = "noted"
	ended    = "ended"
)

const holdFor = 60 * time.Millisecond

// runWorker runs one of the three workers. It takes turns until its standard input ends.
func runWorker(name string, addresses []string, resource string, o options) (err error) {
	tell := json.NewEncoder(os.Stdout)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the input ends when the show ends
		cancel()
	}()
	index := slices.Index(names[:], name)
	if index < 0 || len(addresses) != len(names) {
		return fmt.Errorf("no worker %q among %v at %v", name, names, addresses)
	}
	config := mortise.Config{
		Name: name, Bind: addresses[index], Join: addresses, Replicas: len(addresses), SessionTTL: time.Second,
		Grace:  -1,
		Secret: o.secret, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if o.dir != "" {
		config.Dir = filepath.Join(o.dir, name)
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	// A rolling deployment waits for Ready before it starts the next instance.
	if err := node.Ready(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	for ctx.Err() == nil {
		if err := takeTurn(ctx, node, name, resource, tell); err != nil && ctx.Err() == nil {
			_ = tell.Encode(event{Worker: name, Kind: noted, Text: err.Error()})
			time.Sleep(50 * time.Millisecond) // retry the resource slowly if it is unreachable
		}
	}
	return nil
}

func takeTurn(ctx context.Context, node *mortise.Node, name, resource string, tell *json.Encoder) error {
	asked := time.Now()
	lock, err := node.Lock(ctx, "number")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(context.Background()) }()
	_ = tell.Encode(event{
		Worker: name, Kind: granted, Token: uint64(lock.Token()), Leading: node.Status().Leading, Asked: asked,
		At: time.Now(),
	})
	held := lock.Context(ctx)
	number, err := read(held, resource)
	if err != nil {
		return err
	}
	select {
	case <-time.After(holdFor):
	case <-held.Done():
		return context.Cause(held)
	}
	if err := write(held, resource, name, lock.Token(), number+1); err != nil {
		return err
	}
	_ = tell.Encode(event{Worker: name, Kind: released, Token: uint64(lock.Token())})
	return nil
}

func (s *show) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-worker", name, "-addresses", strings.Join(s.addresses, ","), "-resource",
		s.resource.url(), "-dir", s.dir, "-secret", s.secret)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	if _, err := cmd.StdinPipe(); err != nil { // never written to; it ends when this process ends
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.workers[name] = cmd
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
				s.events <- e
			}
		}
		err := cmd.Wait()
		s.events <- event{Worker: name, Kind: ended, Text: fmt.Sprint(err)}
	}()
	return nil
}

// workerEnv marks the worker processes, so that a test binary can run as this program.
const workerEnv = "MORTISE_QUICKSTART_WORKER"

func (s *show) killAll() {
	for _, cmd := range s.workers {
		_ = cmd.Process.Kill()
	}
}
