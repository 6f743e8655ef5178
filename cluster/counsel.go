package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster/gossip"
)

// ErrNoLeader is returned by Consult if no leader has answered.
var ErrNoLeader = errors.New("cluster: no leader has answered")

// Consult asks the leader, or this instance itself if it leads, for the state of the voters and
// whether the replica here may stop. It asks, one question at a time, until a leader has answered.
// If ctx ends first, the error wraps ErrNoLeader and the cause of ctx.
func (c *Cluster) Consult(ctx context.Context) (Counsel, error) {
	return c.consult(ctx, Inquiry{Own: true})
}

// ConsultFor is Consult about the replica with that raft ID, which may be in no configuration any
// more.
func (c *Cluster) ConsultFor(ctx context.Context, raft uint64) (Counsel, error) {
	return c.consult(ctx, Inquiry{Raft: raft})
}

// consult asks until a leader has answered or ctx has ended.
func (c *Cluster) consult(ctx context.Context, q Inquiry) (Counsel, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	told := make(chan Counsel, 1)
	q.Caller = told
	c.in.post(func() { c.own.core.Inquire(&q) })
	select {
	case counsel := <-told:
		return counsel, nil
	case <-ctx.Done():
		c.in.post(func() { c.own.core.GiveUp(&q) })
		return Counsel{}, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
	}
}

// Advise answers a consultation of another instance. It reports false if this instance must stay
// silent.
func (c *Cluster) Advise(q Consultation) (Advice, bool) {
	a := asked(c, func() *Advice {
		if c.own.core.Founding.Refusal() != "" {
			return nil
		}
		a := c.own.core.Advise(c.now(), q, c.id())
		if a.Counsel == nil && len(a.Addr) > gossip.MaxAddrBytes {
			a = Advice{}
		}
		return &a
	})
	if a == nil {
		return Advice{}, false
	}
	return *a, true
}

// Present reports whether this instance takes part: it runs and is not barred.
func (c *Cluster) Present() bool {
	return asked(c, func() bool { return c.own.core.Founding.Refusal() == "" })
}
