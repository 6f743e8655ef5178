package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// ErrClosed is what calls return that Close has overtaken.
var ErrClosed = errors.New("cluster: closed")

// Recover gives up the group, whose majority is lost for good, for a new one that is founded with
// everybody in reach. It returns when that is decided and stored here; an error says why it may not
// be done, and then nothing has changed.
func (c *Cluster) Recover(ctx context.Context, group uint64) error {
	done := make(chan error, 1)
	c.in.post(func() {
		err := c.own.core.Founding.Recover(c.now(), group)
		c.in.post(func() { // behind the turn that stores it and carries it out
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

// Adopt takes that the group has changed its settings.
func (c *Cluster) Adopt(group uint64, s founding.Settings) {
	c.in.postOfLife(func() { c.own.core.Founding.Adopt(c.now(), group, s) })
}

// Floor takes that tokens up to this moment, in Unix milliseconds, were seen here: a group that is
// founded later starts above it. With a directory each rise is stored, so it is worth telling only
// now and then.
func (c *Cluster) Floor(unixMS int64) {
	c.in.post(func() { c.own.core.Founding.Floor(unixMS) })
}
