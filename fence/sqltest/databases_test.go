package sqltest

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/mortise-lock/mortise/fence"
)

type database struct {
	*sql.DB
	dialect fence.Dialect
}

func (d database) p(n string) string {
	if d.dialect == fence.PostgreSQL {
		return "$" + n
	}
	return "?"
}

func onEach(t *testing.T, test func(t *testing.T, db database)) {
	t.Run("SQLite", func(t *testing.T) {
		// With _txlock=immediate, a transaction takes SQLite's write lock when it begins. Otherwise
		// concurrent writers can fail instead of waiting up to busy_timeout.
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(),
			"db")+"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		test(t, database{db, fence.SQLite})
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(t, database{newPostgres(t), fence.PostgreSQL}) })
}

func (d database) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
