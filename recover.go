package mortise

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Recover gives up a group whose majority is lost for good, by its ID as Status.Group shows it: the explicit way out
// where nothing else can know that what is missing will not come back. Call it on every instance of that group that is left. Each of them
// ends its locks, forgets the group, and as soon as all that Founders or Replicas ask for are in reach (start new instances in the places of
// the lost ones) they found the next one: its tokens are above all that any of them has seen, and it grants nothing until its grace is
// over. Members of the old group that are met later follow by themselves.
//
// If the majority is not lost but only out of reach, two groups then grant the same locks: make sure that the missing instances are gone.
// It fails, and changes nothing, if the group has a leader or is another one than this instance's; ctx bounds
// the wait for the disk.
func (n *Node) Recover(ctx context.Context, group string) error {
	if err := n.Err(); err != nil {
		return err
	}
	if err := ownError(queries.Allowed(n.self.Capability, &query.RecoverRequest{})); err != nil {
		return err
	}
	id, err := nodeid.ParseHex(group)
	if err != nil {
		return fmt.Errorf("mortise: recover: %q is no group ID; Status.Group shows it", group)
	}
	if r := n.replica.Load(); r != nil {
		n.cluster().Floor(r.seen())
	}
	if err := n.cluster().Recover(ctx, id); err != nil {
		return fmt.Errorf("mortise: recover: %w", err)
	}
	return nil
}

// seen returns the time, in Unix milliseconds, up to which tokens have been used as far as this replica knows. A token is the founding time
// shifted by 21 bits plus the number of changes since.
func (r *ownReplica) seen() int64 { return int64(r.revision.Load() >> 21) }
