package mortisegoose

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/postgres"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

//go:embed testdata
var embedded embed.FS

func migrations(t testing.TB) fs.FS {
	t.Helper()
	in, err := fs.Sub(embedded, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func openSQLite(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
}

type database struct {
	*sql.DB
	dialect goose.Dialect
}

func (d database) provider(t testing.TB, option goose.ProviderOption, more ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	p, err := goose.NewProvider(d.dialect, d.DB, migrations(t), append(more, option)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// onEach runs a test on SQLite and on PostgreSQL, each time with an empty database.
func onEach(t *testing.T, test func(t *testing.T, db database)) {
	t.Run("SQLite", func(t *testing.T) {
		db, err := openSQLite(filepath.Join(t.TempDir(), "db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(t, database{db, goose.DialectSQLite3})
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
		db, err := sql.Open("pgx", server.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(t, database{db, goose.DialectPostgres})
	})
}

func TestMain(m *testing.M) { trio.Main(m, migrate) }

// migrate runs in a process of its own. The second migration of the process that has the lock first
// waits until the process is killed.
func migrate(ctx context.Context, node *mortise.Node) error {
	db, err := openSQLite(os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	wait := func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO log VALUES ('second')"); err != nil {
			return err
		}
		if os.Remove(os.Getenv("BAIT")) == nil { // succeeds in one process only
			fmt.Println("inside")
			<-ctx.Done()
		}
		return nil
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithLocker(New(node, "migrate/orders")),
		goose.WithGoMigrations(
			goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "CREATE TABLE log (what text)")
				return err
			}}, nil),
			goose.NewGoMigration(2, &goose.GoFunc{RunTx: wait}, nil)))
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return err
	}
	fmt.Println("done")
	fmt.Println("applied", len(results))
	return nil
}
