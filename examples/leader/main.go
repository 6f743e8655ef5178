// Leader is a program of which one instance leads and the others wait. If the leader stops, dies or
// is cut off, another one leads.
//
//	LEADER_LOCK_JOIN=host-0,host-1,host-2 LEADER_LOCK_SECRET=... go run ./examples/leader
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
	"github.com/mortise-lock/mortise/election"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := mortise.ConfigFromEnv("LEADER_LOCK")
	if err != nil {
		return err
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	err = stand(ctx, node)
	if ctx.Err() != nil {
		err = nil // it was asked to stop
	}
	leaving, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return errors.Join(err, node.Leave(leaving)) // another instance leads at once
}

// stand leads again and again, until ctx ends.
func stand(ctx context.Context, node *mortise.Node) error {
	e := election.New(node, "examples/leader", election.Options{
		Report: func(token mortise.Token, err error) { slog.Warn("the leadership ended", "token", token, "error", err) },
	})
	return e.Run(ctx, node.Status().Address, lead)
}

// lead does the work of the leader. Its context ends when this instance no longer leads.
func lead(ctx context.Context, l *election.Leadership) error {
	fmt.Println("this instance leads")
	for each := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			each.Stop()
			return context.Cause(ctx)
		case <-each.C:
			// The context may end a little late, so ask before an effect that matters. Give the token to
			// the resource that the work changes, and let it refuse lower ones: see package fence.
			if err := l.Err(); err != nil {
				return err
			}
			slog.Info("work of the leader", "token", l.Token())
		}
	}
}
