package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
)

// DefaultColumn is the default name of the token's column.
const DefaultColumn = "fence_token"

// Row guards the rows of a table by an additional bigint column. The column holds the highest token
// that has written the row, or NULL. One statement compares and writes, so Row needs no
// transaction, no table of marks and no extra round trip. A Row may be copied and is safe for
// concurrent use.
//
// Row protects only rows that exist, and only from guarded statements. A deleted row loses its
// mark. To guard the creation and deletion of rows too, use a [Table].
type Row struct {
	Dialect Dialect
	Table   string // may have a schema prefix; the name is quoted, as in Table
	Key     string // the column that identifies one row; "" means "id"
	Column  string // the column of the token; "" means DefaultColumn
}

// DB runs statements; *sql.DB, *sql.Tx and *sql.Conn implement it.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

type names struct{ table, key, column string }

func (r Row) names() (n names, err error) {
	if err := r.Dialect.known(); err != nil {
		return n, err
	}
	key, column := r.Key, r.Column
	if key == "" {
		key = "id"
	}
	if column == "" {
		column = DefaultColumn
	}
	var errs [3]error
	n.table, errs[0] = r.Dialect.quote(r.Table)
	n.key, errs[1] = r.Dialect.quoteColumn(key)
	n.column, errs[2] = r.Dialect.quoteColumn(column)
	return n, errors.Join(errs[:]...)
}

// Condition returns the condition for a statement of your own, and its argument:
//
//	("fence_token" IS NULL OR "fence_token" <= $3)
//
// n is the number of the placeholder, beginning at 1; only PostgreSQL uses it. The statement must
// also set the token's column to that argument.
func (r Row) Condition(n int, token mortise.Token) (text string, arg int64, err error) {
	arg, err = Int64(token)
	if err != nil {
		return "", 0, err
	}
	if err := r.Dialect.known(); err != nil {
		return "", 0, err
	}
	column := r.Column
	if column == "" {
		column = DefaultColumn
	}
	if column, err = r.Dialect.quoteColumn(column); err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("(%s IS NULL OR %s <= %s)", column, column, r.Dialect.placeholder(n)), arg, nil
}

// Statement returns the guarded UPDATE of the row with the key id, and the arguments of this
// UPDATE, for callers that do not use database/sql. set is the text after SET, with the
// placeholders of args, for example "state = $1, total = $2". It is used unchanged, so it must
// never contain untrusted text.
func (r Row) Statement(id any, token mortise.Token, set string, args ...any) (query string, all []any, err error) {
	n, err := r.names()
	if err != nil {
		return "", nil, err
	}
	condition, arg, err := r.Condition(len(args)+3, token)
	if err != nil {
		return "", nil, err
	}
	if set != "" {
		set += ", "
	}
	d := r.Dialect
	query = fmt.Sprintf("UPDATE %s SET %s%s = %s WHERE %s = %s AND %s", n.table, set, n.column,
		d.placeholder(len(args)+1), n.key, d.placeholder(len(args)+2), condition)
	return query, append(slices.Clone(args), arg, id, arg), nil
}

// Update runs the guarded UPDATE of [Row.Statement]. It returns nil if the row was written, a
// *StaleError if a higher token has written the row, and an error that wraps ErrMissing if there is
// no such row. If set is empty, Update changes only the token's column.
func (r Row) Update(ctx context.Context, db DB, id any, token mortise.Token, set string, args ...any) error {
	query, all, err := r.Statement(id, token, set, args...)
	if err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, query, all...)
	if err != nil {
		return err
	}
	return r.Outcome(ctx, db, result, id, token)
}

// Outcome returns the error that [Row.Update] would return for the result of your own guarded
// statement on the row with the key id. It queries the database only if the statement wrote no
// row.
func (r Row) Outcome(ctx context.Context, db DB, result sql.Result, id any, token mortise.Token) error {
	n, err := r.names()
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if changed > 1 {
		return fmt.Errorf("fence: %d rows of %s have been written: %s does not identify one row", changed, n.table, n.key)
	}
	if changed == 1 {
		return nil
	}
	var highest sql.NullInt64
	err = db.QueryRowContext(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s = %s", n.column, n.table, n.key,
		r.Dialect.placeholder(1)), id).Scan(&highest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	switch seen := mortise.Token(max(highest.Int64, 0)); {
	case seen > token:
		return &StaleError{Resource: fmt.Sprintf("%s/%v", r.Table, id), Token: token, Highest: seen}
	case seen == token && r.Dialect == MySQL:
		return nil // MySQL does not count a row whose values do not change
	}
	return fmt.Errorf("%w: no row of %s has the %s %v", ErrMissing, n.table, n.key, id)
}
