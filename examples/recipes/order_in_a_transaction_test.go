package recipes_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// settle writes the new state of an order and its payment in one transaction. The first statement
// compares the token: if a later holder of the lock has written the row, the statement fails and
// the transaction is rolled back.
func settle(ctx context.Context, db *sql.DB, order int, token mortise.Token, state string, amount int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after Commit

	orders := fence.Row{Dialect: fence.PostgreSQL, Table: "orders"} // with a column fence_token bigint
	if err := orders.Update(ctx, tx, order, token, "state = $1", state); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", order,
		amount); err != nil {
		return err
	}
	return tx.Commit()
}

// The lock makes two workers exclude each other. The token stops a worker that has lost the lock
// and has not noticed.
func Example_orderInATransaction() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{})
	check(err)
	defer func() { _ = node.Leave(ctx) }()
	db := openDatabase() // in production sql.Open
	defer func() { _ = db.Close() }()

	// Anna's worker gets the lock. Its process is then paused until the lock is lost.
	anna, err := node.Lock(ctx, "orders/42")
	check(err)
	check(anna.Unlock(ctx)) // represents the loss

	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		return settle(ctx, db, 42, token, "paid", 100)
	})
	fmt.Println("ben:", err)

	// Anna's worker continues after the loss.
	err = settle(ctx, db, 42, anna.Token(), "refunded", -100)
	fmt.Println("anna is too late:", errors.Is(err, fence.ErrStale))

	var state string
	var payments int
	check(db.QueryRowContext(ctx, "SELECT state, (SELECT count(*) FROM payments) FROM orders WHERE id = $1",
		42).Scan(&state, &payments))
	fmt.Println("order 42:", state, "with", payments, "payment")
	// Output:
	// ben: <nil>
	// anna is too late: true
	// order 42: paid with 1 payment
}
