// Service is a minimal program for a deployment. The files in the directory deploy start it, and
// you can use it as a template.
//
//	ORDERS_LOCK_DIR=/tmp/orders go run ./examples/service
//
// GET /healthz reports whether a restart would help. It checks only this process and never the
// group; otherwise a network partition would restart every instance. GET /readyz reports whether
// this instance can be granted locks now. On SIGTERM (or SIGINT) the program finishes its requests,
// releases its locks and leaves the group. A second signal ends it immediately.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
)

// drainWithin and leaveWithin limit the shutdown. The grace period of systemd or Kubernetes must be
// longer than their sum plus the 20 s that Close may wait for a hanging disk.
const (
	drainWithin = 5 * time.Second
	leaveWithin = 10 * time.Second
	// for /readyz; shorter than the timeout of the probe, so that the answer can contain the reason
	readyWithin = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // from now on a second signal ends the process
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := mortise.ConfigFromEnv("ORDERS_LOCK")
	if err != nil {
		return err
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	working := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(working)
		work(ctx, node)
	}()
	server := &http.Server{Addr: cmp.Or(os.Getenv("ORDERS_HTTP"), ":8080"), Handler: probes(node),
		ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	cancel()
	// End the requests first, because they may hold locks.
	err = errors.Join(err, within(drainWithin, server.Shutdown), within(leaveWithin, node.Leave))
	<-working
	return err
}

func within(limit time.Duration, call func(context.Context) error) error {
	ctx, done := context.WithTimeout(context.Background(), limit)
	defer done()
	return call(ctx)
}

// Until ctx ends, this loop takes the lock, does work that must not run concurrently, and releases
// the lock.
func work(ctx context.Context, node *mortise.Node) {
	for ctx.Err() == nil {
		err := node.Do(ctx, "orders/turn", func(ctx context.Context, token mortise.Token) error {
			slog.Info("my turn", "token", uint64(token))
			return nil
		})
		if err != nil && ctx.Err() == nil {
			slog.Warn("no turn", "why", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

func probes(node *mortise.Node) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, node.Err()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter,
		_ *http.Request) {
		answer(w, within(readyWithin, node.Ready))
	})
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
