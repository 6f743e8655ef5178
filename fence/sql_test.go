package fence_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/fence"
)

// The module fence/sqltest runs the statements on databases.
func TestStatements(t *testing.T) {
	row := fence.Row{Dialect: fence.PostgreSQL, Table: "shop.order"}
	query, args, err := row.Statement(42, 7, "state = $1, total = $2", "paid", 10)
	want := `UPDATE "shop"."order" SET state = $1, total = $2, "fence_token" = $3 ` +
		`WHERE "id" = $4 AND ("fence_token" IS NULL OR "fence_token" <= $5)`
	if err != nil || query != want || fmt.Sprint(args) != "[paid 10 7 42 7]" {
		t.Errorf("%s %v %v\nwant %s", query, args, err, want)
	}
	row = fence.Row{Dialect: fence.MySQL, Table: "order", Key: "number", Column: "seen"}
	query, args, err = row.Statement("A-1", 7, "")
	want = "UPDATE `order` SET `seen` = ? WHERE `number` = ? AND (`seen` IS NULL OR `seen` <= ?)"
	if err != nil || query != want || fmt.Sprint(args) != "[7 A-1 7]" {
		t.Errorf("%s %v %v\nwant %s", query, args, err, want)
	}
	text, err := fence.Table{Dialect: fence.MySQL}.Schema()
	if want := "CREATE TABLE IF NOT EXISTS `mortise_fence` " +
		"(resource varbinary(512) NOT NULL PRIMARY KEY, token bigint NOT NULL)"; err != nil || text != want {
		t.Errorf("%s %v", text, err)
	}
}

// Statement must not write into spare capacity of the caller's args.
func TestStatementLeavesArgsAlone(t *testing.T) {
	room := []any{"paid", "mine"}
	if _, _, err := (fence.Row{Dialect: fence.SQLite, Table: "o"}).Statement(1, 7, "state = ?",
		room[:1]...); err != nil || room[1] != "mine" {
		t.Errorf("%v, %v", room, err)
	}
}

func TestNamesAreChecked(t *testing.T) {
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a b", `a"b`, "a`b", "a;DROP TABLE b", "a--",
		"ä", "a\x00", "a\n", strings.Repeat("a", 64)} {
		if _, err := (fence.Table{Dialect: fence.SQLite, Name: name}).Schema(); name != "" &&
			!errors.Is(err, fence.ErrBadName) {
			t.Errorf("table %q: %v", name, err)
		}
		if _, err := (fence.Ledger{Marks: fence.Table{Dialect: fence.SQLite}, Name: name}).Schema(); name != "" &&
			!errors.Is(err, fence.ErrBadName) {
			t.Errorf("ledger %q: %v", name, err)
		}
		for _, row := range []fence.Row{{Table: name}, {Table: "t", Key: name}, {Table: "t", Column: name}} {
			row.Dialect = fence.PostgreSQL
			if _, _, err := row.Statement(1, 1, ""); !errors.Is(err, fence.ErrBadName) &&
				(name != "" || row.Table == "") {
				t.Errorf("%+v: %v", row, err)
			}
		}
		if _, _, err := (fence.Row{Dialect: fence.PostgreSQL, Column: name}).Condition(1, 1); name != "" &&
			!errors.Is(err, fence.ErrBadName) {
			t.Errorf("column %q: %v", name, err)
		}
	}
	if _, _, err := (fence.Row{Dialect: fence.PostgreSQL, Table: "t", Key: "a.b"}).Statement(1, 1,
		""); !errors.Is(err, fence.ErrBadName) {
		t.Errorf("a column with a dot: %v", err)
	}
}

func TestForgottenFieldsAreErrors(t *testing.T) {
	for name, err := range map[string]error{
		"no dialect of a table":  func() error { _, err := fence.Table{}.Schema(); return err }(),
		"no dialect of a row":    func() error { _, _, err := fence.Row{Table: "t"}.Statement(1, 1, ""); return err }(),
		"no dialect, condition":  func() error { _, _, err := fence.Row{Table: "t"}.Condition(1, 1); return err }(),
		"no dialect of a ledger": func() error { _, err := fence.Ledger{}.Schema(); return err }(),
		"no such dialect":        func() error { _, err := fence.Table{Dialect: 9}.Schema(); return err }(),
		"no database":            fence.Table{Dialect: fence.SQLite}.Advance(t.Context(), "a", 1),
		"no database to create":  fence.Table{Dialect: fence.SQLite}.Create(t.Context()),
		"no transaction, dialect": func() error {
			return fence.Tx(t.Context(), nil, 0, "a", 1)
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), "ialect") && !strings.Contains(err.Error(), "DB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := (fence.Row{Dialect: fence.SQLite, Table: "t"}).Condition(1, 1<<63); !errors.Is(err,
		fence.ErrBadToken) {
		t.Error(err)
	}
}

func TestDialectsHaveNames(t *testing.T) {
	for d, want := range map[fence.Dialect]string{fence.PostgreSQL: "PostgreSQL", fence.SQLite: "SQLite",
		fence.MySQL: "MySQL", 0: "Dialect(0)", 9: "Dialect(9)"} {
		if got := d.String(); got != want {
			t.Errorf("%d is called %s, want %s", int(d), got, want)
		}
	}
}
