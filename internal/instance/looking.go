package instance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

// This file is how questions about the locks get to the leader, and how it is asked. What it answers,
// package internal/replica decides.

// lookMark begins a question for this file; no question for the cluster room does.
const lookMark = "look"

// LookOnce asks whoever is believed to lead.
func (n *Instance) LookOnce(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	if r := n.replica.Load(); r != nil && r.role.Load().Leading {
		a, err := r.look(ctx, q)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	leader := n.client.Status().Leader
	if leader.Addr == "" {
		return nil, replica.ErrNoLead
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	answer, _, err := n.port.Ask(ctx, leader.Addr, leader.Peer, append([]byte(lookMark), body...))
	if err != nil {
		return nil, err
	}
	var s replica.Answer
	if err := json.Unmarshal(answer, &s); err != nil {
		return nil, err
	}
	if s.Denied != nil {
		return nil, s.Denied
	}
	if s.Error != "" {
		return nil, errors.New(s.Error)
	}
	return &s, nil
}

// answerLook answers a question of another instance, or of a member: what a member asks is under its own rights, whatever it says.
func (n *Instance) answerLook(ctx context.Context, from transport.Identity, body []byte) ([]byte, error) {
	rights, ok := from.Peer.Allowed()
	if !ok || from.Peer.Tier == capability.Guest {
		return nil, errNoInstance
	}
	var q replica.Question
	a, err := &replica.Answer{}, json.Unmarshal(bytes.TrimPrefix(body, []byte(lookMark)), &q)
	if r := n.replica.Load(); err == nil && r == nil {
		err = replica.ErrNoLead
	} else if err == nil {
		q.Under(rights, from.Instance)
		ctx, cancel := context.WithTimeout(ctx, q.Time())
		defer cancel()
		a, err = r.look(ctx, q)
	}
	if err != nil {
		a = &replica.Answer{Error: err.Error()}
		errors.As(err, &a.Denied)
	}
	return json.Marshal(a)
}

// look answers a question if this replica leads.
func (r *ownReplica) look(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	// An honest instance has refused such a text before it asks.
	if q.Op == replica.OpEvict && (!plain.Is(q.By) || !plain.Is(q.Reason)) {
		return nil, fmt.Errorf("%w: By %q or the reason %q %s", ErrBadRequest, q.By, q.Reason, plain.NotText)
	}
	rights, err := q.Granted()
	if err != nil {
		return nil, err
	}
	one, err := r.questions.Ask(q)
	if err != nil {
		return nil, err
	}
	defer r.questions.Drop(one)
	role := r.role.Load() // behind Ask: a change of it that comes now ends the question
	if !role.Leading {
		return nil, replica.ErrNoLead
	}
	<-r.started
	if command, changes := q.Command(one.Number); !changes {
		r.log.Confirm(role.Term, replica.QuestionRound|one.Number)
	} else if !r.log.Propose(role.Term, command.Append(nil)) {
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
		return r.questions.Idle(one)
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
		a.AsMembers(q.From == lockfsm.SessionCursor{}, r.config.Load(), &r.registry)
	default:
		a.Left = r.left(ctx, a.About())
		a.Confine(rights)
	}
	return a, nil
}

// left asks the keeper how much time sessions have.
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
