package mortisegoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisegoose"
)

// Each instance of a service runs this when it starts. One of them migrates at a time.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	db, err := sql.Open("sqlite", "file:example?mode=memory&cache=shared")
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	migrations := fstest.MapFS{"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id integer);")}}

	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, // an embed.FS, for example
		goose.WithLocker(mortisegoose.New(node, "migrate/orders")))
	if err != nil {
		panic(err)
	}
	results, err := provider.Up(ctx)
	fmt.Println(len(results), "migration applied, error:", err)
	// Output:
	// 1 migration applied, error: <nil>
}
