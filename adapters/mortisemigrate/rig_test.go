package mortisemigrate

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	pgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/postgres"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

//go:embed testdata
var embedded embed.FS

func openSQLite(file string) (database.Driver, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	return sqlite.WithInstance(db, &sqlite.Config{})
}

// onEach runs a test on SQLite and on PostgreSQL, each time with an empty database. open returns a
// new driver of the database at each call.
func onEach(t *testing.T, test func(t *testing.T, open func() database.Driver)) {
	run := func(t *testing.T, open func() (database.Driver, error)) {
		test(t, func() database.Driver {
			driver, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { driver.Close() })
			return driver
		})
	}
	t.Run("SQLite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "db")
		run(t, func() (database.Driver, error) { return openSQLite(file) })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server, err := postgres.Start()
		if errors.Is(err, postgres.ErrAbsent) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		run(t, func() (database.Driver, error) {
			db, err := sql.Open("pgx", server.URL("postgres"))
			if err != nil {
				return nil, err
			}
			return pgx.WithInstance(db, &pgx.Config{})
		})
	})
}

func newMigrate(driver database.Driver) (*migrate.Migrate, error) {
	files, err := iofs.New(embedded, "testdata")
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("iofs", files, "orders", driver)
}

func TestMain(m *testing.M) { trio.Main(m, work) }

// bait is a driver that stops the first process that calls Version under its lock.
type bait struct{ database.Driver }

func (b bait) Version() (int, bool, error) {
	if os.Remove(os.Getenv("BAIT")) == nil { // succeeds in one process only
		fmt.Println("inside")
		select {}
	}
	return b.Driver.Version()
}

// work runs in a process of its own.
func work(_ context.Context, node *mortise.Node) error {
	driver, err := openSQLite(os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	m, err := newMigrate(Wrap(bait{driver}, node, "migrate/orders", Options{}))
	if err != nil {
		return err
	}
	switch err := m.Up(); {
	case errors.Is(err, migrate.ErrNoChange):
		fmt.Println("no change")
	case err != nil:
		return err
	default:
		fmt.Println("migrated")
	}
	return nil
}
