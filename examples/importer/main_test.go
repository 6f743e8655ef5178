package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) {
	trio.Main(m, func(ctx context.Context, node *mortise.Node) error {
		if err := importAll(ctx, node); err != nil {
			return err
		}
		fmt.Println("done")
		select {} // the others still need the votes of this process
	})
}

// TestTheImporterIsKilled kills the process that imports. Another one goes on where it has stopped,
// and repeats one row at most.
func TestTheImporterIsKilled(t *testing.T) {
	f := trio.Start(t)
	first := f.Await(1, "row 5")[0]
	f.Kill(first)
	f.Await(2, "done") // each of the others gets the lock once
	for row := range rows {
		by := f.Await(1, fmt.Sprint("row ", row))
		if row < 5 && len(by) != 1 || row == rows-1 && by[0] == first {
			t.Errorf("row %d was imported by %v, and %d was killed after row 5", row, by, first)
		}
	}
}
