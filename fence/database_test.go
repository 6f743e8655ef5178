package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// scripted is a database that notes each call, and takes its answers from a list.
type scripted struct {
	answers []answer // of the statements, in order
	fails   int      // the place of the call that fails in calls, or -1
	calls   []string
}

// answer is the number of rows that a statement has changed, or the column of the rows that a query
// finds.
type answer struct {
	count int64
	rows  []driver.Value
}

var errDown = errors.New("the database is down")

func (s *scripted) open(t *testing.T) *sql.DB {
	db := sql.OpenDB(s)
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *scripted) note(call string) error {
	s.calls = append(s.calls, call)
	if len(s.calls) == s.fails+1 {
		return errDown
	}
	return nil
}

func (s *scripted) statement(query string, args []driver.NamedValue) (a answer, err error) {
	for _, arg := range args {
		query += fmt.Sprintf(" %#v", arg.Value)
	}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	return a, s.note(query)
}

func (s *scripted) Connect(context.Context) (driver.Conn, error) { return scriptedConn{s}, nil }
func (s *scripted) Driver() driver.Driver                        { return nil }

type scriptedConn struct{ *scripted }

func (scriptedConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (scriptedConn) Close() error                        { return nil }
func (c scriptedConn) Begin() (driver.Tx, error)         { return c, c.note("begin") }
func (c scriptedConn) Commit() error                     { return c.note("commit") }
func (c scriptedConn) Rollback() error                   { return c.note("rollback") }

func (c scriptedConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	a, err := c.statement(query, args)
	return scriptedResult{c.scripted, a.count}, err
}

func (c scriptedConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	a, err := c.statement(query, args)
	return &scriptedRows{a.rows}, err
}

type scriptedResult struct {
	*scripted
	count int64
}

func (r scriptedResult) LastInsertId() (int64, error) { return 0, errors.New("there is none") }
func (r scriptedResult) RowsAffected() (int64, error) {
	if err := r.note("count"); err != nil {
		return 0, err
	}
	return r.count, nil
}

type scriptedRows struct{ left []driver.Value }

func (r *scriptedRows) Columns() []string { return []string{"c"} }
func (r *scriptedRows) Close() error      { return nil }
func (r *scriptedRows) Next(to []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	to[0], r.left = r.left[0], r.left[1:]
	return nil
}

// operation is what a test does with a database, and all that the database sees of it.
type operation struct {
	name    string
	do      func(ctx context.Context, db *sql.DB) (any, error)
	answers []answer
	calls   []string
	result  any    // also the result of every call that fails, if that is its zero value
	fails   string // the error, or "" for none
	is      error  // what the error also is
}

var errOwn = errors.New("of fn")

// The statements in which the tests below agree.
const (
	pgMark = `INSERT INTO "mortise_fence" AS mark (resource, token) VALUES ($1, $2) ON CONFLICT (resource) ` +
		`DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token "r" 5`
	pgRead   = `SELECT token FROM "mortise_fence" WHERE resource = $1 "r"`
	liteMark = `INSERT INTO "locks"."fence" AS mark (resource, token) VALUES (?, ?) ON CONFLICT (resource) ` +
		`DO UPDATE SET token = excluded.token WHERE mark.token <= excluded.token "r" 5`
	liteRead = `SELECT token FROM "locks"."fence" WHERE resource = ? "r"`
	myMark   = "INSERT INTO `mortise_fence` (resource, token) VALUES (?, ?) " +
		"ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token)) \"r\" 5"
	myRead    = "SELECT token FROM `mortise_fence` WHERE resource = ? FOR UPDATE \"r\""
	pgStep    = `SELECT result FROM "mortise_step" WHERE resource = $1 AND id = $2 "r" `
	pgStored  = `INSERT INTO "mortise_step" (resource, id, token, result) VALUES ($1, $2, $3, $4) "r" `
	pgUpdate  = `UPDATE "s"."o" SET a = $1, "seen" = $2 WHERE "no" = $3 AND ("seen" IS NULL OR "seen" <= $4) 1 5 42 5`
	pgSeen    = `SELECT "seen" FROM "s"."o" WHERE "no" = $1 42`
	myUpdate  = "UPDATE `o` SET `fence_token` = ? WHERE `id` = ? AND (`fence_token` IS NULL OR `fence_token` <= ?) 5 42 5"
	mySeen    = "SELECT `fence_token` FROM `o` WHERE `id` = ? 42"
	stale     = `fence: token 5 of "r" is older than 9, the highest seen`
	staleRow  = `fence: token 5 of "s.o/42" is older than 9, the highest seen`
	missing   = `fence: no such row or object: no row of "s"."o" has the "no" 42`
	missingMy = "fence: no such row or object: no row of `o` has the `id` 42"
)

func tables(db *sql.DB) (pg, lite, my fence.Table) {
	return fence.Table{DB: db, Dialect: fence.PostgreSQL},
		fence.Table{DB: db, Dialect: fence.SQLite, Name: "locks.fence"}, fence.Table{DB: db, Dialect: fence.MySQL}
}

func operationsOfTables() []operation {
	create := func(of func(db *sql.DB) fence.Table) func(context.Context, *sql.DB) (any, error) {
		return func(ctx context.Context, db *sql.DB) (any, error) { return nil, of(db).Create(ctx) }
	}
	advance := func(of func(db *sql.DB) fence.Table) func(context.Context, *sql.DB) (any, error) {
		return func(ctx context.Context, db *sql.DB) (any, error) { return nil, of(db).Advance(ctx, "r", 5) }
	}
	pg := func(db *sql.DB) fence.Table { t, _, _ := tables(db); return t }
	lite := func(db *sql.DB) fence.Table { _, t, _ := tables(db); return t }
	my := func(db *sql.DB) fence.Table { _, _, t := tables(db); return t }
	one, none, nine := answer{count: 1}, answer{}, answer{rows: []driver.Value{int64(9)}}
	return []operation{
		{name: "create, PostgreSQL", do: create(pg), calls: []string{
			`CREATE TABLE IF NOT EXISTS "mortise_fence" (resource text NOT NULL PRIMARY KEY, token bigint NOT NULL)`}},
		{name: "create, SQLite", do: create(lite), calls: []string{
			`CREATE TABLE IF NOT EXISTS "locks"."fence" (resource text NOT NULL PRIMARY KEY, token bigint NOT NULL)`}},
		{name: "create, MySQL", do: create(my), calls: []string{
			"CREATE TABLE IF NOT EXISTS `mortise_fence` (resource varbinary(512) NOT NULL PRIMARY KEY, " +
				"token bigint NOT NULL)"}},
		{name: "advance, PostgreSQL", do: advance(pg), answers: []answer{one},
			calls: []string{"begin", pgMark, "count", "commit"}},
		{name: "stale, PostgreSQL", do: advance(pg), answers: []answer{none, nine}, fails: stale, is: fence.ErrStale,
			calls: []string{"begin", pgMark, "count", pgRead, "rollback"}},
		{name: "refused for no reason", do: advance(pg), answers: []answer{none, {rows: []driver.Value{int64(5)}}},
			fails: `fence: the database refused token 5 of "r" and now has 5: does another program change the row?`,
			calls: []string{"begin", pgMark, "count", pgRead, "rollback"}},
		{name: "advance, SQLite", do: advance(lite), answers: []answer{one},
			calls: []string{"begin", liteMark, "count", "commit"}},
		{name: "stale, SQLite", do: advance(lite), answers: []answer{none, nine}, fails: stale, is: fence.ErrStale,
			calls: []string{"begin", liteMark, "count", liteRead, "rollback"}},
		{name: "advance, MySQL", do: advance(my), answers: []answer{one, {rows: []driver.Value{int64(5)}}},
			calls: []string{"begin", myMark, myRead, "commit"}},
		{name: "stale, MySQL", do: advance(my), answers: []answer{one, nine}, fails: stale, is: fence.ErrStale,
			calls: []string{"begin", myMark, myRead, "rollback"}},
		{name: "fn fails", answers: []answer{one}, fails: "of fn", is: errOwn, do: func(ctx context.Context,
			db *sql.DB) (any, error) {
			return nil, pg(db).InTx(ctx, "r", 5, func(*sql.Tx) error { return errOwn })
		}, calls: []string{"begin", pgMark, "count", "rollback"}},
		{name: "fn writes", answers: []answer{one}, do: func(ctx context.Context, db *sql.DB) (any, error) {
			return nil, pg(db).InTx(ctx, "r", 5, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "work")
				return err
			})
		}, calls: []string{"begin", pgMark, "count", "work", "commit"}},
		{name: "the caller's transaction", answers: []answer{one}, do: func(ctx context.Context,
			db *sql.DB) (any, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, err
			}
			defer tx.Rollback()
			if err := fence.Tx(ctx, tx, fence.PostgreSQL, "r", 5); err != nil {
				return nil, err
			}
			return nil, tx.Commit()
		}, calls: []string{"begin", pgMark, "count", "commit"}},
	}
}

func operationsOfLedgers() []operation {
	step := func(id string, result []byte, fails error) func(context.Context, *sql.DB) (any, error) {
		return func(ctx context.Context, db *sql.DB) (any, error) {
			pg, _, _ := tables(db)
			return fence.Ledger{Marks: pg}.Do(ctx, fence.Step{Resource: "r", Token: 5, ID: id},
				func(tx *sql.Tx) ([]byte, error) {
					if _, err := tx.ExecContext(ctx, "work"); err != nil {
						return result, err
					}
					return result, fails
				})
		}
	}
	create := func(d fence.Dialect, name string) func(context.Context, *sql.DB) (any, error) {
		return func(ctx context.Context, db *sql.DB) (any, error) {
			return nil, fence.Ledger{Marks: fence.Table{DB: db, Dialect: d}, Name: name}.Create(ctx)
		}
	}
	one, nine := answer{count: 1}, answer{rows: []driver.Value{int64(9)}}
	begun := []string{"begin", pgMark, "count"}
	with := func(calls ...string) []string { return append(slices.Clone(begun), calls...) }
	return []operation{
		{name: "create, PostgreSQL", do: create(fence.PostgreSQL, ""), calls: []string{
			`CREATE TABLE IF NOT EXISTS "mortise_fence" (resource text NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS "mortise_step" (resource text NOT NULL, id text NOT NULL, token bigint NOT NULL, ` +
				`result bytea NOT NULL, PRIMARY KEY (resource, id))`}},
		{name: "create, SQLite", do: create(fence.SQLite, "locks.steps"), calls: []string{
			`CREATE TABLE IF NOT EXISTS "mortise_fence" (resource text NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS "locks"."steps" (resource text NOT NULL, id text NOT NULL, token bigint NOT NULL, ` +
				`result blob NOT NULL, PRIMARY KEY (resource, id))`}},
		{name: "create, MySQL", do: create(fence.MySQL, ""), calls: []string{
			"CREATE TABLE IF NOT EXISTS `mortise_fence` (resource varbinary(512) NOT NULL PRIMARY KEY, " +
				"token bigint NOT NULL)",
			"CREATE TABLE IF NOT EXISTS `mortise_step` (resource varbinary(512) NOT NULL, id varbinary(512) NOT NULL, " +
				"token bigint NOT NULL, result longblob NOT NULL, PRIMARY KEY (resource, id))"}},
		{name: "a new step", do: step("s", []byte("done"), nil), answers: []answer{one}, result: []byte("done"),
			calls: with(pgStep+`"s"`, "work", pgStored+`"s" 5 `+fmt.Sprintf("%#v", []byte("done")), "commit")},
		{name: "a step without an ID", do: step("", []byte("done"), nil), answers: []answer{one}, result: []byte("done"),
			calls: with(pgStep+`"5"`, "work", pgStored+`"5" 5 `+fmt.Sprintf("%#v", []byte("done")), "commit")},
		{name: "a step without a result", do: step("s", nil, nil), answers: []answer{one}, result: []byte{},
			calls: with(pgStep+`"s"`, "work", pgStored+`"s" 5 []byte{}`, "commit")},
		{name: "a step that is done", do: step("s", []byte("again"), nil), result: []byte("before"),
			answers: []answer{one, {rows: []driver.Value{[]byte("before")}}}, calls: with(pgStep+`"s"`, "commit")},
		{name: "a step that fails", do: step("s", []byte("half"), errOwn), answers: []answer{one}, result: []byte(nil),
			fails: "of fn", is: errOwn, calls: with(pgStep+`"s"`, "work", "rollback")},
		{name: "a stale step", do: step("s", nil, nil), answers: []answer{{}, nine}, result: []byte(nil), fails: stale,
			is: fence.ErrStale, calls: with(pgRead, "rollback")},
		{name: "a new step, MySQL", answers: []answer{one, {rows: []driver.Value{int64(5)}}}, result: []byte("done"),
			do: func(ctx context.Context, db *sql.DB) (any, error) {
				_, _, my := tables(db)
				return fence.Ledger{Marks: my, Name: "steps"}.Do(ctx, fence.Step{Resource: "r", Token: 5, ID: "s"},
					func(tx *sql.Tx) ([]byte, error) { return []byte("done"), nil })
			}, calls: []string{"begin", myMark, myRead, "SELECT result FROM `steps` WHERE resource = ? AND id = ? " +
				`FOR UPDATE "r" "s"`, "INSERT INTO `steps` (resource, id, token, result) VALUES (?, ?, ?, ?) " +
				`"r" "s" 5 ` + fmt.Sprintf("%#v", []byte("done")), "commit"}},
		{name: "forget", answers: []answer{{count: 3}}, result: int64(3), do: func(ctx context.Context,
			db *sql.DB) (any, error) {
			pg, _, _ := tables(db)
			return fence.Ledger{Marks: pg, Name: "steps"}.Forget(ctx, "r", 5)
		}, calls: []string{`DELETE FROM "steps" WHERE resource = $1 AND token < $2 "r" 5`, "count"}},
	}
}

func operationsOfRows() (all []operation) {
	pg := fence.Row{Dialect: fence.PostgreSQL, Table: "s.o", Key: "no", Column: "seen"}
	my := fence.Row{Dialect: fence.MySQL, Table: "o"}
	for _, row := range []struct {
		name          string
		changed       int64
		found         []driver.Value // nil if it is not asked
		fails, failMy string
		is, isMy      error
	}{
		{name: "written", changed: 1},
		{name: "several are written", changed: 2,
			fails:  `fence: 2 rows of "s"."o" have been written: "no" does not identify one row`,
			failMy: "fence: 2 rows of `o` have been written: `id` does not identify one row"},
		{name: "stale", found: []driver.Value{int64(9)}, fails: staleRow, is: fence.ErrStale, isMy: fence.ErrStale,
			failMy: `fence: token 5 of "o/42" is older than 9, the highest seen`},
		{name: "equal", found: []driver.Value{int64(5)}, fails: missing, is: fence.ErrMissing}, // MySQL counts no equal row
		{name: "lower", found: []driver.Value{int64(4)}, fails: missing, failMy: missingMy, is: fence.ErrMissing,
			isMy: fence.ErrMissing},
		{name: "negative", found: []driver.Value{int64(-1)}, fails: missing, failMy: missingMy, is: fence.ErrMissing,
			isMy: fence.ErrMissing},
		{name: "null", found: []driver.Value{nil}, fails: missing, failMy: missingMy, is: fence.ErrMissing,
			isMy: fence.ErrMissing},
		{name: "none", found: []driver.Value{}, fails: missing, failMy: missingMy, is: fence.ErrMissing,
			isMy: fence.ErrMissing},
	} {
		answers, calls, callsMy := []answer{{count: row.changed}}, []string{pgUpdate, "count"}, []string{myUpdate, "count"}
		if row.found != nil {
			answers = append(answers, answer{rows: row.found})
			calls, callsMy = append(calls, pgSeen), append(callsMy, mySeen)
		}
		all = append(all,
			operation{name: row.name + ", PostgreSQL", answers: answers, calls: calls, fails: row.fails, is: row.is,
				do: func(ctx context.Context, db *sql.DB) (any, error) {
					return nil, pg.Update(ctx, db, 42, 5, "a = $1", 1)
				}},
			operation{name: row.name + ", MySQL", answers: answers, calls: callsMy, fails: row.failMy, is: row.isMy,
				do: func(ctx context.Context, db *sql.DB) (any, error) { return nil, my.Update(ctx, db, 42, 5, "") }})
	}
	return all
}

// TestWhatADatabaseSees compares all calls of each operation, in order, with its result. Then each
// call fails in turn: nothing follows but the end of the transaction, the error is that of the
// database, and there is no result. The module fence/sqltest runs the statements on databases.
func TestWhatADatabaseSees(t *testing.T) {
	for of, all := range map[string][]operation{"table": operationsOfTables(), "ledger": operationsOfLedgers(),
		"row": operationsOfRows()} {
		for _, o := range all {
			name := of + ": " + o.name
			db := &scripted{answers: o.answers, fails: -1}
			result, err := o.do(t.Context(), db.open(t))
			if fmt.Sprintf("%#v", result) != fmt.Sprintf("%#v", o.result) {
				t.Errorf("%s: the result is %#v, want %#v", name, result, o.result)
			}
			if o.fails == "" && err != nil || o.fails != "" && (err == nil || err.Error() != o.fails) ||
				o.is != nil && !errors.Is(err, o.is) {
				t.Errorf("%s: %v, want %q", name, err, o.fails)
			}
			if !slices.Equal(db.calls, o.calls) {
				t.Errorf("%s: the database sees\n%q, want\n%q", name, db.calls, o.calls)
			}
			for i, call := range o.calls {
				if call == "rollback" { // its error is not returned
					continue
				}
				db := &scripted{answers: o.answers, fails: i}
				result, err := o.do(t.Context(), db.open(t))
				want := slices.Clone(o.calls[:i+1])
				if o.calls[0] == "begin" && i > 0 && call != "commit" {
					want = append(want, "rollback")
				}
				if !errors.Is(err, errDown) || !slices.Equal(db.calls, want) {
					t.Errorf("%s, %q fails: %v, and the database sees\n%q, want\n%q", name, call, err, db.calls, want)
				}
				if text := fmt.Sprintf("%#v", result); text != "<nil>" && text != "[]byte(nil)" && text != "0" {
					t.Errorf("%s, %q fails: the result is %s", name, call, text)
				}
			}
		}
	}
}

// A panic of the function ends the transaction and reaches the caller.
func TestAPanicInATransactionRollsBack(t *testing.T) {
	db := &scripted{answers: []answer{{count: 1}}, fails: -1}
	table, _, _ := tables(db.open(t))
	func() {
		defer func() {
			if recovered := recover(); recovered != "bug" {
				t.Errorf("the caller recovers %v", recovered)
			}
		}()
		_ = table.InTx(t.Context(), "r", 5, func(*sql.Tx) error { panic("bug") })
	}()
	if want := []string{"begin", pgMark, "count", "rollback"}; !slices.Equal(db.calls, want) {
		t.Errorf("the database sees %q, want %q", db.calls, want)
	}
}

// TestNoStatementOfWhatIsRefused passes each wrong argument to each operation that has it. The
// database sees no statement, and there is no panic.
func TestNoStatementOfWhatIsRefused(t *testing.T) {
	type arguments struct {
		resource     string
		token        mortise.Token
		id           string
		table, steps string
		dialect      fence.Dialect
		noDB         bool
	}
	good := arguments{resource: "r", token: 5, dialect: fence.PostgreSQL}
	with := func(change func(a *arguments)) arguments {
		a := good
		change(&a)
		return a
	}
	operations := map[string]func(context.Context, *sql.DB, arguments) error{
		"Create": func(ctx context.Context, db *sql.DB, a arguments) error {
			return fence.Table{DB: db, Dialect: a.dialect, Name: a.table}.Create(ctx)
		},
		"Advance": func(ctx context.Context, db *sql.DB, a arguments) error {
			return fence.Table{DB: db, Dialect: a.dialect, Name: a.table}.Advance(ctx, a.resource, a.token)
		},
		"Ledger.Create": func(ctx context.Context, db *sql.DB, a arguments) error {
			marks := fence.Table{DB: db, Dialect: a.dialect, Name: a.table}
			return fence.Ledger{Marks: marks, Name: a.steps}.Create(ctx)
		},
		"Ledger.Do": func(ctx context.Context, db *sql.DB, a arguments) error {
			marks := fence.Table{DB: db, Dialect: a.dialect, Name: a.table}
			result, err := fence.Ledger{Marks: marks, Name: a.steps}.Do(ctx, fence.Step{Resource: a.resource,
				Token: a.token, ID: a.id}, func(*sql.Tx) ([]byte, error) { return []byte("done"), nil })
			if err != nil && result != nil {
				t.Errorf("%+v: the result is %q", a, result)
			}
			return err
		},
		"Ledger.Forget": func(ctx context.Context, db *sql.DB, a arguments) error {
			marks := fence.Table{DB: db, Dialect: a.dialect, Name: a.table}
			_, err := fence.Ledger{Marks: marks, Name: a.steps}.Forget(ctx, a.resource, a.token)
			return err
		},
		"Row.Update": func(ctx context.Context, db *sql.DB, a arguments) error {
			return fence.Row{Dialect: a.dialect, Table: "o" + a.table}.Update(ctx, db, 1, a.token, "")
		},
		"Row.Outcome": func(ctx context.Context, db *sql.DB, a arguments) error {
			return fence.Row{Dialect: a.dialect, Table: "o" + a.table}.Outcome(ctx, db, driver.RowsAffected(1), 1, a.token)
		},
	}
	for what, row := range map[string]struct {
		arguments
		is  error // nil if the text says it
		say string
		of  []string
	}{
		"resource": {with(func(a *arguments) { a.resource = "" }), fence.ErrBadResource, "",
			[]string{"Advance", "Ledger.Do", "Ledger.Forget"}},
		"token": {with(func(a *arguments) { a.token = 0 }), fence.ErrBadToken, "",
			[]string{"Advance", "Ledger.Do", "Ledger.Forget", "Row.Update"}},
		"ID": {with(func(a *arguments) { a.id = "\n" }), fence.ErrBadResource,
			`the ID of a step: fence: not a resource: "\n" has a control character`, []string{"Ledger.Do"}},
		"table": {with(func(a *arguments) { a.table = "-" }), fence.ErrBadName, "",
			[]string{"Create", "Advance", "Ledger.Create", "Ledger.Do", "Row.Update", "Row.Outcome"}},
		"ledger": {with(func(a *arguments) { a.steps = "-" }), fence.ErrBadName, "",
			[]string{"Ledger.Do", "Ledger.Forget"}},
		"dialect": {with(func(a *arguments) { a.dialect = 0 }), nil,
			"fence: Dialect(0) is not a dialect: set it to PostgreSQL, SQLite or MySQL",
			[]string{"Create", "Advance", "Ledger.Create", "Ledger.Do", "Ledger.Forget", "Row.Update", "Row.Outcome"}},
		"too high a dialect": {with(func(a *arguments) { a.dialect = fence.MySQL + 1 }), nil,
			"fence: Dialect(4) is not a dialect: set it to PostgreSQL, SQLite or MySQL", []string{"Create", "Row.Update"}},
		"database": {with(func(a *arguments) { a.noDB = true }), nil, "fence: Table.DB is not set",
			[]string{"Create", "Advance", "Ledger.Create", "Ledger.Do", "Ledger.Forget"}},
	} {
		for _, name := range row.of {
			seen := &scripted{fails: -1}
			db := seen.open(t)
			if row.noDB {
				db = nil
			}
			err := operations[name](t.Context(), db, row.arguments)
			if err == nil || row.is != nil && !errors.Is(err, row.is) || row.say != "" && err.Error() != row.say {
				t.Errorf("%s, a bad %s: %v", name, what, err)
			}
			begins := name == "Advance" || name == "Ledger.Do" && what == "table" // they find the mistake in the transaction
			if len(seen.calls) > 0 && (!begins || !slices.Equal(seen.calls, []string{"begin", "rollback"})) {
				t.Errorf("%s, a bad %s: the database sees %q", name, what, seen.calls)
			}
		}
	}
	// The tables of a ledger are created one after the other.
	seen := &scripted{fails: -1}
	bad := with(func(a *arguments) { a.steps = "-" })
	if err := operations["Ledger.Create"](t.Context(), seen.open(t), bad); !errors.Is(err, fence.ErrBadName) ||
		len(seen.calls) != 1 {
		t.Errorf("Ledger.Create, a bad ledger: %v, and the database sees %q", err, seen.calls)
	}
}
