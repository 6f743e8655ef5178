// Migrations is a service that migrates its database before it serves. All instances start at the
// same time: one of them migrates, and the others wait and then serve.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

const key = "examples/migrations"

var steps = []string{"CREATE TABLE orders (id integer)", "INSERT INTO orders VALUES (1)",
	"ALTER TABLE orders ADD COLUMN state text"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "migrations:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	config, err := mortise.ConfigFromEnv("MIGRATIONS_LOCK")
	if err != nil {
		return err
	}
	node, err := mortise.Start(ctx, config)
	if err != nil {
		return err
	}
	if err = serve(ctx, node, file); err == nil {
		<-ctx.Done() // stands for the service
	}
	return errors.Join(err, node.Leave(context.Background()))
}

func serve(ctx context.Context, node *mortise.Node, file string) (err error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = node.Do(ctx, key, func(ctx context.Context, token mortise.Token) error { return migrate(ctx, db, token) })
	if err == nil {
		fmt.Println("serves")
	}
	return err
}

// migrate asks the database which steps are done: only the database knows. A step is one
// transaction with its number and with the token, so a killed process leaves no part of a step, and
// a process that was paused and has lost the lock is refused.
func migrate(ctx context.Context, db *sql.DB, token mortise.Token) error {
	marks, done := fence.Table{DB: db, Dialect: fence.SQLite}, 0
	err := errors.Join(marks.Create(ctx), db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&done))
	for ; err == nil && done < len(steps); done++ {
		err = marks.InTx(ctx, key, token, func(tx *sql.Tx) error {
			fmt.Println("migrates to", done+1)
			time.Sleep(500 * time.Millisecond) // stands for a large table
			_, err := tx.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA user_version = %d", steps[done], done+1))
			return err
		})
	}
	return err
}
