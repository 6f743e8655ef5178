package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// DefaultTable is the default name of a [Table].
const DefaultTable = "mortise_fence"

// Table is a [Store] in a database table with one row for each resource: (resource text primary
// key, token bigint not null). A Table may be copied and is safe for concurrent use. It never
// deletes a row. If you delete a row, its mark is lost.
//
// [Table.Tx] advances the mark in the same transaction that writes the resource. The row of the
// mark is locked until that transaction ends, so no other holder can write between the comparison
// and the write. The protected data must be in the same database as the marks, and each transaction
// that writes them must call Tx first.
//
// Names are quoted and therefore case-sensitive. PostgreSQL stores unquoted names in lower case.
type Table struct {
	DB      *sql.DB // not needed for Tx; the caller must close it
	Dialect Dialect
	Name    string // "" means DefaultTable; may have a schema prefix: "locks.fence"
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

// Schema returns the statement that creates the table if it does not exist, for use in a migration.
func (t Table) Schema() (string, error) {
	name, err := t.quoted()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource %s NOT NULL PRIMARY KEY, token bigint NOT NULL)",
		name, t.Dialect.nameType()), nil
}

// Create creates the table if it does not exist.
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

// Tx calls [Table.Tx] for the [DefaultTable].
func Tx(ctx context.Context, tx *sql.Tx, dialect Dialect, resource string, token mortise.Token) error {
	return Table{Dialect: dialect}.Tx(ctx, tx, resource, token)
}

// Tx advances the mark of resource within the caller's transaction. Call Tx before the first read
// or write of the resource, and roll back if Tx returns an error. A *StaleError means that a higher
// token has been seen. Transactions that call Tx for the same resource run one after the other; Tx
// waits as long as ctx allows. The mark changes only if tx is committed.
//
// Under an isolation level above READ COMMITTED, and with SQLite when another connection writes,
// the database may fail instead of waiting (a serialization failure, SQLITE_BUSY). The caller must
// then retry the whole transaction.
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
	// Write an equal token too, because the write locks the row until the transaction ends.
	text := fmt.Sprintf("INSERT INTO %s AS mark (resource, token) VALUES (%s, %s) "+
		"ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token",
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

// advanceMySQL writes first and then reads the token. A setting of the connection decides which
// rows MySQL counts as changed, so their number is of no use.
func advanceMySQL(ctx context.Context, tx *sql.Tx, name, resource string, token mortise.Token) error {
	text := fmt.Sprintf("INSERT INTO %s (resource, token) VALUES (?, ?) "+
		"ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))", name)
	if _, err := tx.ExecContext(ctx, text, resource, int64(token)); err != nil {
		return err
	}
	return compare(ctx, tx, fmt.Sprintf("SELECT token FROM %s WHERE resource = ? FOR UPDATE", name), resource, token,
		false)
}

// compare reads the mark, whose row this transaction has locked, and refuses a lower token. If the
// argument refused is true, the database has already refused the token, and compare always returns
// an error.
func compare(ctx context.Context, tx *sql.Tx, query, resource string, token mortise.Token, refused bool) error {
	var highest int64
	if err := tx.QueryRowContext(ctx, query, resource).Scan(&highest); err != nil {
		return err
	}
	if int64(token) < highest {
		return &StaleError{Resource: resource, Token: token, Highest: mortise.Token(highest)}
	}
	if refused {
		return fmt.Errorf("fence: the database refused token %d of %q and now has %d: does another program change the row?",
			token, resource, highest)
	}
	return nil
}

// Advance implements [Store] in a transaction of its own. Another holder can write between Advance
// and your write, so prefer InTx or Tx.
func (t Table) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return t.InTx(ctx, resource, token, func(*sql.Tx) error { return nil })
}

// InTx begins a transaction at the database's default isolation level, advances the mark, runs fn
// and commits. It rolls back if a step fails or fn panics. It returns the error of fn unchanged. fn
// must neither commit nor roll back. If the commit returns an error, the transaction may have been
// committed nevertheless.
func (t Table) InTx(ctx context.Context, resource string, token mortise.Token, fn func(*sql.Tx) error) (err error) {
	if t.DB == nil {
		return errNoDB
	}
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := t.Tx(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
