package mortise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/desk"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file answers those who are no instances, as cmd/mortise: by what this node's own methods would say, wherever the leader is. It decides
// nothing.

// deskTime bounds an answer that needs a leader; who asks may ask for less.
const deskTime = 3 * time.Second

// nameMost is how long the name of somebody who ends a lock may be, as an instance's.
const nameMost = 128

// answerDesk answers one question of a program, under the rights that its connection has proved.
func (n *Node) answerDesk(ctx context.Context, id nodeid.ID, rights *capability.Capability, body []byte) ([]byte, error) {
	from := asker{rights: rights, id: id}
	var q desk.Question
	err := json.Unmarshal(bytes.TrimPrefix(body, []byte(desk.Mark)), &q)
	if err == nil && !n.engine.Started() {
		err = instance.ErrStarting
	}
	var a desk.Answer
	if err == nil {
		within := deskTime
		if q.Op == desk.Watch {
			within += replica.WatchTime
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		err = n.answerTo(ctx, from, q, &a)
	}
	if err != nil {
		a = desk.Answer{Error: err.Error(), Kind: desk.Wrong}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || err == instance.ErrStarting {
			a.Kind = desk.NotReady
		}
		if errors.Is(err, ErrConflict) {
			a.Kind = desk.Conflict
		}
		if denied := (*NotAllowedError)(nil); errors.As(err, &denied) {
			a.Kind, a.Verb, a.Key, a.For = desk.Denied, denied.Verb, denied.Key, denied.For
		}
	}
	return json.Marshal(a)
}

// answerTo fills the answer to a question.
func (n *Node) answerTo(ctx context.Context, from asker, q desk.Question, a *desk.Answer) (err error) {
	switch q.Op {
	case desk.Here:
		return n.here(from, a)
	case desk.Health:
		if err := from.readsAll(); err != nil {
			return err
		}
		health, err := n.Health(ctx)
		if err != nil {
			return err
		}
		a.Health, err = json.Marshal(health)
		return err
	case desk.List:
		seen, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpList, Key: q.Key, Next: q.Next})
		if err != nil {
			return err
		}
		a.Next, a.More = seen.Next, seen.More
		return seen.tell(a)
	case desk.Peek:
		seen, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpPeek, Key: q.Key})
		if err != nil {
			return err
		}
		return seen.tell(a)
	case desk.Members:
		page, err := n.membersPage(ctx, from, q.From)
		if err != nil {
			return err
		}
		a.From, a.More, a.Total = page.From, page.More, page.Total
		a.Members, err = json.Marshal(page.members())
		return err
	case desk.Sessions:
		page, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpSessions, From: q.From})
		if err != nil {
			return err
		}
		a.From, a.More = page.From, page.More
		a.Sessions, err = json.Marshal(page.sessions())
		return err
	case desk.Watch:
		return n.answerWatch(ctx, from, q, a)
	case desk.Audit:
		all, err := n.auditFor(ctx, from)
		if err != nil {
			return err
		}
		a.Events, err = json.Marshal(all)
		return err
	case desk.Put:
		put := replica.Question{Op: replica.OpPut, Key: q.Key, Value: q.Data, After: q.Revision, Nonce: q.Nonce}
		a.Revision, err = n.putFor(ctx, from, put)
		return err
	case desk.Evict:
		a.Ended, err = n.evictFor(ctx, from, q)
		return err
	case desk.Recover:
		if err := from.isRoot(); err != nil {
			return err
		}
		return n.Recover(ctx, q.Group)
	}
	return fmt.Errorf("mortise: %s does not know the question %q: its build is another one", n.config.Name, q.Op)
}

// here is the picture of this instance. It asks nobody.
func (n *Node) here(from asker, a *desk.Answer) (err error) {
	s := n.Status()
	if denied := (*NotAllowedError)(nil); errors.As(from.readsAll(), &denied) {
		a.Verb, a.Key, a.For = denied.Verb, denied.Key, denied.For
		a.Status, err = json.Marshal(s.wayIn())
		return err
	}
	if s.Err != nil {
		a.Failed = s.Err.Error()
	}
	s.Err, s.Health = nil, nil
	a.Durable, a.Replicas, a.Founders = n.config.Dir != "", n.config.Replicas, n.config.Founders
	a.SessionTTL, a.WallUnixMS = int64(n.config.SessionTTL), n.engine.Wall().UnixMilli()
	a.Leaderless = int64(n.engine.Leaderless())
	a.Status, err = json.Marshal(s)
	return err
}

// watchMost is how much a watch may begin with: it is told in one answer.
const watchMost = 20_000

// answerWatch tells what there is now, or what has happened since.
func (n *Node) answerWatch(ctx context.Context, from asker, q desk.Question, a *desk.Answer) (err error) {
	var events []Event
	if q.After != 0 {
		s, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpWatch, Key: q.Key, After: q.After})
		if err != nil {
			return err
		}
		for i := range s.Events {
			events = append(events, eventOf(&s.Events[i]))
		}
		a.Position, a.Missed = s.Position, s.Missed
		a.Events, err = json.Marshal(events)
		return err
	}
	for e, err := range n.watchFor(ctx, from, q.Key, 0) {
		switch {
		case err != nil:
			return err
		case len(events) == watchMost:
			return fmt.Errorf("%w: there are more than %d holds to begin with: watch a longer prefix", ErrBadRequest, watchMost)
		}
		if events = append(events, e); e.What == EventReset {
			events = append(events[:0], e) // it has begun anew
		}
		if a.Position = e.Position; e.What == EventCurrent {
			break
		}
	}
	a.Events, err = json.Marshal(events)
	return err
}

// evictFor ends a hold for somebody who is no instance: he says who he is, and is believed as every instance is.
func (n *Node) evictFor(ctx context.Context, from asker, q desk.Question) (ended bool, err error) {
	switch {
	case len(q.By) == 0 || len(q.By) > nameMost || !plain.Is(q.By):
		return false, fmt.Errorf("%w: By %q has not 1 to %d bytes, or %s", ErrBadRequest, q.By, nameMost, plain.NotText)
	case !plain.Is(q.Reason):
		return false, fmt.Errorf("%w: the reason %q %s", ErrBadRequest, q.Reason, plain.NotText)
	case len(q.Reason) > lockfsm.MaxValueBytes:
		return false, fmt.Errorf("%w: the reason has %d bytes, at most %d", ErrBadRequest, len(q.Reason), lockfsm.MaxValueBytes)
	case q.Token == 0:
		return false, fmt.Errorf("%w: token 0 is nobody's", ErrBadRequest)
	}
	seen, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpEvict, Key: q.Key, Token: q.Token, By: q.By, Reason: q.Reason})
	return seen.Held, err
}

// tell puts what was seen into an answer.
func (s *sight) tell(a *desk.Answer) (err error) {
	keys := make([]KeyInfo, 0, len(s.Locks))
	for _, l := range s.Locks {
		keys = append(keys, s.info(l))
	}
	a.Keys, err = json.Marshal(keys)
	return err
}
