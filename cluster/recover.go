package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// ErrClosed is returned by calls that end because of Close.
var ErrClosed = errors.New("cluster: closed")

// Recover gives up a group whose majority is permanently lost, and founds a new group with all
// instances in reach. It returns when this instance has stored the decision. If it returns
// ErrUnsaved, ErrClosed or the cause of ctx, the group may or may not have been given up. After
// any other error, nothing has changed.
func (c *Cluster) Recover(ctx context.Context, group uint64) error {
	done := make(chan error, 1)
	c.in.post(func() {
		err := c.own.core.Founding.Recover(c.now(), group)
		c.in.post(func() { // runs after the turn that stores and carries out the decision
			if err == nil && c.own.notes.failed {
				err = ErrUnsaved
			}
			done <- err
		})
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// Adopt records that the group has changed its settings.
func (c *Cluster) Adopt(group uint64, s founding.Settings) {
	c.in.postOfLife(func() { c.own.core.Founding.Adopt(c.now(), group, s) })
}

// Floor records that tokens up to unixMS, in Unix milliseconds, were received. A group that is
// founded later begins with higher tokens. An instance with a directory stores every higher
// value, so call Floor rarely.
func (c *Cluster) Floor(unixMS int64) {
	c.in.post(func() { c.own.core.Founding.Floor(unixMS) })
}
