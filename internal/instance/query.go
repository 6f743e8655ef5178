package instance

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file sends queries about locks to the leader, and answers them if this instance leads.

// QueryOnce sends a query to the leader that is known to this instance.
func QueryOnce[Q, A any](ctx context.Context, n *Instance, method queries.Method[query.QueryClient, Q, A], q *Q) (*A,
	error) {
	conn, err := n.leader()
	if err != nil {
		return nil, err
	}
	a, err := queries.Ask(ctx, query.NewQueryClient(conn), method, q)
	if errors.Is(err, replica.ErrBusy) {
		n.busy.warn(n, "the leader refuses a query for now, and it is repeated with pauses", "why", err)
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
	return r.answer(ctx, q)
}

func (r *ownReplica) answer(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	one, err := r.core.Questions.Ask(q)
	if err != nil {
		return nil, err
	}
	defer r.core.Questions.Drop(one)
	role := r.Role() // read after Ask, so that a later change of the role ends the query
	if !role.Leading {
		return nil, replica.ErrNoLead
	}
	<-r.started
	if command, changes := q.Command(one.Number); !changes {
		r.log.Confirm(role.Term, replica.QuestionRound|one.Number)
	} else if !r.log.Propose(role.Term, command.Append(r.stamp(&q))) {
		return nil, replica.ErrBusy
	}
	var idle <-chan time.Time
	if q.Op == replica.OpWatch {
		timer := time.NewTimer(replica.WatchTime)
		defer timer.Stop()
		idle = timer.C
	}
	select {
	case <-one.Done():
	case <-idle:
		return r.core.Questions.Idle(one)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
		return nil, replica.ErrNoLead
	}
	a, err := one.Answer()
	switch {
	case err != nil:
		return nil, err
	case q.Op == replica.OpMembers || q.Op == replica.OpNames:
		a.AsMembers(q.From == lockfsm.SessionCursor{}, r.Configuration(), &r.core.SessionIndex)
	default:
		a.Left = r.left(ctx, a.About())
	}
	return a, nil
}

// stamp returns what precedes the command of q in its log entry. A Reserve needs a recent stamp,
// which an idle group does not have.
func (r *ownReplica) stamp(q *replica.Question) []byte {
	if q.Op != replica.OpReserve {
		return nil
	}
	return lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: r.node.env.wall().UnixMilli()}.Append(nil)
}

func (r *ownReplica) left(ctx context.Context, sessions []lockfsm.SessionID) map[lockfsm.SessionID]time.Duration {
	if len(sessions) == 0 {
		return nil
	}
	left := map[lockfsm.SessionID]time.Duration{}
	for i, d := range r.keeper.Left(ctx, sessions) {
		left[sessions[i]] = d
	}
	return left
}
