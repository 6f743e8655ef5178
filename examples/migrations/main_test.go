package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) {
	trio.Main(m, func(ctx context.Context, node *mortise.Node) error {
		return serve(ctx, node, os.Getenv("FILE"))
	})
}

// TestTheMigratorIsKilled kills the process that migrates, in the middle of its second step.
// Another one repeats that step and goes on. Then both serve, and each step was committed once.
func TestTheMigratorIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	f := trio.Start(t, "FILE="+file)
	first := f.Await(1, "migrates to 2")[0]
	f.Kill(first)
	f.Await(2, "serves")
	for n, want := range map[int]int{1: 1, 2: 2, 3: 1} {
		if by := f.Await(want, fmt.Sprint("migrates to ", n)); len(by) != want || n == 3 && by[0] == first {
			t.Errorf("step %d was begun by %v, and %d was killed in step 2", n, by, first)
		}
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var rows, version int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders WHERE state IS NULL").Scan(&rows); err != nil {
		t.Error(err)
	}
	if err := db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Error(err)
	}
	if rows != 1 || version != len(steps) {
		t.Errorf("%d rows and version %d", rows, version)
	}
}
