package mortise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

// This file is how the leader answers those who look at the locks: on the goroutine that owns the state, behind a round by which a majority has
// confirmed that it leads. So an answer is never older than its question. Questions and answers are JSON: they are for people, rare, and gain
// fields.

const (
	lookTime     = 2 * time.Second       // for one attempt
	lookPause    = 50 * time.Millisecond // before the next
	lookersMost  = 64                    // questions that the leader works on at a time; the others ask again
	listPage     = 100
	sessionsMost = 1000
	listBudget   = 1000 // locks or sessions looked at for a page: a fraction of a millisecond
	lookRound    = 1 << 63
)

// lookMark begins a question for this file; no question for the cluster room does.
const lookMark = "look"

type op string

const (
	opPeek    op = "peek"
	opList    op = "list"
	opCheck   op = "check"
	opEvict   op = "evict"
	opPut     op = "put"
	opGet     op = "get"
	opWalk    op = "walk"    // as list, with more of each queue, for a watch
	opHolders op = "holders" // those who hold a key, behind the place After
	opWatch   op = "watch"   // waits until something has happened, but not for long
	opEnds    op = "ends"
	opWho     op = "sessions"
	opNames   op = "names"   // how the replicas are called
	opMembers op = "members" // a page of the sessions, as the members that they stand for
)

// question is what somebody wants to see, or wants done.
type question struct {
	Op         op
	Key        string `json:",omitempty"` // or prefix
	Token      uint64 `json:",omitempty,string"`
	By, Reason string `json:",omitempty"`
	Next       lockfsm.Cursor

	After uint64        `json:",omitempty"` // of a Watch, the position that was seen; of a Put, the revision; of Holders, the place
	Nonce lockfsm.Nonce // of a Put
	Value []byte        `json:",omitempty"`

	From lockfsm.SessionCursor // of Sessions and Members: where the page begins

	Rights string    `json:",omitempty"` // text of the capability under which it is put; empty is that of a full instance
	Asker  nodeid.ID `json:",omitzero"`  // the instance ID of the program that has put it; zero is an instance that asks for itself
}

// sight is the answer.
type sight struct {
	Locks []lockfsm.LockInfo `json:",omitempty"`
	Left  map[lockfsm.SessionID]time.Duration
	Held  bool // of a Check; of an Evict, that it was and is not any more
	Next  lockfsm.Cursor
	More  bool
	Error string `json:",omitempty"`

	Denied *NotAllowedError `json:",omitempty"` // the right that was missing

	Sessions []lockfsm.SessionInfo `json:",omitempty"`
	From     lockfsm.SessionCursor // of Sessions and Members: where the next page begins
	Members  []listed              `json:",omitempty"`
	Total    int                   `json:",omitempty"` // of Members: how many there are
	Names    map[nodeid.ID]string  `json:",omitempty"` // of Members: of the instances that have a replica

	Data     *lockfsm.Data   `json:",omitempty"`
	Code     lockfsm.Code    // of a Put
	Budget   uint64          `json:",omitempty"` // that had no room for it
	Leader   uint64          // raft ID of who answers
	Position uint64          // up to which Events tell, or the present one
	Events   []lockfsm.Event `json:",omitempty"`
	Missed   bool            // what came behind the position of the question is not known any more
}

var (
	errNoLead = errors.New("mortise: this instance does not lead")
	errBusy   = errors.New("mortise: too many look at the locks at once")
)

// lookOnce asks whoever is believed to lead.
func (n *Node) lookOnce(ctx context.Context, q question) (sight, error) {
	if r := n.replica.Load(); r != nil && r.role.Load().Leading {
		return r.look(ctx, q)
	}
	leader := n.client.Status().Leader
	if leader.Addr == "" {
		return sight{}, errNoLead
	}
	body, err := json.Marshal(q)
	if err != nil {
		return sight{}, err
	}
	answer, _, err := n.port.Ask(ctx, leader.Addr, leader.Peer, append([]byte(lookMark), body...))
	if err != nil {
		return sight{}, err
	}
	var s sight
	if err := json.Unmarshal(answer, &s); err != nil {
		return sight{}, err
	}
	if s.Denied != nil {
		return sight{}, s.Denied
	}
	if s.Error != "" {
		return sight{}, errors.New(s.Error)
	}
	return s, nil
}

// answerLook answers a question of another instance, or of a member: what a member asks is under its own rights, whatever it says.
func (n *Node) answerLook(ctx context.Context, from transport.Identity, body []byte) ([]byte, error) {
	rights, ok := from.Peer.Allowed()
	if !ok || from.Peer.Tier == capability.Guest {
		return nil, errNoInstance
	}
	var q question
	s, err := sight{}, json.Unmarshal(bytes.TrimPrefix(body, []byte(lookMark)), &q)
	if r := n.replica.Load(); err == nil && r == nil {
		err = errNoLead
	} else if err == nil {
		q.under(rights, from.Instance)
		ctx, cancel := context.WithTimeout(ctx, q.time())
		defer cancel()
		s, err = r.look(ctx, q)
	}
	if err != nil {
		s = sight{Error: err.Error()}
		errors.As(err, &s.Denied)
	}
	return json.Marshal(s)
}

// lookers are the questions that a leader works on.
type lookers struct {
	mu      sync.Mutex         // never held across a wait
	last    uint64             // begins with the raft ID, so that no other leader gives the same numbers; below lookRound
	waiting map[uint64]*looker // by the number of its round, or of its command

	watching atomic.Int64 // how many are in watchers
	watchers []*looker    // who wait for something to happen; owned by the log's owner goroutine
}

type looker struct {
	question question
	watched  atomic.Uint64 // of a Watch that waits: the position up to which nothing has happened; 0: it does not wait yet
	left     atomic.Bool   // and it does not wait any more
	done     chan struct{} // closed when answer or err is set
	answer   sight
	err      error
}

func (l *lookers) add(q question) (uint64, *looker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := lookersMost
	if q.Op == opWatch { // after an event all who watch ask again at once
		most = watchersMost - int(l.watching.Load())
	}
	if len(l.waiting) >= most {
		return 0, nil, errBusy
	}
	if l.waiting == nil {
		l.waiting = map[uint64]*looker{}
	}
	l.last++
	one := &looker{question: q, done: make(chan struct{})}
	l.waiting[l.last] = one
	return l.last, one, nil
}

// take removes a question, so that one goroutine only answers it; nil: nobody waits for it any more.
func (l *lookers) take(id uint64) *looker {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.waiting[id]
	delete(l.waiting, id)
	return one
}

// drop ends all questions: what was asked of one lead is not answered by another.
func (l *lookers) drop() {
	l.mu.Lock()
	all := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, one := range all {
		one.err = errNoLead
		close(one.done)
	}
}

// time bounds one attempt to have a question answered. A watch waits, and is told that nothing has happened before this is over: a connection on which no answer
// comes in time is given up.
func (q *question) time() time.Duration {
	if q.Op == opWatch {
		return watchWait + lookTime
	}
	return lookTime
}

// command returns what a question is to the log, if it changes something.
func (q *question) command(id uint64) (c lockfsm.Command, changes bool) {
	c = lockfsm.Command{Number: lockfsm.Number(id), Key: q.Key}
	switch q.Op {
	case opEvict:
		c.Kind, c.Token, c.Record, c.Value = lockfsm.Evict, lockfsm.Token(q.Token), []byte(q.by()), []byte(q.Reason)
	case opPut:
		c.Kind, c.Revision, c.Nonce, c.Value = lockfsm.Put, lockfsm.Revision(q.After), q.Nonce, q.Value
	}
	return c, c.Kind != 0
}

// look answers a question if this replica leads.
func (r *ownReplica) look(ctx context.Context, q question) (sight, error) {
	// An honest instance has refused such a text before it asks.
	if q.Op == opEvict && (!plain.Is(q.By) || !plain.Is(q.Reason)) {
		return sight{}, fmt.Errorf("%w: By %q or the reason %q %s", ErrBadRequest, q.By, q.Reason, plain.NotText)
	}
	rights, err := q.rights()
	if err == nil {
		err = q.allowed(rights)
	}
	if err != nil {
		return sight{}, err
	}
	id, one, err := r.lookers.add(q)
	if err != nil {
		return sight{}, err
	}
	defer r.lookers.take(id)
	role := r.role.Load() // behind add: a change of it that comes now drops the question
	if !role.Leading {
		return sight{}, errNoLead
	}
	<-r.started
	if command, changes := q.command(id); !changes {
		r.log.Confirm(role.Term, lookRound|id)
	} else if !r.log.Propose(role.Term, command.Append(nil)) {
		return sight{}, errBusy
	}
	var idle <-chan time.Time
	if q.Op == opWatch {
		timer := time.NewTimer(watchWait)
		defer timer.Stop()
		idle = timer.C
	}
	select {
	case <-one.done:
	case <-idle:
		return r.idle(one)
	case <-ctx.Done():
		one.left.Store(true)
		return sight{}, ctx.Err()
	case <-r.ctx.Done():
		return sight{}, errNoLead
	}
	if one.err == nil && (q.Op == opMembers || q.Op == opNames) {
		r.asMembers(&one.answer, q.From == lockfsm.SessionCursor{})
	} else if one.err == nil {
		one.answer.Left = r.left(ctx, &one.answer)
		one.answer.confine(rights)
	}
	return one.answer, one.err
}

// see answers the question of a round that is done, on the log's owner goroutine.
func (r *ownReplica) see(id uint64) {
	one := r.lookers.take(id)
	if one == nil {
		return
	}
	switch q, s := one.question, &one.answer; q.Op {
	case opPeek:
		if l, ok := r.core.Machine().Inspect(q.Key, peekQueue); ok {
			s.Locks = append(s.Locks, l)
		}
	case opList:
		s.Locks, s.Next, s.More = r.core.Machine().Walk(q.Next, q.Key, listPage, listQueue, listBudget)
	case opCheck:
		s.Held = r.core.Machine().Holds(q.Key, lockfsm.Token(q.Token))
	case opGet:
		if l, ok := r.core.Machine().Inspect(q.Key, 0); ok {
			s.Data = &l.Data
		}
	case opWho, opMembers:
		s.Sessions, s.From, s.More = r.core.Machine().WalkSessions(q.From, listPage, listBudget)
	case opNames:
	case opEnds:
		s.Events = r.core.Machine().Ends()
	case opWalk:
		s.Locks, s.Next, s.More = r.core.Machine().Walk(q.Next, q.Key, listPage, peekQueue, listBudget)
		s.Leader, s.Position = r.id, r.core.Machine().Position()
	case opHolders:
		if l, ok := r.core.Machine().Holders(q.Key, lockfsm.Revision(q.After), peekQueue); ok {
			s.Locks = append(s.Locks, l)
		}
		s.Leader, s.Position = r.id, r.core.Machine().Position()
	case opWatch:
		if !r.tell(one) {
			r.watch(one)
			return
		}
	default:
		one.err = fmt.Errorf("mortise: no such question: %q", q.Op)
	}
	close(one.done)
}

// changed says what an Evict or a Put has done, to whoever has asked for it, and in the log. One that was proposed in an earlier term finds nobody.
func (r *ownReplica) changed(result *lockfsm.Result) {
	if e := result.Evicted; e != nil {
		r.node.logger.Warn("a lock was ended by force", "key", e.Key, "token", uint64(e.Token), "holder", replica.HolderName(e.Record, e.Session), "by", string(e.By),
			"reason", string(e.Reason))
	}
	one := r.lookers.take(uint64(result.Number))
	if one == nil {
		return
	}
	one.answer.Data, one.answer.Code, one.answer.Budget = result.Data, result.Code, result.Budget
	switch result.Code {
	case lockfsm.Changed, lockfsm.TooMuchData, lockfsm.BadKey, lockfsm.OverGroupBudget:
	case lockfsm.Done, lockfsm.Finished:
		one.answer.Held = result.Code == lockfsm.Done
	default:
		one.err = fmt.Errorf("mortise: the group does not carry it out: %v", result.Code)
	}
	close(one.done)
}

// left asks the keeper how much time the sessions of an answer have.
func (r *ownReplica) left(ctx context.Context, s *sight) map[lockfsm.SessionID]time.Duration {
	var sessions []lockfsm.SessionID
	for _, each := range s.Sessions {
		sessions = append(sessions, each.ID)
	}
	for _, l := range s.Locks {
		for _, s := range l.Queue {
			sessions = append(sessions, s.Session)
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	slices.Sort(sessions)
	sessions = slices.Compact(sessions)
	left := map[lockfsm.SessionID]time.Duration{}
	for i, d := range r.keeper.Left(ctx, sessions) {
		left[sessions[i]] = d
	}
	return left
}

// info is what people are told of a lock.
func (s *sight) info(l lockfsm.LockInfo) KeyInfo {
	info := KeyInfo{Key: l.Key, Held: l.Held, Waiting: l.Waiting, Data: bytes.Clone(l.Data.Value), Revision: uint64(l.Data.Revision)}
	for i, e := range l.Queue {
		st := Standing{
			Holder: replica.HolderName(e.Record, e.Session), Session: fmt.Sprint(uint64(e.Session)), Token: Token(e.Token),
			Left: s.Left[e.Session], Keys: e.Keys, WaitsFor: -1, Shared: e.Permits == 1 && e.Of == 0, Expired: e.Gone,
		}
		st.Value, st.Labels = showed(e.Value)
		if e.Of != 0 {
			st.Permits, st.Of = int(e.Permits), int(e.Of)
		}
		if e.Token != 0 {
			st.Since = time.UnixMilli(e.SinceUnixMS)
		} else if i > 0 && l.Queue[i-1].Place == e.Watch {
			st.WaitsFor = i - 1
		}
		info.Queue = append(info.Queue, st)
	}
	return info
}
