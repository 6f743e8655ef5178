// Cron is a program that runs on several machines and does a job once for each tick of a schedule,
// on one of them.
//
//	CRON_LOCK_JOIN=host-0,host-1,host-2 CRON_LOCK_SECRET=... go run ./examples/cron
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := mortise.ConfigFromEnv("CRON_LOCK")
	if err != nil {
		return err
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	err = schedule(ctx, node)
	if ctx.Err() != nil {
		err = nil // it was asked to stop
	}
	leaving, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return errors.Join(err, node.Leave(leaving))
}

// schedule runs the job at each tick that no other instance runs, until ctx ends.
func schedule(ctx context.Context, node *mortise.Node) error {
	return tick.Run(ctx, node, tick.Job{
		Name:     "examples/cron",
		Schedule: tick.Every(2 * time.Second), // or a schedule of a cron library
		Run:      report,
		Report: func(t tick.Tick, err error) {
			if err != nil {
				slog.Warn("a tick was not run to its end here", "tick", t.Time, "error", err)
			}
		},
	})
}

// report does the job of one tick. Its context ends if the lock is lost.
func report(_ context.Context, t tick.Tick) error {
	fmt.Println("this instance reports")
	slog.Info("report", "tick", t.Time, "token", t.Token)
	return nil
}
