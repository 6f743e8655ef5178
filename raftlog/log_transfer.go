package raftlog

import (
	"context"
	"slices"
)

// Transfer passes the leadership to the voter whose ID is to. If to is zero, it chooses the voter
// with the longest log among those that have sent a message within an election timeout. It returns
// nil when the voter whose ID is to leads, or, if to is zero, when this replica no longer leads. It
// returns ErrTransfer if this replica still leads after an election timeout, or if another voter
// leads, and ErrNotLeading if this replica did not lead. A replica that has given up the lead waits
// until it knows the next leader. If ctx ends first, the attempt continues and may still succeed.
// No batch is proposed during a transfer.
func (l *Log) Transfer(ctx context.Context, to uint64) error {
	t := transfer{to: to, done: make(chan error, 1)}
	if !l.put(func(in *inbox) { in.transfers = append(in.transfers, t) }) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ended
	}
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Log) begin(t transfer) {
	if err := l.core.Transfer(t.to); err != nil {
		t.done <- err
		return
	}
	l.transfers = append(l.transfers, t)
}

// settle reports the outcome of the transfers that have ended.
func (l *Log) settle() {
	if len(l.transfers) == 0 || l.core.Role().Leading && l.core.Transferring() {
		return
	}
	role := l.core.Role()
	l.transfers = slices.DeleteFunc(l.transfers, func(t transfer) bool {
		var err error
		switch {
		case role.Leading, t.to != 0 && role.Leader != 0 && role.Leader != t.to:
			err = ErrTransfer
		case t.to != 0 && role.Leader == 0:
			return false // the voter has not won its election yet
		}
		t.done <- err
		return true
	})
}
