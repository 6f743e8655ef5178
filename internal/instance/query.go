package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file sends queries about locks to the leader, and answers them if this instance leads.

// QueryOnce sends a query to the leader that is known to this instance. It fails with ErrBadRequest
// if the query is too large.
func QueryOnce[Q, A any](ctx context.Context, n *Instance, method queries.Method[query.QueryClient, Q, A], q *Q) (*A,
	error) {
	conn, err := n.leader()
	if err != nil {
		return nil, err
	}
	a, err := queries.Ask(ctx, query.NewQueryClient(conn), method, q)
	switch {
	case errors.Is(err, transport.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w", queries.ErrBadRequest, err)
	case errors.Is(err, replica.ErrBusy):
		n.warnings.busy.warn(n.env.clock.Now(), n.logger,
			"the leader refuses a query for now, and it is repeated with pauses", "why", err)
	}
	return a, err
}

func (n *Instance) leader() (transport.Conn, error) {
	if r := n.replica.Load(); r != nil && r.Role().Leading {
		self := transport.Identity{Instance: n.instance(), Peer: capability.Peer{Tier: capability.Root}}
		return n.services.As(self), nil
	}
	leader := n.client.Status().Leader
	if leader.Addr == "" {
		return nil, replica.ErrNoLead
	}
	return n.port.To(leader.Addr, leader.ID), nil
}

func (n *Instance) queryHere(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	r := n.replica.Load()
	if r == nil {
		return nil, replica.ErrNoLead
	}
	if q.Op == replica.OpLead {
		return r.transferLead(ctx, q)
	}
	return r.answer(ctx, q)
}
