package raftlog

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Transfer begins to transfer the leadership to another voter, see Log.Transfer. The transfer has
// succeeded when Role reports that this replica no longer leads. It has failed if Transferring
// reports false while this replica still leads.
func (c *Core) Transfer(to uint64) error {
	if !c.role.Leading {
		return ErrNotLeading
	}
	if to == 0 {
		to = c.successor()
	}
	if to == 0 {
		return fmt.Errorf("%w: no other voter has sent anything in the last election timeout", ErrTransfer)
	}
	c.node.TransferLeader(to)
	c.unseen = true
	c.observe()
	if c.transferee != to {
		return fmt.Errorf("%w: %x is this replica or has no vote", ErrTransfer, to)
	}
	return nil
}

// Transferring reports whether a Transfer is under way.
func (c *Core) Transferring() bool { return c.transferee != 0 }

// successor returns the active voter with the longest log. If several logs are equally long, it
// returns the voter with the lowest ID. Zero means that no other voter is active. successor does
// not use raft's flag RecentActive, because raft resets that flag once in each election timeout.
func (c *Core) successor() uint64 {
	var best, match uint64
	c.node.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		if _, active := c.silent(id); !active || id == c.id || kind == raft.ProgressTypeLearner {
			return
		}
		if best == 0 || pr.Match > match || pr.Match == match && id < best {
			best, match = id, pr.Match
		}
	})
	return best
}
