package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// A transaction rolls back if a holder with a higher token has already written.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:example?mode=memory&cache=shared&_txlock=immediate")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	marks := fence.Table{DB: db, Dialect: fence.SQLite}
	if err := marks.Create(ctx); err != nil {
		panic(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id integer PRIMARY KEY, state text)"); err != nil {
		panic(err)
	}
	node, err := mortise.Start(ctx, mortise.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	insert := func(ctx context.Context, token mortise.Token, state string) error {
		return marks.InTx(ctx, "orders/42", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO orders (state) VALUES (?)", state)
			return err
		})
	}
	err = node.Do(ctx, "orders/42", func(ctx context.Context, token mortise.Token) error {
		return insert(ctx, token,
			"paid")
	})
	fmt.Println(err)
	err = insert(ctx, 5, "cancelled") // 5 is the token of a former holder
	fmt.Println(errors.Is(err, fence.ErrStale))
	var states string
	err = db.QueryRowContext(ctx, "SELECT group_concat(state) FROM orders").Scan(&states)
	fmt.Println(states, err)
	// Output:
	// <nil>
	// true
	// paid <nil>
}
