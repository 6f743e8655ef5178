package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Step names one piece of work that is to be done once.
type Step struct {
	Resource string        // what is worked on, and whose mark Token is compared with
	Token    mortise.Token // the holder's
	// ID tells the step from others of the resource: that of a request, a message, an order line;
	// by the rules for resources. It has to be the same when the step is repeated by another holder
	// of the lock. "" means the token itself: then only repetitions under one grant are recognized,
	// and the next holder does the work again.
	ID string
}

// id checks the step and returns its ID.
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

// DefaultLedger is the name of the table of a [Ledger] that has none.
const DefaultLedger = "mortise_step"

// Ledger remembers in a database which steps have been done, and with what result. Its value may be
// copied and is safe for concurrent use.
//
// What it can promise: work that is done in the transaction that it passes to fn takes effect
// exactly once, whoever repeats the step, and however often, until Forget; and never after a higher
// token of the resource has been seen. What it cannot: work outside that transaction, a charged
// card or a sent mail, is done at least once. If the process dies after the effect and before the
// commit, the step is not remembered, and a repetition does it again: pass the ID on, to a service
// that recognizes repetitions itself.
type Ledger struct {
	Marks Table  // where the tokens are compared; its DB and Dialect are the ledger's too
	Name  string // the table of the results; "" means DefaultLedger; may have a schema in front
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

// Schema returns the statement that makes the table of the results if it is absent. That of the
// marks is [Table.Schema].
func (l Ledger) Schema() (string, error) {
	name, err := l.quoted()
	if err != nil {
		return "", err
	}
	bytes := [...]string{PostgreSQL: "bytea", SQLite: "blob", MySQL: "longblob"}[l.Marks.Dialect]
	text := l.Marks.Dialect.nameType()
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource %s NOT NULL, id %s NOT NULL, token bigint NOT NULL, result %s NOT NULL, PRIMARY KEY (resource, id))",
		name, text, text, bytes), nil
}

// Create makes both tables if they are absent.
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

// Do returns the stored result of the step, or runs fn in a transaction, stores its result in the
// same one, and commits. If fn fails nothing is stored, and its error is returned as it is; a
// repetition tries again. A *StaleError comes before any of that, also if the step is done. Steps
// of one resource run one at a time, across all processes.
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
		// The mark's row is locked by now, so nobody else is between looking here and storing.
		query := fmt.Sprintf("SELECT result FROM %s WHERE resource = %s AND id = %s", name, p(1), p(2))
		if l.Marks.Dialect == MySQL {
			query += " FOR UPDATE" // else it would read what was there when the transaction first read
		}
		err := tx.QueryRowContext(ctx, query, step.Resource, id).Scan(&result)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if result, err = fn(tx); err != nil {
			return err
		}
		if result == nil {
			result = []byte{} // which no driver takes for NULL
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

// Forget drops the results of resource that were stored under a lower token than before, and
// returns how many. Their steps would be done again, so keep them for as long as anybody may repeat
// one.
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
