// Importer is a program that runs on several machines and imports the rows of a file, on one of
// them at a time. If that one dies, another one goes on with the row at which it stopped.
//
//	IMPORTER_LOCK_JOIN=host-0,host-1,host-2 IMPORTER_LOCK_SECRET=... go run ./examples/importer
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
)

const key, checkpoint, rows = "examples/importer", "examples/importer/next", 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "importer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := mortise.ConfigFromEnv("IMPORTER_LOCK")
	if err != nil {
		return err
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	err = importAll(ctx, node)
	if ctx.Err() != nil {
		err = nil // it was asked to stop, and another instance goes on
	}
	leaving, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return errors.Join(err, node.Leave(leaving))
}

// importAll waits for the lock, and imports the rows that are left.
func importAll(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(context.WithoutCancel(ctx)) }()
	text, revision, err := node.Get(ctx, checkpoint)
	if err != nil {
		return err
	}
	next, _ := strconv.Atoi(string(text)) // without a checkpoint, the import begins with row 0
	for ; next < rows && ctx.Err() == nil; next++ {
		importRow(next)
		// Only the holder of the lock can move the checkpoint, even if this process was paused.
		if revision, err = lock.Put(ctx, checkpoint, strconv.AppendInt(nil, int64(next+1), 10), revision); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// importRow must not do harm if it is repeated: a process can die before it moves the checkpoint.
func importRow(row int) {
	time.Sleep(100 * time.Millisecond) // stands for the work
	fmt.Println("row", row)
}
