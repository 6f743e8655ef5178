package queries

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// LeaderAnswer answers a question from the replica of this instance, if the replica leads.
type LeaderAnswer func(ctx context.Context, q replica.Question) (*replica.Answer, error)

// Query returns the service for questions to the leader.
func Query(look LeaderAnswer) transport.Service {
	return transport.Service{Desc: &query.Query_ServiceDesc, Impl: leader{seal: newSeal(),
		answer: func(ctx context.Context, q replica.Question) (*replica.Answer, error) {
			q.For = userOf(ctx)
			return look(ctx, q)
		}}}
}

type leader struct {
	query.UnimplementedQueryServer
	answer LeaderAnswer
	seal   *seal
}

// maxForeignPages is the number of pages without a lock of the asking program that one question
// reads. So a question visits at most this many times the locks of a page, however many others the
// group has.
const maxForeignPages = 4

var _ query.QueryServer = leader{}

var (
	errNonce   = errors.New("mortise: a nonce has 16 bytes")
	errCount   = errors.New("mortise: the count of IDs must be 1 to 65536")
	errNoToken = errors.New("mortise: the token of a hold, or the number of a change, is missing")
)

func (l leader) locks(ctx context.Context, q replica.Question) (*query.LockList, error) {
	a, err := l.answer(ctx, q)
	if err != nil {
		return nil, err
	}
	return lockList(a, RightsOf(ctx)), nil
}

// page answers a page of a walk through all locks. The place of the walk is named by the key of any
// lock, so this key is sealed for a program that may not see it. Pages without a lock of the
// program are read here, but only a few for each question: the program then gets an empty page, and
// asks on.
func (l leader) page(ctx context.Context, q replica.Question) (*query.LockList, error) {
	rights := RightsOf(ctx)
	q.Next.Key = l.seal.open(q.Next.Key)
	for turn := 1; ; turn++ {
		a, err := l.answer(ctx, q)
		if err != nil {
			return nil, err
		}
		switch {
		case rights.Sees(a.Next.Key):
		case !a.More:
			a.Next = lockfsm.Cursor{}
		case len(a.Locks) == 0 && turn < maxForeignPages:
			q.Next = a.Next
			continue
		default:
			a.Next.Key = l.seal.close(a.Next.Key)
		}
		return lockList(a, rights), nil
	}
}

func (l leader) held(ctx context.Context, q replica.Question) (*query.Held, error) {
	a, err := l.answer(ctx, q)
	if err != nil {
		return nil, err
	}
	return &query.Held{Held: a.Held}, nil
}

func (l leader) events(ctx context.Context, q replica.Question) (*query.EventList, error) {
	a, err := l.answer(ctx, q)
	if err != nil {
		return nil, err
	}
	return eventList(a), nil
}

func (l leader) members(ctx context.Context, q replica.Question) (*query.MemberList, error) {
	a, err := l.answer(ctx, q)
	if err != nil {
		return nil, err
	}
	return memberList(a), nil
}

func (l leader) Peek(ctx context.Context, q *query.KeyRequest) (*query.LockList, error) {
	return l.locks(ctx, replica.Question{Op: replica.OpPeek, Key: string(q.Key)})
}

func (l leader) List(ctx context.Context, q *query.ListRequest) (*query.LockList, error) {
	return l.page(ctx, replica.Question{Op: replica.OpList, Key: string(q.Prefix), Next: cursor(q.Next)})
}

func (l leader) Walk(ctx context.Context, q *query.ListRequest) (*query.LockList, error) {
	return l.page(ctx, replica.Question{Op: replica.OpWalk, Key: string(q.Prefix), Next: cursor(q.Next)})
}

func (l leader) Holders(ctx context.Context, q *query.HoldersRequest) (*query.LockList, error) {
	return l.locks(ctx, replica.Question{Op: replica.OpHolders, Key: string(q.Key), After: q.After})
}

func (l leader) Check(ctx context.Context, q *query.HoldRequest) (*query.Held, error) {
	return l.held(ctx, replica.Question{Op: replica.OpCheck, Key: string(q.Key), Token: q.Token})
}

func (l leader) Evict(ctx context.Context, q *query.EvictRequest) (*query.Held, error) {
	if err := CheckEvict(q); err != nil {
		return nil, err
	}
	by := proved(q.Origin, RightsOf(ctx), string(q.By))
	return l.held(ctx, replica.Question{Op: replica.OpEvict, Key: string(q.Key), Token: q.Token, By: by,
		Reason: string(q.Reason), Rights: RightsOf(ctx)})
}

// EndSession needs the right root, which only a full instance has: see Allowed.
func (l leader) EndSession(ctx context.Context, q *query.EndSessionRequest) (*query.Held, error) {
	if err := CheckEndSession(q); err != nil {
		return nil, err
	}
	by := proved(q.Origin, RightsOf(ctx), string(q.By))
	return l.held(ctx, replica.Question{Op: replica.OpEnd, Session: lockfsm.SessionID(q.Session), By: by,
		Reason: string(q.Reason)})
}

// TransferLead needs the right root, like EndSession.
func (l leader) TransferLead(ctx context.Context, q *query.TransferLeadRequest) (*query.TransferLeadAnswer, error) {
	if err := CheckTransferLead(q); err != nil {
		return nil, err
	}
	a, err := l.answer(ctx, replica.Question{Op: replica.OpLead, Key: string(q.Name),
		By: proved(q.Origin, RightsOf(ctx), string(q.By)), Reason: string(q.Reason)})
	if err != nil {
		return nil, err
	}
	return &query.TransferLeadAnswer{Refusal: uint32(a.Refusal), From: []byte(a.LedBy)}, nil
}

func (l leader) Get(ctx context.Context, q *query.KeyRequest) (*query.Data, error) {
	a, err := l.answer(ctx, replica.Question{Op: replica.OpGet, Key: string(q.Key)})
	if err != nil {
		return nil, err
	}
	return dataOf(a.Data), nil
}

func (l leader) Put(ctx context.Context, q *query.PutRequest) (*query.PutAnswer, error) {
	if len(q.Nonce) != len(lockfsm.Nonce{}) {
		return nil, errNonce
	}
	nonce := lockfsm.Nonce(q.Nonce)
	a, err := l.answer(ctx, replica.Question{Op: replica.OpPut, Key: string(q.Key), Value: q.Data, After: q.Revision,
		Nonce: nonce, Lock: string(q.Lock), Token: q.Token})
	if err != nil {
		return nil, err
	}
	return &query.PutAnswer{Code: uint32(a.Code), Revision: dataOf(a.Data).Revision, Budget: a.Budget}, nil
}

// PutHeld is a method of its own, because a leader of an older build would ignore the hold.
func (l leader) PutHeld(ctx context.Context, q *query.PutRequest) (*query.PutAnswer, error) {
	if q.Token == 0 {
		return nil, errNoToken
	}
	return l.Put(ctx, q)
}

// SetValue changes only a hold of the instance or program that asks, under the same rights. The
// others know its token, too.
func (l leader) SetValue(ctx context.Context, q *query.ValueRequest) (*query.PutAnswer, error) {
	if q.Token == 0 || q.Seq == 0 {
		return nil, errNoToken
	}
	asker := transport.AskerOf(ctx).Instance
	if of := ID(q.GetOrigin().GetAsker()); !of.IsZero() {
		asker = of // an instance asks for a program
	}
	a, err := l.answer(ctx, replica.Question{Op: replica.OpValue, Key: string(q.Key), Token: q.Token, After: q.Seq,
		Value: q.Value, Asker: asker, Rights: RightsOf(ctx)})
	if err != nil {
		return nil, err
	}
	return &query.PutAnswer{Code: uint32(a.Code), Budget: a.Budget}, nil
}

func (l leader) Reserve(ctx context.Context, q *query.ReserveRequest) (*query.Reserved, error) {
	if q.Count == 0 || q.Count > lockfsm.MaxReserved {
		return nil, errCount
	}
	a, err := l.answer(ctx, replica.Question{Op: replica.OpReserve, After: uint64(q.Count)})
	if err != nil {
		return nil, err
	}
	return &query.Reserved{Code: uint32(a.Code), First: a.First}, nil
}

func (l leader) Watch(ctx context.Context, q *query.WatchRequest) (*query.EventList, error) {
	prefixes := make([]string, 0, max(1, len(q.Prefixes)))
	for _, each := range q.Prefixes {
		prefixes = append(prefixes, string(each))
	}
	if len(prefixes) == 0 {
		prefixes = append(prefixes, "") // all keys
	}
	if err := checkPrefixes(prefixes); err != nil {
		return nil, err
	}
	op := replica.OpWatch
	if q.AtOnce {
		op = replica.OpEvents
	}
	return l.events(ctx, replica.Question{Op: op, Prefixes: lockfsm.NewPrefixes(prefixes...), After: q.After})
}

// checkPrefixes returns an error if there are too many prefixes for one watch. The leader keeps
// them while the watch waits.
func checkPrefixes(prefixes []string) error {
	bytes := 0
	for _, each := range prefixes {
		bytes += len(each)
	}
	if len(prefixes) > sharedPrefixes || bytes > sharedBytes {
		return fmt.Errorf("mortise: a watch of %d prefixes with %d bytes: at most %d, with %d bytes", len(prefixes), bytes,
			sharedPrefixes, sharedBytes)
	}
	return nil
}

func (l leader) Ends(ctx context.Context, _ *query.StateRequest) (*query.EventList, error) {
	return l.events(ctx, replica.Question{Op: replica.OpEnds})
}

func (l leader) Sessions(ctx context.Context, q *query.PageRequest) (*query.SessionList, error) {
	a, err := l.answer(ctx, replica.Question{Op: replica.OpSessions, From: sessionCursor(q.From)})
	if err != nil {
		return nil, err
	}
	return sessionList(a), nil
}

func (l leader) Members(ctx context.Context, q *query.PageRequest) (*query.MemberList, error) {
	return l.members(ctx, replica.Question{Op: replica.OpMembers, From: sessionCursor(q.From)})
}

func (l leader) Names(ctx context.Context, _ *query.StateRequest) (*query.MemberList, error) {
	return l.members(ctx, replica.Question{Op: replica.OpNames})
}
