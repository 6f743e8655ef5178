package recipes_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
)

// tables has the data of Example_orderInATransaction: the order 42 and its payments.
type tables struct {
	state    string
	token    driver.Value // int64, or nil for NULL
	payments int64
}

// database represents a real database. It is in memory, runs one transaction at a time, and
// supports only the statements of Example_orderInATransaction.
type database struct {
	mu   sync.Mutex // held from Begin to Commit or Rollback
	kept tables
}

func openDatabase() *sql.DB { return sql.OpenDB(&database{kept: tables{state: "open"}}) }

func (d *database) Connect(context.Context) (driver.Conn, error) { return &connection{d: d}, nil }
func (d *database) Driver() driver.Driver                        { return nil }

// connection is also the transaction that runs on it.
type connection struct {
	d   *database
	now tables
}

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *connection) Close() error                        { return nil }

func (c *connection) Begin() (driver.Tx, error) {
	c.d.mu.Lock()
	c.now = c.d.kept
	return c, nil
}

func (c *connection) Commit() error {
	c.d.kept = c.now
	return c.Rollback()
}

func (c *connection) Rollback() error {
	c.d.mu.Unlock()
	return nil
}

func (c *connection) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	switch {
	case strings.HasPrefix(query, `UPDATE "orders" SET state = $1, "fence_token" = $2 WHERE "id" = $3 AND`):
		token := args[1].Value.(int64)
		if seen, _ := c.now.token.(int64); seen > token {
			return driver.RowsAffected(0), nil
		}
		c.now.state, c.now.token = args[0].Value.(string), token
	case strings.HasPrefix(query, "INSERT INTO payments"):
		c.now.payments++
	default:
		return nil, errors.New("syntax error: " + query)
	}
	return driver.RowsAffected(1), nil
}

func (c *connection) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.HasPrefix(query, `SELECT "fence_token" FROM "orders"`):
		return &row{values: []driver.Value{c.now.token}}, nil
	case strings.HasPrefix(query, "SELECT state, (SELECT count(*) FROM payments)"): // without a transaction
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		return &row{values: []driver.Value{c.d.kept.state, c.d.kept.payments}}, nil
	}
	return nil, errors.New("syntax error: " + query)
}

type row struct {
	values []driver.Value
	read   bool
}

func (r *row) Columns() []string { return make([]string, len(r.values)) }
func (r *row) Close() error      { return nil }

func (r *row) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	copy(dest, r.values)
	return nil
}
