package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// A stuck job hangs in a call that never returns, but its process runs, so its lease is renewed
// forever. An operator finds the holder and ends the hold, and the next run gets the lock. Later
// writes of the stuck run are refused. (Request.MaxHold would end the hold automatically.)
func Example_endAStuckJob() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "jobs-0", "jobs-1", "jobs-2")
	defer stop()
	var archive fence.Mark // a fence of the resource that the job writes

	stuck, err := nodes[0].Acquire(ctx, mortise.Request{Key: "jobs/import", Value: "supplier 9, file 3"})
	check(err)
	job := stuck.Context(ctx)

	// The operator may use any other instance.
	info, err := nodes[1].Peek(ctx, "jobs/import")
	check(err)
	holder := info.Queue[0] // it has held the lock since holder.Since
	fmt.Println(info.Key, "is held on", holder.Holder, "with", holder.Value)
	ended, err := nodes[1].ForceUnlock(ctx, "jobs/import", holder.Token, "hangs, TICKET-5")
	check(err)
	fmt.Println("ended:", ended)

	// The next run of the job starts.
	err = nodes[2].Do(ctx, "jobs/import", func(ctx context.Context, token mortise.Token) error {
		return archive.Advance(ctx, "archive", token)
	})
	fmt.Println("next run:", err)

	// The context of the stuck run ends. Until then, the token protects the archive.
	<-job.Done()
	var forced *mortise.ForcedError
	if errors.As(context.Cause(job), &forced) {
		fmt.Printf("stuck run: ended by %s: %s\n", forced.By, forced.Reason)
	}
	fmt.Println("its write is refused:", errors.Is(archive.Advance(ctx, "archive", stuck.Token()), fence.ErrStale))
	fmt.Println("its lock is lost:", errors.Is(stuck.Unlock(ctx), mortise.ErrLost))

	// Later, the audit log contains the holds that were ended by force.
	ends, err := nodes[2].Audit(ctx)
	check(err)
	for _, e := range ends { // at e.At
		fmt.Println("audit:", e.Key, "of", e.Holder, e.Kind, e.Cause, "by", e.By+":", e.Reason)
	}
	// Output:
	// jobs/import is held on jobs-0 with supplier 9, file 3
	// ended: true
	// next run: <nil>
	// stuck run: ended by jobs-1: hangs, TICKET-5
	// its write is refused: true
	// its lock is lost: true
	// audit: jobs/import of jobs-0 freed forced by jobs-1: hangs, TICKET-5
}
