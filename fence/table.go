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
// key, token bigint not null). Its value may be copied and is safe for concurrent use. It never
// deletes a row; deleting it deletes the mark.
//
// [Table.Tx] moves the mark inside the transaction that writes, and so protects it. The row is
// locked until that transaction ends, so no other write comes between the comparison and the write.
// The protected writes must be in the same database, each after a Tx in its own transaction.
//
// Names are quoted and therefore case-sensitive: PostgreSQL stores unquoted names in lower case.
type Table struct {
	DB      *sql.DB // not needed for Tx; the caller owns it, and it is never closed here
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

// Schema returns the statement that creates the table if it does not exist, for a migration.
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

// Tx is [Table.Tx] for the [DefaultTable].
func Tx(ctx context.Context, tx *sql.Tx, dialect Dialect, resource string, token mortise.Token) error {
	return Table{Dialect: dialect}.Tx(ctx, tx, resource, token)
}

// Tx advances the mark of resource within the caller's transaction. Call it before the first read
// or write of the resource, and roll back if it returns an error; a *StaleError means that a higher
// token has been seen. It waits, as long as ctx allows, for other transactions that have called it
// for the same resource, and blocks later ones until tx ends. The mark moves if and only if tx is
// committed.
//
// Under an isolation level above READ COMMITTED, and with SQLite when another connection writes,
// the database may fail instead of waiting (a serialization failure, SQLITE_BUSY). Tx returns that
// error unchanged, and the caller must retry the whole transaction.
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
	// The same token is written too: the write locks the row until the transaction ends.
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

// advanceMySQL writes first and then reads the result, because the connection decides how MySQL
// counts changed rows.
func advanceMySQL(ctx context.Context, tx *sql.Tx, name, resource string, token mortise.Token) error {
	text := fmt.Sprintf("INSERT INTO %s (resource, token) VALUES (?, ?) "+
		"ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))", name)
	if _, err := tx.ExecContext(ctx, text, resource, int64(token)); err != nil {
		return err
	}
	return compare(ctx, tx, fmt.Sprintf("SELECT token FROM %s WHERE resource = ? FOR UPDATE", name), resource, token,
		false)
}

// compare reads the mark, whose row this transaction has locked, and refuses token if it is lower.
// refused means that the database has refused it: then a higher or equal token is an error too.
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

// Advance implements [Store], in a transaction of its own. A later write outside of it can be
// overtaken: prefer InTx or Tx.
func (t Table) Advance(ctx context.Context, resource string, token mortise.Token) error {
	return t.InTx(ctx, resource, token, func(*sql.Tx) error { return nil })
}

// InTx begins a transaction at the database's default isolation level, advances the mark, runs fn
// and commits. It rolls back if anything fails or panics. It returns the error of fn unchanged. fn
// must neither commit nor roll back. If the commit itself fails, it may have taken effect.
func (t Table) InTx(ctx context.Context, resource string, token mortise.Token, fn func(*sql.Tx) error) (err error) {
	if t.DB == nil {
		return errNoDB
	}
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after the commit
	if err := t.Tx(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}
