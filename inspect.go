package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// KeyInfo lists the holders and waiters of a key at one moment during the call.
type KeyInfo struct {
	Key string
	// Queue lists the holders and then the waiters, in order. It has at most 1,000 entries from
	// Peek and 3 from List.
	Queue   []Standing
	Held    int // requests that hold the key; more than one if they share it
	Waiting int // requests that wait, including those that Queue omits

	Data     []byte // see [Node.Get]
	Revision uint64 // revision of Data; zero if there is no data
}

// Standing is one request in the queue of a key.
type Standing struct {
	// Part is the part of the request for which it is in this queue. A request with Tree is also in
	// the queues of the nodes above its Key. Key is empty if a derived secret must not read it. An
	// upgrade is a Standing of its own, and Exclusive.
	Part
	Also []Part // the other parts of the request, in the order of their keys

	Hold // if Kept, no caller has Token: the tokens of the callers are higher
	// Left is the time until its session ends if the leader receives nothing more from its
	// instance. It is zero if unknown, for example directly after an election.
	Left time.Duration

	Expired bool // its session has expired, and Request.LockDelay keeps the lock for the time Left

	// WaitsFor is the index in Queue of the request for which this request waits: the entry
	// directly before it, except for the lock that an upgrade belongs to. It is -1 if this request
	// holds the lock, waits for another of its keys, or waits only for the end of the grace.
	WaitsFor int

	// Unsearched means that the search for a deadlock of this waiting request has not ended. It may
	// still fail with a *[DeadlockError].
	Unsearched bool
}

// Peek returns the holders and waiters of key, in order; Queue is empty if there are none. Peek
// queries the leader, and waits for a leader until ctx ends. It is for diagnostics, because its
// answer may be stale when it returns. To protect a resource, compare tokens.
func (n *Node) Peek(ctx context.Context, key string) (KeyInfo, error) {
	seen, err := look(ctx, n, query.QueryClient.Peek, &query.KeyRequest{Key: []byte(key)})
	if err != nil || len(seen.Locks) == 0 {
		return KeyInfo{Key: key}, err
	}
	return keyInfo(seen.Locks[0]), nil
}

// Ahead returns how many requests are before a waiting request of this node in the queue of r.Key:
// those that hold the key, and those that wait. The request is the first one, in any session of the
// node, with the keys, modes, Value and Labels of r, so give equal requests a Value of their own.
// waits is false if none of the first 1,000 requests of the queue is such a request. Ahead queries
// the leader as Peek does, and its answer may be stale when it returns.
func (n *Node) Ahead(ctx context.Context, r Request) (ahead int, waits bool, err error) {
	if err := r.badKeys(); err != nil {
		return 0, false, err
	}
	if err := r.validate(); err != nil {
		return 0, false, err
	}
	seen, err := look(ctx, n, query.QueryClient.Peek, &query.KeyRequest{Key: []byte(r.Key)})
	own, asked := n.status().Sessions, r.shown()
	byKey := func(a, b Part) int { return cmp.Compare(a.Key, b.Key) }
	for _, l := range seen.GetLocks() {
		for i, s := range keyInfo(l).Queue {
			parts := slices.SortedFunc(slices.Values(append(s.Also, s.Part)), byKey)
			if s.Token == 0 && !l.Queue[i].Upgrades && s.Value == r.Value && maps.Equal(s.Labels, r.Labels) &&
				slices.Equal(parts, asked) && slices.Contains(own, s.Session) {
				return i, true, err
			}
		}
	}
	return 0, false, err
}

// shown returns the parts of r as the group shows them, in the order of their keys.
func (r *Request) shown() (all []Part) {
	g := modes.Grant(r.parts())
	for _, p := range g.Parts() {
		s := modes.Shown(&p)
		all = append(all, Part{Key: s.Key, Mode: Mode(s.Mode), Tree: s.Tree})
	}
	return all
}

func keyInfo(l *query.Lock) KeyInfo {
	info := KeyInfo{
		Key: string(l.Key), Held: int(l.Held), Waiting: int(l.Waiting),
		Data: l.Data.GetValue(), Revision: l.Data.GetRevision(),
	}
	for i, e := range l.Queue {
		st := Standing{
			Part: partOf(e.Part), Hold: Hold{Holder: replica.HolderName(e.Record, lockfsm.SessionID(e.Session)),
				Session: fmt.Sprint(e.Session), Token: Token(e.Token), Kept: e.Kept},
			Left: time.Duration(e.Left), WaitsFor: -1, Expired: e.Gone, Unsearched: e.Unsearched,
		}
		for _, p := range e.Also {
			st.Also = append(st.Also, partOf(p))
		}
		st.Value, st.Labels = shown.Decode(e.Value)
		if e.Token != 0 {
			st.Since = time.UnixMilli(e.Since)
		} else if i > 0 && l.Queue[i-1].Place == e.Watch {
			st.WaitsFor = i - 1
		} else if i > 1 && l.Queue[i-2].Place == e.Watch {
			st.WaitsFor = i - 2 // an upgrade does not wait for its own hold
		}
		info.Queue = append(info.Queue, st)
	}
	return info
}

// partOf returns what a caller has asked for, from an answer of the leader.
func partOf(p *query.Part) Part {
	s := modes.Shown(&lockfsm.Part{Key: string(p.GetKey()), Mode: lockfsm.Mode(p.GetMode()), Permits: p.GetPermits(),
		Of: p.GetOf(), Tree: p.GetTree()})
	return Part{Key: s.Key, Mode: Mode(s.Mode), Tree: s.Tree}
}

// List returns the keys that begin with prefix, in the order of their creation. A key exists while
// it is held, has waiters or has data. A key that exists during the whole iteration is listed once.
// After an error, which is returned with a zero KeyInfo, the iteration ends.
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

// SessionInfo is one session of the group, as reported by its leader.
type SessionInfo struct {
	// Member is the instance or guest that opened the session. Name is the Holder of the session's
	// holds. Instance and Address are empty if a guest or NewSession opened it: it is not the first
	// session of an instance.
	Member
	TTL     time.Duration
	Left    time.Duration // as Standing.Left
	Expired bool          // it has expired, and holds only locks that Request.LockDelay or Lock.Detach keeps
	Held    int           // keys that it holds
	Waiting int           // keys that it waits for
}

// Sessions lists the sessions of the group, the oldest first, at most 1,000. It waits for a leader
// until ctx ends.
func (n *Node) Sessions(ctx context.Context) ([]SessionInfo, error) {
	all, err := firstSessions(func(q *query.PageRequest) (*query.SessionList, error) {
		return look(ctx, n, query.QueryClient.Sessions, q)
	})
	if err != nil {
		return nil, err
	}
	return n.sessionInfos(all), nil
}

func firstSessions(ask func(*query.PageRequest) (*query.SessionList, error)) (all []*query.Session, err error) {
	q := &query.PageRequest{}
	for more := true; more && len(all) < maxSessions; {
		seen, err := ask(q)
		if err != nil {
			return nil, err
		}
		all = append(all, seen.Sessions...)
		more, q.From = seen.More, seen.From
	}
	return all[:min(len(all), maxSessions)], nil
}

func (n *Node) sessionInfos(all []*query.Session) []SessionInfo {
	list := make([]SessionInfo, 0, len(all))
	voters := n.engine.Picture().Cluster.Voters
	for _, each := range all {
		r, id := replica.DecodeRecord(each.Record), lockfsm.SessionID(each.Id)
		of := r.ID()
		one := SessionInfo{
			Member: Member{Name: replica.HolderName(each.Record, id), Zone: plain.Text(r.Zone), Tier: TierRoot,
				Version: plain.Text(r.Version), For: plain.Text(r.For), Session: instance.SessionText(id),
				Leaving: each.Leaving},
			TTL: time.Duration(each.Ttl), Left: time.Duration(each.Left), Expired: each.Gone,
			Held: int(each.Held), Waiting: int(each.Waiting),
		}
		if r.Tier != "" {
			one.Tier = Tier(plain.Text(r.Tier))
		}
		if !of.IsZero() {
			one.Instance = of.String()
			one.Votes = slices.ContainsFunc(voters, func(v cluster.Voter) bool { return v.Instance == of && !v.Learner })
			if !n.config.unreachable() {
				one.Address = plain.Text(r.Addr)
			}
		}
		if r.Since != 0 {
			one.Since = time.UnixMilli(r.Since)
		}
		list = append(list, one)
	}
	return list
}

// Check reports whether key was held with token at a moment during the call: the answer is
// linearizable. It is for a resource that cannot compare tokens.
//
// If an instance keeps the lock (Node.LockSticky) and has reserved the token for its callers, the
// group does not know the answer, and Check fails with ErrKept, on every instance. To protect a
// resource from such callers, compare tokens: see package fence.
func (n *Node) Check(ctx context.Context, key string, token Token) (held bool, err error) {
	seen, err := look(ctx, n, query.QueryClient.Check, &query.HoldRequest{Key: []byte(key), Token: uint64(token)})
	return seen.GetHeld(), err
}

// ForceUnlock ends the hold that has this key and token, in any session, and with all its keys. It
// is for operators, after they have found that the hold will not end by itself. When the holder's
// instance is notified, [Lock.Err] returns a *[ForcedError] with the reason and the name of this
// instance; if its lease or session has ended before, it learns only that. Until then the holder's
// code may continue, and only the token protects the resource. If you can, stop the holder first.
// The leader logs the call.
//
// A lock that an instance keeps (Node.LockSticky) ends with the token that Peek returns, and with
// it the hold of every caller on that instance. With the token of such a caller, ForceUnlock ends
// nothing and fails with ErrKept, whose text names the token to use.
//
// A member cannot call it. A program with a derived secret needs read and force on each key of the
// hold, see [NotAllowedError].
//
// ForceUnlock returns true if this call ended the hold, and false if no hold had that token. After
// another error the hold may have ended; call ForceUnlock once more, except after ErrBadRequest,
// for example of a token that no hold can have.
func (n *Node) ForceUnlock(ctx context.Context, key string, token Token, reason string) (ended bool, err error) {
	q := &query.EvictRequest{Key: []byte(key), Token: uint64(token), By: []byte(n.config.Name), Reason: []byte(reason)}
	if err := queries.CheckEvict(q); err != nil {
		return false, err
	}
	seen, err := look(ctx, n, query.QueryClient.Evict, q)
	return seen.GetHeld(), err
}

// EndSession ends the session with this ID, as Sessions reports it, and with it all its holds and
// requests. It is for operators, after they have found that a process hangs or runs where it should
// not. The holds end as in an expiry: a hold with Request.LockDelay stays for that delay. When the
// session's instance is notified, [Lock.Err] of each of its locks returns an error that wraps
// [ErrLost]. Until then the code of the holders may continue, and a sticky lock ([Node.LockSticky])
// may be granted to its callers: until that instance is notified, and at the latest until its lease
// ends. Only tokens protect the resources. If you can, stop the process first. The leader logs the
// call, and [Node.Audit] reports it with the reason and the name of this instance.
//
// The instance goes on: it opens another session. Only an instance with the root secret can call
// EndSession; another gets a [NotAllowedError].
//
// EndSession returns true if this call ended the session, and false if there was no such session,
// or if it had expired before and holds only locks that a delay keeps. After another error the
// session may have ended; call EndSession once more.
func (n *Node) EndSession(ctx context.Context, session, reason string) (ended bool, err error) {
	id, err := strconv.ParseUint(session, 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: %q is no ID of a session; Sessions reports the IDs", ErrBadRequest, session)
	}
	q := &query.EndSessionRequest{Session: id, By: []byte(n.config.Name), Reason: []byte(reason)}
	if err := queries.CheckEndSession(q); err != nil {
		return false, err
	}
	seen, err := look(ctx, n, query.QueryClient.EndSession, q)
	return seen.GetHeld(), err
}

// TransferLead moves the lead of the group to the voter with this name, as Status reports it. It is
// for operators, before the machine of the leader is stopped, or if its disk is slow. No lock is
// lost, and grants pause for a few round trips. The new leader counts every SessionTTL and every
// Request.LockDelay anew. The lead stays there until that instance leaves or fails: no instance can
// be preferred, because a preferred one with a sick disk could keep these times from ever ending.
//
// TransferLead may be called on any instance with the root secret; another gets a
// [NotAllowedError]. The leader logs the call, and [Node.Audit] reports it with the reason and the
// name of this instance, also if the lead then does not move.
//
// TransferLead returns nil once the instance leads, also if it led before. It fails with
// [ErrBadRequest] if no instance has the name, or if that instance has no vote. It fails with
// [ErrNotReady] if the voter leaves, is not in contact with the leader, or has not taken the lead
// over within an election timeout. After another error the lead may have moved.
func (n *Node) TransferLead(ctx context.Context, name, reason string) error {
	_, err := n.transferLead(ctx, &query.TransferLeadRequest{Name: []byte(name), By: []byte(n.config.Name),
		Reason: []byte(reason)})
	return err
}

func (n *Node) transferLead(ctx context.Context, q *query.TransferLeadRequest) (*query.TransferLeadAnswer, error) {
	if err := queries.CheckTransferLead(q); err != nil {
		return nil, err
	}
	a, err := look(ctx, n, query.QueryClient.TransferLead, q)
	if err != nil {
		return nil, err
	}
	return a, notMoved(voters.Refusal(a.Refusal), string(q.Name))
}

// notMoved returns the error for a refusal, or nil if the instance leads now.
func notMoved(why voters.Refusal, name string) error {
	switch why {
	case voters.Fit, voters.LeadsNow:
		return nil
	case voters.NoInstance:
		return fmt.Errorf("%w: the lead was not moved: no instance with the root secret has the name %q; Members "+
			"reports the names", ErrBadRequest, name)
	case voters.NoVote:
		return fmt.Errorf("%w: the lead was not moved: %q has no vote, and only a voter can lead; Status reports the "+
			"voters", ErrBadRequest, name)
	case voters.Silent:
		return fmt.Errorf("%w: the lead was not moved: the leader is not in contact with %q; check that it runs and "+
			"that the two reach each other, or name another voter", ErrNotReady, name)
	case voters.Leaves:
		return fmt.Errorf("%w: the lead was not moved: %q is about to leave; name another voter", ErrNotReady, name)
	case voters.NotTaken:
		return fmt.Errorf("%w: the lead was not moved: %q did not take it over in time; it may not run, its log "+
			"may be behind, or its disk slow: see Health, and try again", ErrNotReady, name)
	}
	return fmt.Errorf("%w: the lead was not moved to %q, for a reason that only the newer build of the leader knows "+
		"(%d): see the leader's log", ErrNotReady, name, why)
}

const (
	lookPause   = 50 * time.Millisecond // pause before the next attempt
	busyPause   = time.Second           // longest pause after a leader has refused several attempts
	maxSessions = 1000
)

// look sends a query to the leader, and repeats it until the leader answers or ctx ends. It does
// not repeat a query that is refused, or too large.
func look[Q, A any](ctx context.Context, n *Node, method queries.Method[query.QueryClient, Q, A], q *Q) (*A, error) {
	if ctx == nil {
		return nil, noContext("a query")
	}
	doing, pauses := "query the leader", pauses(0)
	for {
		if err := n.Err(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, n.explain(doing, &client.WaitError{Err: client.ContextError(ctx)})
		}
		asking, cancel := context.WithTimeout(ctx, queries.Time(q))
		a, err := instance.QueryOnce(asking, n.engine, method, q)
		cancel()
		if err == nil || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrKept) || errors.Is(err, ErrBadRequest) {
			return a, ownError(err)
		}
		if ctx.Err() == nil {
			doing = fmt.Sprintf("query the leader (last answer: %v)", err)
		}
		next := pauses.next(err)
		if w, is := any(q).(*query.WatchRequest); is && errors.Is(err, replica.ErrBusy) && !w.AtOnce {
			// The leader has no place for a watch that waits. Ask each second, so that events
			// are late, and not missing for as long as there is no place.
			w.AtOnce, next = true, busyPause
		}
		pause(ctx, next)
	}
}

// pauses counts the attempts that a leader has refused because of a limit.
type pauses int

// next returns the pause after an attempt that has failed with err. It doubles with each refusal.
func (p *pauses) next(err error) time.Duration {
	if !errors.Is(err, replica.ErrBusy) {
		return lookPause
	}
	*p++
	return min(lookPause<<min(*p, 5), busyPause)
}

// Get returns the data of key and its revision, or nil and revision 0 if the key has no data. The
// answer is linearizable. Data is for a few bytes that must outlive their writer, such as the
// progress of a job. It exists until Put removes it or the group ends.
func (n *Node) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	d, err := look(ctx, n, query.QueryClient.Get, &query.KeyRequest{Key: []byte(key)})
	return d.GetValue(), d.GetRevision(), err
}

// Put sets the data of key, at most 4,096 bytes, if revision is the present revision of the data,
// and returns the new revision. Revision 0 means that the key has no data. Empty data removes the
// data, and the new revision is 0. Put ignores locks. If several callers put at the same revision,
// exactly one succeeds and the others fail with ErrConflict. At most 16,384 keys can have data.
// Beyond that, or if Config.MaxGroupBytes leaves no room, Put fails with ErrNoRoom.
//
// After ErrBadKey and ErrBadRequest nothing has changed. After any other error, for example when
// ctx ends, the change may have taken effect or may take effect later, and a Get cannot show which.
// To find out, call Put with the same revision once more; if that returns ErrConflict, compare the
// data. At most one of the two calls takes effect, unless revision is 0 and the data is removed
// between them. If the leader is lost during a call, Put sends its change again. If the first
// attempt took effect and another caller has replaced the data since, Put returns ErrConflict.
func (n *Node) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return n.put(ctx, &query.PutRequest{Key: []byte(key), Data: data, Revision: revision, Nonce: n.nonce()})
}

// IDs returns count IDs that no other call on any instance ever gets: first, first+1, and so on.
// The parameter count is 1 to 65,536. Later calls get higher IDs, and no [Token] is equal to an ID.
// This also holds for a group that is founded later, as for tokens (docs/GUARANTEES.md, promise 2).
// The IDs have 63 bits. They have gaps, and a lost answer causes one. Ask for many IDs at once if
// you need many: each call is an entry in the group's log.
//
// If the group gives IDs faster than two thousand per microsecond since its founding, the call
// waits. On error it has given none. A node with a derived secret needs the right to lock all keys.
func (n *Node) IDs(ctx context.Context, count int) (first uint64, err error) {
	if count < 1 || count > lockfsm.MaxReserved {
		return 0, fmt.Errorf("%w: IDs: count is %d, not 1 to %d", ErrBadRequest, count, lockfsm.MaxReserved)
	}
	// look also repeats a Reserve that comes before its time.
	a, err := look(ctx, n, query.QueryClient.Reserve, &query.ReserveRequest{Count: uint32(count)})
	switch {
	case err != nil:
		return 0, err
	case lockfsm.Code(a.Code) == lockfsm.Unsupported:
		return 0, fmt.Errorf("%w: IDs", ErrUnsupported)
	}
	return a.First, nil
}

func (n *Node) nonce() []byte {
	var nonce lockfsm.Nonce
	for nonce == (lockfsm.Nonce{}) {
		n.engine.Random(nonce[:])
	}
	return nonce[:]
}

// put can repeat q, because q has a nonce.
func (n *Node) put(ctx context.Context, q *query.PutRequest) (uint64, error) {
	key, data, revision := string(q.Key), q.Data, q.Revision
	switch wrong := badKey(key); {
	case wrong != nil:
		return 0, wrong
	case len(data) > lockfsm.MaxDataBytes:
		return 0, fmt.Errorf("%w: Put: the data has %d bytes, more than %d", ErrBadRequest, len(data),
			lockfsm.MaxDataBytes)
	// What no data and no hold has would be malformed, and the group would not answer.
	case q.Token != 0 && !queries.IsToken(q.Token):
		return 0, fmt.Errorf("%w: put %s: the group has no hold of %s with token %d", ErrLost, shownKey(key),
			shownKey(string(q.Lock)), q.Token)
	case revision > math.MaxInt64:
		return 0, fmt.Errorf("%w: %q is not at revision %d, which no data has", ErrConflict, key, revision)
	case len(q.Nonce) != len(lockfsm.Nonce{}) || lockfsm.Nonce(q.Nonce) == lockfsm.Nonce{}:
		return 0, fmt.Errorf("%w: Put: the nonce is missing", ErrBadRequest)
	}
	method := query.QueryClient.Put
	if q.Token != 0 {
		method = query.QueryClient.PutHeld
	}
	s, err := look(ctx, n, method, q)
	if err != nil {
		return 0, err
	}
	now := s.Revision
	switch code := lockfsm.Code(s.Code); {
	// the data was removed, perhaps by an earlier attempt of this call whose answer was lost
	case code == lockfsm.Done || code == lockfsm.Changed && now == 0 && len(data) == 0 && revision != 0:
		return now, nil
	case code == lockfsm.Changed:
		return 0, fmt.Errorf("%w: %q is at revision %d, not %d", ErrConflict, key, now, revision)
	case code == lockfsm.NotHeld:
		return 0, fmt.Errorf("%w: put %s: the group has no hold of %s with token %d", ErrLost, shownKey(key),
			shownKey(string(q.Lock)), q.Token)
	case code == lockfsm.Unsupported:
		return 0, fmt.Errorf("%w: put %s under a lock", ErrUnsupported, shownKey(key))
	case code == lockfsm.BadKey:
		return 0, fmt.Errorf("%w: %q", ErrBadKey, key)
	case code == lockfsm.OverGroupBudget:
		return 0, fmt.Errorf("Put %q: %w", key, client.BudgetErrorOf(code, s.Budget))
	}
	return 0, fmt.Errorf("%w: Put %q: too many keys have data, at most %d", ErrNoRoom, key, lockfsm.MaxData)
}
