package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// KeyInfo is who holds a key and who waits for it, as the leader had it at a moment between the
// call and its return. It is a value of its own.
type KeyInfo struct {
	Key string
	// from the front: first those who hold it, then those who wait; at most 1,000 of Peek and 3 of
	// List
	Queue   []Standing
	Held    int // how many hold it: more than one if they share it
	Waiting int // how many wait, all of them

	Data     []byte // see [Node.Get]
	Revision uint64 // of Data; 0: there is none
}

// Standing is one request in the queue of a key.
type Standing struct {
	Holder  string            // Name of the instance that asked
	Session string            // ID of its session
	Value   string            // Request.Value
	Labels  map[string]string // Request.Labels

	Token Token     // of the hold; 0: it waits
	Since time.Time // when it was granted, by the leader's wall clock; zero: it waits
	// until its session ends, if nothing more is heard of its instance; 0 where the leader does not
	// know, as right after it began
	Left time.Duration

	Expired     bool     // its session has expired, and only Request.LockDelay keeps the lock, for Left
	Shared      bool     // Request.Shared
	Permits, Of int      // Request.Permits and Of
	Keys        []string // all keys of the request, if there are several

	// WaitsFor is the place in Queue of the one directly before it, for which it waits; -1 if it
	// holds the lock, or waits for another of its keys, or only for the end of the grace.
	WaitsFor int
}

// Peek returns who holds key and who waits for it, in order. Nobody does: a KeyInfo with an empty
// Queue. It asks the leader, and waits for one until ctx ends. To be told while a lock is awaited
// is what HeldError is for; nothing may be decided by what Peek says, since it is over when it
// returns: compare tokens.
func (n *Node) Peek(ctx context.Context, key string) (KeyInfo, error) {
	seen, err := look(ctx, n, query.QueryClient.Peek, &query.KeyRequest{Key: []byte(key)})
	if err != nil || len(seen.Locks) == 0 {
		return KeyInfo{Key: key}, err
	}
	return keyInfo(seen.Locks[0]), nil
}

// keyInfo is what people are told of a lock.
func keyInfo(l *query.Lock) KeyInfo {
	info := KeyInfo{
		Key: string(l.Key), Held: int(l.Held), Waiting: int(l.Waiting),
		Data: l.Data.GetValue(), Revision: l.Data.GetRevision(),
	}
	for i, e := range l.Queue {
		st := Standing{
			Holder: replica.HolderName(e.Record, lockfsm.SessionID(e.Session)), Session: fmt.Sprint(e.Session),
			Token: Token(e.Token),
			Left:  time.Duration(e.Left), WaitsFor: -1, Shared: e.Permits == 1 && e.Of == 0, Expired: e.Gone,
		}
		for _, key := range e.Keys {
			st.Keys = append(st.Keys, string(key))
		}
		st.Value, st.Labels = shown.Decode(e.Value)
		if e.Of != 0 {
			st.Permits, st.Of = int(e.Permits), int(e.Of)
		}
		if e.Token != 0 {
			st.Since = time.UnixMilli(e.Since)
		} else if i > 0 && l.Queue[i-1].Place == e.Watch {
			st.WaitsFor = i - 1
		}
		info.Queue = append(info.Queue, st)
	}
	return info
}

// List goes through all keys that begin with prefix and are held or waited for, or have data, in
// the order in which they came to be. What is there from the beginning of the walk to its end is
// told once; what comes or goes meanwhile may be. It asks the leader for a hundred at a time. After
// an error, which comes with a zero KeyInfo, the walk ends.
func (n *Node) List(ctx context.Context, prefix string) iter.Seq2[KeyInfo, error] {
	return func(yield func(KeyInfo, error) bool) {
		q := &query.ListRequest{Prefix: []byte(prefix)}
		for more := true; more; {
			seen, err := look(ctx, n, query.QueryClient.List, q)
			if err != nil {
				yield(KeyInfo{}, err)
				return
			}
			for _, l := range seen.Locks {
				if !yield(keyInfo(l), nil) {
					return
				}
			}
			more, q.Next = seen.More, seen.Next
		}
	}
}

// SessionInfo is one session of the group, as its leader sees it. It is a value of its own.
type SessionInfo struct {
	Session string // ID
	Holder  string // Name of the instance
	Own     bool   // one that its user has opened by NewSession, or a guest's: not the instance's first
	TTL     time.Duration
	// until it ends, if nothing more is heard of its instance; 0 where the leader does not know, as
	// right after it began
	Left    time.Duration
	Leaving bool // its instance is about to leave
	Expired bool // it has, and only Request.LockDelay or Lock.Detach keeps locks in it

	// when its instance became a member, or its guest began, as the clock there says; zero if it
	// has not said
	Since   time.Time
	Held    int // how many keys it holds
	Waiting int // and waits for
}

// Sessions lists the sessions of the group, the oldest first, at most 1,000, and how much time they
// have left. It asks the leader for a hundred at a time, and waits for one until ctx ends.
func (n *Node) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var all []SessionInfo
	q := &query.PageRequest{}
	for more := true; more && len(all) < sessionsMost; {
		seen, err := look(ctx, n, query.QueryClient.Sessions, q)
		if err != nil {
			return nil, err
		}
		all = append(all, sessionInfos(seen)...)
		more, q.From = seen.More, seen.From
	}
	return all, nil
}

// sessionInfos is what people are told of a page of sessions.
func sessionInfos(page *query.SessionList) []SessionInfo {
	list := make([]SessionInfo, 0, len(page.Sessions))
	for _, each := range page.Sessions {
		r, id := replica.DecodeRecord(each.Record), lockfsm.SessionID(each.Id)
		one := SessionInfo{
			Session: instance.SessionText(id), Holder: replica.HolderName(each.Record, id), Own: r.ID().IsZero(),
			TTL: time.Duration(each.Ttl), Left: time.Duration(each.Left),
			Leaving: each.Leaving, Expired: each.Gone, Held: int(each.Held), Waiting: int(each.Waiting),
		}
		if r.Since != 0 {
			one.Since = time.UnixMilli(r.Since)
		}
		list = append(list, one)
	}
	return list
}

// Check reports whether key is held with token. The answer is linearizable: it was true at a moment
// between the call and its return, whoever leads. It is what a resource asks that cannot compare
// tokens; one that can needs no question and no lock server to be there.
func (n *Node) Check(ctx context.Context, key string, token Token) (held bool, err error) {
	seen, err := look(ctx, n, query.QueryClient.Check, &query.HoldRequest{Key: []byte(key), Token: uint64(token)})
	return seen.GetHeld(), err
}

// ForceUnlock ends the hold of key with token, whoever has it: for a person who has seen that it
// will not end by itself. A hold of several keys ends with all of them. The holder's [Lock.Err] is
// a *[ForcedError] then, with the reason and this instance's name, as soon as its instance hears of
// it: until then its code believes and may act, and only the token protects the resource. So stop
// the holder first, if you can.
//
// The instance that leads writes a line into its log.
//
// It reports whether this call has ended the hold, and false if nobody had that token any more.
// After an error it may have or not; call again.
func (n *Node) ForceUnlock(ctx context.Context, key string, token Token, reason string) (ended bool, err error) {
	if err := badForce(uint64(token), reason); err != nil {
		return false, err
	}
	q := &query.EvictRequest{Key: []byte(key), Token: uint64(token), By: []byte(n.config.Name), Reason: []byte(reason)}
	seen, err := look(ctx, n, query.QueryClient.Evict, q)
	return seen.GetHeld(), err
}

// badForce says why no hold can be ended with this token and reason, or returns nil.
func badForce(token uint64, reason string) error {
	switch {
	case len(reason) > lockfsm.MaxValueBytes:
		return fmt.Errorf("%w: the reason of a forced end has %d bytes, at most %d", ErrBadRequest, len(reason),
			lockfsm.MaxValueBytes)
	case !plain.Is(reason):
		return fmt.Errorf("%w: the reason of a forced end, %q, %s", ErrBadRequest, reason, plain.NotText)
	case token == 0:
		return fmt.Errorf("%w: no hold has token 0; Peek reports the token of the holder", ErrBadRequest)
	}
	return nil
}

// ForceUnlockAll is ForceUnlock for all that is held of the keys that begin with prefix, and
// returns how many holds it has ended. What is granted while it goes on may be ended too.
func (n *Node) ForceUnlockAll(ctx context.Context, prefix, reason string) (ended int, err error) {
	for info, err := range n.List(ctx, prefix) {
		if err != nil {
			return ended, err
		}
		for told := 0; ; told = 0 {
			for _, s := range info.Queue {
				if s.Token == 0 {
					continue
				}
				told++
				one, err := n.ForceUnlock(ctx, info.Key, s.Token, reason)
				if err != nil {
					return ended, err
				}
				if one {
					ended++
				}
			}
			if told >= info.Held {
				break
			}
			if info, err = n.Peek(ctx, info.Key); err != nil { // they share it, and there are more than were told
				return ended, err
			}
		}
	}
	return ended, nil
}

const (
	lookPause    = 50 * time.Millisecond // before the next attempt
	sessionsMost = 1000
)

// look puts a question to the leader, whoever that is, until there is an answer or ctx ends.
func look[Q, A any](ctx context.Context, n *Node, method queries.Method[query.QueryClient, Q, A], q *Q) (*A, error) {
	doing := "look at the locks"
	for {
		if err := n.Err(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, n.explain(doing, &client.WaitError{Err: client.ContextError(ctx)})
		}
		asking, cancel := context.WithTimeout(ctx, queries.Time(q))
		a, err := instance.LookOnce(asking, n.engine, method, q)
		cancel()
		if err == nil || errors.Is(err, ErrNotAllowed) {
			return a, ownError(err)
		}
		if ctx.Err() == nil {
			doing = fmt.Sprintf("look at the locks (last answer: %v)", err)
		}
		pause(ctx, lookPause)
	}
}

// Get returns the data of key and its revision, or nothing and revision 0 if it has none. The
// answer is linearizable. Data is for a few bytes that must outlive their writer and be the same to
// all: the configuration in force, the version of an order, how far a job has come. It is kept
// until somebody takes it away with Put, in the memory of every voter, and lives as long as the
// group: a group that is founded anew has none.
func (n *Node) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	d, err := look(ctx, n, query.QueryClient.Get, &query.KeyRequest{Key: []byte(key)})
	return d.GetValue(), d.GetRevision(), err
}

// Put changes the data of key, at most 4,096 bytes, if it still is what it was at revision, as
// [Node.Get] or an earlier Put has told it; 0: if it has none. It returns the new revision. No data
// takes it away; the new revision is 0 then. It needs no lock, and heeds none: of those who put at
// once one succeeds, and for the others it is ErrConflict. At most 16,384 keys can have data; what
// is more is ErrNoRoom, as is data for which the group's budget (Config.MaxGroupBytes) has no room.
//
// After any other error, as when ctx ends, it may have happened or not, or may yet happen: Get
// tells only what there is now. Whoever must know puts once more at the same revision, and looks at
// what there is if that is ErrConflict; of the two no more than one takes effect, unless revision
// is 0 and somebody takes the data away. If the leader was lost in the middle of the call and
// another instance put something over ours before it could be asked again, ErrConflict is returned
// though ours was there for a moment.
func (n *Node) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	var nonce lockfsm.Nonce
	for nonce == (lockfsm.Nonce{}) {
		n.engine.Random(nonce[:])
	}
	return n.put(ctx, &query.PutRequest{Key: []byte(key), Data: data, Revision: revision, Nonce: nonce[:]})
}

// put is Put, perhaps for another program, which has drawn the nonce: it can repeat a question
// whose answer was lost.
func (n *Node) put(ctx context.Context, q *query.PutRequest) (uint64, error) {
	key, data, revision := string(q.Key), q.Data, q.Revision
	switch {
	case len(data) > lockfsm.MaxDataBytes:
		return 0, fmt.Errorf("%w: Put: the data has %d bytes, at most %d", ErrBadRequest, len(data),
			lockfsm.MaxDataBytes)
	case len(q.Nonce) != len(lockfsm.Nonce{}) || lockfsm.Nonce(q.Nonce) == lockfsm.Nonce{}:
		return 0, fmt.Errorf("%w: Put: the nonce is missing", ErrBadRequest)
	}
	s, err := look(ctx, n, query.QueryClient.Put, q)
	if err != nil {
		return 0, err
	}
	now := s.Revision
	switch code := lockfsm.Code(s.Code); {
	// taken away, perhaps by a call of ours whose answer was lost
	case code == lockfsm.Done || code == lockfsm.Changed && now == 0 && len(data) == 0 && revision != 0:
		return now, nil
	case code == lockfsm.Changed:
		return 0, fmt.Errorf("%w: %q is at revision %d, not %d", ErrConflict, key, now, revision)
	case code == lockfsm.BadKey:
		return 0, cmp.Or(badKey(key), fmt.Errorf("%w: %q", ErrBadKey, key))
	case code == lockfsm.OverGroupBudget:
		return 0, fmt.Errorf("Put %q: %w", key, client.BudgetErrorOf(code, s.Budget))
	}
	return 0, fmt.Errorf("%w: Put %q: too many keys have data, at most %d", ErrNoRoom, key, lockfsm.MaxData)
}
