package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// DefaultTable is the name of a [Table] that has none.
const DefaultTable = "mortise_fence"

// Table is a [Store] in a table of a database, one row for each resource: (resource text primary
// key, token bigint not null). Its value may be copied and is safe for concurrent use. Rows stay
// until somebody deletes them, and the mark of the resource with them.
//
// [Table.Tx] is the call that protects: it moves the mark inside the transaction that writes. The
// row is locked until that transaction ends, so nobody writes between the comparison and the write.
// The writes that a mark protects have to be in the same database, each after a Tx in its own
// transaction.
//
// Names are quoted, so they are taken as they are stored: PostgreSQL stores what was not quoted in
// lower case.
type Table struct {
	DB      *sql.DB // need not be set for Tx; the caller's, it is never closed here
	Dialect Dialect
	Name    string // "" means DefaultTable; may have a schema in front: "locks.fence"
}

func (t Table) quoted() (string, error) {
	if err := t.Dialect.known(); err != nil {
		return "", err
	}
	if t.Name == "" {
		return t.Dialect.quote(DefaultTable)
	}
	return t.Dialect.quote(t.Name)
}

// Schema returns the statement that makes the table if it is absent, for a migration.
func (t Table) Schema() (string, error) {
	name, err := t.quoted()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource %s NOT NULL PRIMARY KEY, token bigint NOT NULL)",
		name, t.Dialect.nameType()), nil
}

// Create makes the table if it is absent.
func (t Table) Create(ctx context.Context) error {
	text, err := t.Schema()
	if err != nil {
		return err
	}
	if t.DB == nil {
		return errNoDB
	}
	_, err = t.DB.ExecContext(ctx, text)
	return err
}

var errNoDB = errors.New("fence: Table.DB is not set")

// Tx advances the mark of resource in the [DefaultTable], within the caller's transaction; see
// [Table.Tx].
func Tx(ctx context.Context, tx *sql.Tx, dialect Dialect, resource string, token mortise.Token) error {
	return Table{Dialect: dialect}.Tx(ctx, tx, resource, token)
}

// Tx advances the mark of resource within the caller's transaction. Call it before the first read
// or write of the resource, and roll back if it returns an error; a *StaleError says that a higher
// token has been seen. It waits, as long as ctx allows, for other transactions that have called it
// for the same resource, and keeps others waiting until tx ends. The mark moves if and only if tx
// is committed.
//
// Under an isolation level above READ COMMITTED, and with SQLite when another connection writes,
// the database may refuse instead of waiting (a serialization failure, SQLITE_BUSY): that error is
// returned as it is, and the transaction has to be begun anew.
func (t Table) Tx(ctx context.Context, tx *sql.Tx, resource string, token mortise.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	name, err := t.quoted()
	if err != nil {
		return err
	}
	if t.Dialect == MySQL {
		return advanceMySQL(ctx, tx, name, resource, token)
	}
	// The same token is written too: it is the write that locks the row until the transaction ends.
	text := fmt.Sprintf("INSERT INTO %s AS mark (resource, token) VALUES (%s, %s) ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token",
		name, t.Dialect.placeholder(1), t.Dialect.placeholder(2))
	result, err := tx.ExecContext(ctx, text, resource, int64(token))
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err != nil || changed == 1 {
		return err
	}
	return compare(ctx, tx, fmt.Sprintf("SELECT token FROM %s WHERE resource = %s", name, t.Dialect.placeholder(1)),
		resource, token, true)
}

// advanceMySQL writes first and then looks what is there, since MySQL counts changed rows in a way
// that the connection decides.
func advanceMySQL(ctx context.Context, tx *sql.Tx, name, resource string, token mortise.Token) error {
	text := fmt.Sprintf("INSERT INTO %s (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))", name)
	if _, err := tx.ExecContext(ctx, text, resource, int64(token)); err != nil {
		return err
	}
	return compare(ctx, tx, fmt.Sprintf("SELECT token FROM %s WHERE resource = ? FOR UPDATE", name), resource, token,
		false)
}

// compare reads the mark, whose row is locked by us, and refuses token if it is lower; also if it
// is not, where that has been said before.
func compare(ctx context.Context, tx *sql.Tx, query, resource string, token mortise.Token, refused bool) error {
	var highest int64
	if err := tx.QueryRowContext(ctx, query, resource).Scan(&highest); err != nil {
		return err
	}
	if int64(token) < highest {
		return &StaleError{Resource: resource, Token: token, Highest: mortise.Token(highest)}
	}
	if refused {
		return fmt.Errorf("fence: the database refused token %d of %q, and now shows %d: is the row changed by others?", token, resource, highest)
	}
	return nil
}

// Advance implements [Store], in a transaction of its own. So it protects what is written
// afterwards only as far as nobody is overtaken between: prefer InTx, or Tx.
func (t Table) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return t.InTx(ctx, resource, token, func(*sql.Tx) error { return nil })
}

// InTx begins a transaction at the database's own isolation level, advances the mark, runs fn, and
// commits, or rolls back if anything fails, or panics. It returns the error of fn as it is. fn must
// neither commit nor roll back. If the commit itself fails, it may have happened.
func (t Table) InTx(ctx context.Context, resource string, token mortise.Token, fn func(*sql.Tx) error) (err error) {
	if t.DB == nil {
		return errNoDB
	}
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := t.Tx(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
