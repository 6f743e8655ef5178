package mortise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// admin answers admin clients, such as cmd/mortise, by calling the methods of this node.
type admin struct {
	query.UnimplementedAdminServer
	n   *Node
	way *way
}

// way keeps the answer to Here for programs that may not read the whole status. Every program may
// ask, at any rate, and a status costs far more than the question.
type way struct {
	mu   sync.Mutex // guards the fields below; never held while waiting
	made time.Time
	text []byte // never changed
}

const wayKept = 50 * time.Millisecond

func (w *way) in(n *Node) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.text == nil || now.Sub(w.made) >= wayKept {
		text, err := json.Marshal(n.status().wayIn())
		if err != nil {
			return nil, err
		}
		w.text, w.made = text, now
	}
	return w.text, nil
}

var _ query.AdminServer = admin{}

func failed(err error) error {
	if denied := (*NotAllowedError)(nil); errors.As(err, &denied) {
		return (*session.NotAllowedError)(denied)
	}
	if errors.Is(err, ErrConflict) {
		return queries.Conflict(err)
	}
	return err
}

// Here returns the status of this instance. It asks no other instance.
func (a admin) Here(ctx context.Context, _ *query.HereRequest) (*query.HereAnswer, error) {
	answer := &query.HereAnswer{}
	var err error
	if denied := (*session.NotAllowedError)(nil); errors.As(queries.Allowed(queries.RightsOf(ctx),
		&query.StateRequest{}), &denied) {
		answer.Denied = queries.DeniedOf(denied)
		answer.Status, err = a.way.in(a.n)
		return answer, err
	}
	n, s := a.n, a.n.Status()
	if s.Err != nil {
		answer.Failed = s.Err.Error()
	}
	s.Err, s.Health = nil, nil
	answer.Durable, answer.Replicas, answer.Founders = n.config.Dir != "", uint32(n.config.Replicas), n.config.Founders
	answer.SessionTtl, answer.WallUnixMs = int64(n.config.SessionTTL), n.engine.Wall().UnixMilli()
	answer.Leaderless = int64(n.engine.Leaderless())
	answer.Status, err = json.Marshal(s)
	return answer, err
}

func (a admin) Health(ctx context.Context, _ *query.StateRequest) (*query.HealthAnswer, error) {
	health, err := a.n.Health(ctx)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(health)
	return &query.HealthAnswer{Health: b}, err
}

func (a admin) List(ctx context.Context, q *query.ListRequest) (*query.KeysAnswer, error) {
	seen, err := look(ctx, a.n, query.QueryClient.List, q)
	return keysAnswer(seen, err)
}

func (a admin) Peek(ctx context.Context, q *query.KeyRequest) (*query.KeysAnswer, error) {
	seen, err := look(ctx, a.n, query.QueryClient.Peek, q)
	return keysAnswer(seen, err)
}

func (a admin) Check(ctx context.Context, q *query.HoldRequest) (*query.Held, error) {
	return look(ctx, a.n, query.QueryClient.Check, q)
}

func keysAnswer(seen *query.LockList, err error) (*query.KeysAnswer, error) {
	if err != nil {
		return nil, err
	}
	keys := make([]KeyInfo, 0, len(seen.Locks))
	for _, l := range seen.Locks {
		keys = append(keys, keyInfo(l))
	}
	b, err := json.Marshal(keys)
	return &query.KeysAnswer{Keys: b, Next: seen.Next, More: seen.More}, err
}

func (a admin) Members(ctx context.Context, q *query.PageRequest) (*query.MembersAnswer, error) {
	page, err := a.n.membersPage(ctx, q)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(membersOf(page))
	return &query.MembersAnswer{Members: b, From: page.From, More: page.More, Total: page.Total}, err
}

func (a admin) Sessions(ctx context.Context, q *query.PageRequest) (*query.SessionsAnswer, error) {
	page, err := look(ctx, a.n, query.QueryClient.Sessions, q)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(a.n.sessionInfos(page.Sessions))
	return &query.SessionsAnswer{Sessions: b, From: page.From, More: page.More}, err
}

func (a admin) Audit(ctx context.Context, q *query.StateRequest) (*query.EventsAnswer, error) {
	s, err := look(ctx, a.n, query.QueryClient.Ends, q)
	if err != nil {
		return nil, err
	}
	return eventsAnswer(eventsOf(s), &query.EventsAnswer{})
}

func eventsAnswer(events []Event, a *query.EventsAnswer) (_ *query.EventsAnswer, err error) {
	a.Events, err = json.Marshal(events)
	return a, err
}

const maxBegin = 20_000

// Watch returns the present state if q.After is 0, and otherwise the events after that position.
func (a admin) Watch(ctx context.Context, q *query.WatchRequest) (*query.EventsAnswer, error) {
	if len(q.Prefixes) > 1 {
		return nil, fmt.Errorf("%w: a watch of %d prefixes: a program watches one", ErrBadRequest, len(q.Prefixes))
	}
	prefix := "" // all keys
	if len(q.Prefixes) == 1 {
		prefix = string(q.Prefixes[0])
	}
	if err := badPrefix(prefix); err != nil {
		return nil, err
	}
	if q.After != 0 {
		s, err := look(ctx, a.n, query.QueryClient.Watch, q)
		if err != nil {
			return nil, err
		}
		return eventsAnswer(eventsOf(s), &query.EventsAnswer{Position: s.Position, Missed: s.Missed})
	}
	events, position, err := presentState(a.n.watchFor(ctx, q.Origin, prefix, 0))
	if err != nil {
		return nil, err
	}
	return eventsAnswer(events, &query.EventsAnswer{Position: position})
}

// presentState returns the events from the last EventReset to the EventCurrent after it.
func presentState(all iter.Seq2[Event, error]) (events []Event, position uint64, err error) {
	for e, err := range all {
		switch {
		case err != nil:
			return nil, 0, err
		case e.Kind == EventCurrent:
			return append(events, e), e.Position, nil
		case e.Kind == EventReset:
			events = events[:0]
		case len(events) > maxBegin: // the first is the EventReset
			return nil, 0, fmt.Errorf("%w: more than %d holds match: watch a longer prefix",
				ErrBadRequest, maxBegin)
		}
		events = append(events, e)
	}
	return events, 0, nil
}

func (a admin) Put(ctx context.Context, q *query.PutRequest) (*query.PutAnswer, error) {
	revision, err := a.n.put(ctx, q)
	if errors.Is(err, ErrLost) {
		return &query.PutAnswer{Code: uint32(lockfsm.NotHeld)}, nil
	}
	return &query.PutAnswer{Revision: revision}, err
}

func (a admin) SetValue(ctx context.Context, q *query.ValueRequest) (*query.PutAnswer, error) {
	if err := queries.CheckValue(q); err != nil {
		return nil, err
	}
	return look(ctx, a.n, query.QueryClient.SetValue, q)
}

// Evict ends a hold on behalf of the client named in q.By. The leader adds the client's proved
// identity.
func (a admin) Evict(ctx context.Context, q *query.EvictRequest) (*query.Held, error) {
	if err := queries.CheckEvict(q); err != nil {
		return nil, err
	}
	return look(ctx, a.n, query.QueryClient.Evict, q)
}

// EndSession ends a session on behalf of the client named in q.By, which has the root secret.
func (a admin) EndSession(ctx context.Context, q *query.EndSessionRequest) (*query.Held, error) {
	if err := queries.CheckEndSession(q); err != nil {
		return nil, err
	}
	return look(ctx, a.n, query.QueryClient.EndSession, q)
}

// TransferLead moves the lead on behalf of the client named in q.By, which has the root secret.
func (a admin) TransferLead(ctx context.Context, q *query.TransferLeadRequest) (*query.TransferLeadAnswer, error) {
	return a.n.transferLead(ctx, q)
}

func (a admin) Recover(ctx context.Context, q *query.RecoverRequest) (*query.RecoverAnswer, error) {
	return &query.RecoverAnswer{}, a.n.Recover(ctx, q.Group)
}

// wayIn returns the part of a status that a program needs to find the leader.
func (s Status) wayIn() Status {
	for i := range s.Voters {
		s.Voters[i].Zone = ""
	}
	return Status{Member: Member{Name: s.Name, Instance: s.Instance}, Joined: s.Joined, Group: s.Group, Leader: s.Leader,
		Attached: s.Attached, Voters: s.Voters, Waiting: s.Waiting}
}
