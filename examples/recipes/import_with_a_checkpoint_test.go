package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/mortise-lock/mortise"
)

const importKey, importedKey = "import/customers", "import/customers/next"

// importRows imports rows of a file, and records after each row which one is next. The record
// changes only while lock is held, so an importer that was paused does not set it back.
func importRows(ctx context.Context, node *mortise.Node, lock *mortise.Lock, rows int, each func(row int)) error {
	text, revision, err := node.Get(ctx, importedKey)
	if err != nil {
		return err
	}
	next, _ := strconv.Atoi(string(text)) // without a record, the import begins with row 0
	for ; next < rows; next++ {
		each(next)
		revision, err = lock.Put(ctx, importedKey, strconv.AppendInt(nil, int64(next+1), 10), revision)
		if err != nil {
			return err
		}
	}
	return nil
}

// An import continues on another instance where the first one has stopped. The first one was only
// paused: when it goes on, its checkpoint is refused.
func Example_importWithACheckpoint() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "import-0", "import-1", "import-2")
	defer stop()

	first, err := nodes[0].Lock(ctx, importKey)
	check(err)
	var second *mortise.Lock
	err = importRows(ctx, nodes[0], first, 6, func(row int) {
		fmt.Println("import-0 imports row", row)
		if row < 2 {
			return
		}
		// The process is paused here for a long time. Its lock ends, and another instance goes on.
		_, err := nodes[1].ForceUnlock(ctx, importKey, first.Token(), "import-0 does not respond")
		check(err)
		second, err = nodes[1].Lock(ctx, importKey)
		check(err)
		check(importRows(ctx, nodes[1], second, 5, func(row int) { fmt.Println("import-1 imports row", row) }))
	})
	fmt.Println("import-0 has lost the lock:", errors.Is(err, mortise.ErrLost) || errors.Is(err, mortise.ErrConflict))

	text, _, err := nodes[2].Get(ctx, importedKey)
	check(err)
	fmt.Println("the next row is", string(text))
	check(second.Unlock(ctx))
	// Output:
	// import-0 imports row 0
	// import-0 imports row 1
	// import-0 imports row 2
	// import-1 imports row 2
	// import-1 imports row 3
	// import-1 imports row 4
	// import-0 has lost the lock: true
	// the next row is 5
}
