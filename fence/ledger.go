package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Step identifies one piece of work that is to be done once.
type Step struct {
	Resource string        // the resource that is worked on; its mark is compared with Token
	Token    mortise.Token // the holder's token
	// ID distinguishes the step from other steps of the resource, for example the ID of a request
	// or a message. It must be a valid name of a resource. ID must be the same when another holder
	// of the lock repeats the step. If ID is "", the token is the ID, and the next holder does the
	// work again.
	ID string
}

func (s Step) id() (string, error) {
	if err := check(s.Resource, s.Token); err != nil {
		return "", err
	}
	if s.ID == "" {
		return FormatToken(s.Token), nil
	}
	if err := checkName(s.ID); err != nil {
		return "", fmt.Errorf("the ID of a step: %w", err)
	}
	return s.ID, nil
}

// DefaultLedger is the default table name of a [Ledger].
const DefaultLedger = "mortise_step"

// Ledger records in a database which steps are done, and their results. A Ledger may be copied and
// is safe for concurrent use.
//
// If fn works in the transaction that is passed to it, the work takes effect exactly once until
// Forget is called. If the resource has seen a higher token before, the work has no effect. Work
// outside of that transaction, such as sending a mail, is done at least once: if the process dies
// before the commit, a repetition does the work again. For such work, pass the ID to a service
// that recognizes repetitions.
type Ledger struct {
	Marks Table  // the table of the marks; the ledger uses its DB and Dialect
	Name  string // the table of the results, may have a schema prefix; "" means DefaultLedger
}

func (l Ledger) quoted() (string, error) {
	if err := l.Marks.Dialect.known(); err != nil {
		return "", err
	}
	if l.Name == "" {
		return l.Marks.Dialect.quote(DefaultLedger)
	}
	return l.Marks.Dialect.quote(l.Name)
}

// Schema returns the statement that creates the table of the results if it does not exist.
func (l Ledger) Schema() (string, error) {
	name, err := l.quoted()
	if err != nil {
		return "", err
	}
	bytes := [...]string{PostgreSQL: "bytea", SQLite: "blob", MySQL: "longblob"}[l.Marks.Dialect]
	text := l.Marks.Dialect.nameType()
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource %s NOT NULL, id %s NOT NULL, token bigint NOT NULL, "+
		"result %s NOT NULL, PRIMARY KEY (resource, id))",
		name, text, text, bytes), nil
}

// Create creates the tables of the marks and of the results if they do not exist.
func (l Ledger) Create(ctx context.Context) error {
	if err := l.Marks.Create(ctx); err != nil {
		return err
	}
	text, err := l.Schema()
	if err != nil {
		return err
	}
	_, err = l.Marks.DB.ExecContext(ctx, text)
	return err
}

// Do returns the stored result of the step. If no result is stored, Do runs fn in a transaction and
// stores the result in the same transaction. If fn fails, Do stores nothing and returns the error
// of fn unchanged. A stale token fails with a *StaleError even if the step is done. Steps of one
// resource run one at a time, across all processes.
func (l Ledger) Do(ctx context.Context, step Step, fn func(*sql.Tx) ([]byte, error)) (result []byte, err error) {
	id, err := step.id()
	if err != nil {
		return nil, err
	}
	name, err := l.quoted()
	if err != nil {
		return nil, err
	}
	p := l.Marks.Dialect.placeholder
	err = l.Marks.InTx(ctx, step.Resource, step.Token, func(tx *sql.Tx) error {
		// The row of the mark is locked, so no other transaction can store a result before the
		// commit.
		query := fmt.Sprintf("SELECT result FROM %s WHERE resource = %s AND id = %s", name, p(1), p(2))
		if l.Marks.Dialect == MySQL {
			query += " FOR UPDATE" // otherwise MySQL would use the snapshot of the transaction's first read
		}
		err := tx.QueryRowContext(ctx, query, step.Resource, id).Scan(&result)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if result, err = fn(tx); err != nil {
			return err
		}
		if result == nil {
			result = []byte{} // some drivers store nil as NULL
		}
		insert := fmt.Sprintf("INSERT INTO %s (resource, id, token, result) VALUES (%s, %s, %s, %s)", name, p(1),
			p(2), p(3), p(4))
		_, err = tx.ExecContext(ctx, insert, step.Resource, id, int64(step.Token), result)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Forget deletes the results of resource whose token is lower than the parameter before, and
// returns how many it has deleted. Keep results as long as their steps may be repeated.
func (l Ledger) Forget(ctx context.Context, resource string, before mortise.Token) (int64, error) {
	if err := check(resource, before); err != nil {
		return 0, err
	}
	name, err := l.quoted()
	if err != nil {
		return 0, err
	}
	if l.Marks.DB == nil {
		return 0, errNoDB
	}
	p := l.Marks.Dialect.placeholder
	gone, err := l.Marks.DB.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE resource = %s AND token < %s", name,
		p(1), p(2)), resource, int64(before))
	if err != nil {
		return 0, err
	}
	return gone.RowsAffected()
}
