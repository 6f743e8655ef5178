package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
)

// ErrNoLeader is returned by QueryStatus if no leader has answered.
var ErrNoLeader = errors.New("cluster: no leader has answered")

// QueryStatus asks the leader for the state of the voters and whether this instance's replica may
// stop. It repeats the question until a leader has answered. If ctx ends first, the error wraps
// ErrNoLeader and the cause of ctx.
func (c *Cluster) QueryStatus(ctx context.Context) (VoterStatus, error) {
	return c.queryStatus(ctx, Inquiry{Own: true})
}

// QueryStatusFor is like QueryStatus, but asks about the replica with the ID raft, which may have
// been removed from the configuration.
func (c *Cluster) QueryStatusFor(ctx context.Context, raft uint64) (VoterStatus, error) {
	return c.queryStatus(ctx, Inquiry{Raft: raft})
}

func (c *Cluster) queryStatus(ctx context.Context, q Inquiry) (VoterStatus, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	told := make(chan VoterStatus, 1)
	q.Caller = told
	c.in.post(func() { c.own.core.Inquire(&q) })
	select {
	case status := <-told:
		return status, nil
	case <-ctx.Done():
		c.in.post(func() { c.own.core.GiveUp(&q) })
		return VoterStatus{}, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
	}
}

// ReplyStatus answers a status query of another instance. It reports false if this instance must
// not answer.
func (c *Cluster) ReplyStatus(q StatusQuery) (StatusReply, bool) {
	a := asked(c, c.in.post, func() *StatusReply {
		if c.own.core.Founding.Refusal() != "" {
			return nil
		}
		a := c.own.core.ReplyStatus(c.now(), q, c.id())
		if a.VoterStatus == nil && len(a.Addr) > gossip.MaxAddrBytes {
			a = StatusReply{}
		}
		return &a
	})
	if a == nil {
		return StatusReply{}, false
	}
	return *a, true
}

// Heir is the voter to which an operator may move the leadership, or the reason why it may not.
type Heir = lead.Heir

// Heir returns the voter with the given name if this instance leads, and otherwise reports false.
func (c *Cluster) Heir(name string) (Heir, bool) {
	type answer struct {
		heir  Heir
		leads bool
	}
	a := asked(c, c.in.post, func() (a answer) {
		a.heir, a.leads = c.own.core.Heir(c.now(), name, c.id())
		return a
	})
	return a.heir, a.leads
}

// Present reports whether this instance runs and is not barred.
func (c *Cluster) Present() bool {
	return asked(c, c.in.post, func() bool { return c.own.core.Founding.Refusal() == "" })
}
