package mortisemigrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisemigrate"
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
	files, err := iofs.New(fstest.MapFS{ // an embed.FS, for example
		"1_orders.up.sql": {Data: []byte("CREATE TABLE orders (id integer);")},
	}, ".")
	if err != nil {
		panic(err)
	}

	driver, err := sqlite.WithInstance(db, &sqlite.Config{})
	if err != nil {
		panic(err)
	}
	locked := mortisemigrate.Wrap(driver, node, "migrate/orders", mortisemigrate.Options{})
	m, err := migrate.NewWithInstance("iofs", files, "orders", locked)
	if err != nil {
		panic(err)
	}
	fmt.Println("migrated, error:", m.Up())
	version, dirty, err := m.Version()
	fmt.Println("version", version, dirty, err)
	// Output:
	// migrated, error: <nil>
	// version 1 false <nil>
}
