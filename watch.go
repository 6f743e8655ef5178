package mortise

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Event is one thing that happened to one key, as [Node.Watch] and [Node.Audit] tell it. It is a value of its own.
type Event struct {
	// Position orders the events of a group, and of a later group that is founded in its place. It is what Watch goes on from. It is 0 from an EventReset until
	// all that there is has been told: who has heard only a part of that begins anew.
	Position uint64

	// What has happened to Key, or, for EventReset and EventCurrent, to the watch itself, without a key.
	What EventKind

	Key     string
	Token   Token
	Holder  string    // Name of the instance
	Session string    // ID of its session
	At      time.Time // by the leader's wall clock, for people; of a hold that was there at a reset: when it began; zero for the other things told then

	Value  string            // of a hold that began, as its Request shows it
	Labels map[string]string // the same

	Cause      Cause  // of EventFreed and of EventLeft; not set for what had been left before a reset
	By, Reason string // of a forced end: the instance on which it was called, and what was said there; of Request.MaxHold and Lock.Lapse the Reason alone

	Data     []byte
	Revision uint64 // of Data, as Put wants it; 0: there is none
}

// Watch tells what happens to the keys that begin with prefix: every hold and every change of data, in order, none left out and none told twice. after 0
// begins with an EventReset and what there is now, then comes EventCurrent, then what happens. A watch that broke off goes on with the Position of the last
// event that was seen, also if that is 0: if what came behind it is not known any more (the leader keeps the last 8,192 events of all keys, and none from before it restored
// a snapshot) it begins with an EventReset too. So nothing is ever missing without a word. EventCurrent comes whenever all that has happened is told, and again every few
// seconds in which nothing happens: of a lock that goes from one holder to the next, EventFreed and EventHeld come before it.
//
// It asks the leader, whoever that is, and waits for one without end: what was told may be old when it is told, and nothing may be decided by it that a
// token should decide. Those who wait in queues are not told; see [Node.Peek]. It ends when the loop over it does, or, with an error and a zero Event, when
// ctx ends or the node is closed.
func (n *Node) Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[Event, error] {
	return n.watchFor(ctx, nil, prefix, after)
}

func (n *Node) watchFor(ctx context.Context, from *query.Origin, prefix string, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := watch{node: n, ctx: ctx, prefix: prefix, after: after, yield: yield, origin: from}
		w.run()
	}
}

// watch is one loop over Watch.
type watch struct {
	node   *Node
	ctx    context.Context
	prefix string
	after  uint64
	yield  func(Event, error) bool
	origin *query.Origin // nil is this node
}

// since asks the leader what has happened after a position.
func (w *watch) since(after uint64) (*query.EventList, error) {
	return look(w.ctx, w.node, query.QueryClient.Watch, &query.WatchRequest{Origin: w.origin, Prefix: []byte(w.prefix), After: after})
}

func (w *watch) run() {
	missed := w.after == 0
	for {
		if missed && !w.begin() {
			return
		}
		s, err := w.since(w.after)
		if err != nil {
			w.yield(Event{}, err)
			return
		}
		if missed = s.Missed; missed {
			continue
		}
		for _, e := range s.Events {
			if !w.yield(eventOf(e), nil) {
				return
			}
		}
		if w.after = s.Position; !s.More && !w.yield(Event{What: EventCurrent, Position: w.after}, nil) {
			return
		}
	}
}

// begin tells what there is now. That is read page by page while things happen: behind each page comes what has happened meanwhile, as far as it goes on from
// what was told. It reports whether to go on.
func (w *watch) begin() bool {
	for {
		told, whole, goOn := w.read()
		if !goOn {
			return false
		}
		if whole { // and not by two leaders, whose lists have different orders, or so slowly that the leader has forgotten what happened
			w.after = told.from
			return told.more || w.yield(Event{What: EventCurrent, Position: w.after}, nil)
		}
	}
}

// read tells what there is, from a reset on.
func (w *watch) read() (told told, whole, goOn bool) {
	told.held, told.left, told.data = map[holdID]bool{}, map[holdID]bool{}, map[string]uint64{}
	if !w.yield(Event{What: EventReset}, nil) {
		return told, false, false
	}
	q := &query.ListRequest{Origin: w.origin, Prefix: []byte(w.prefix)}
	for more := true; more; {
		s, err := look(w.ctx, w.node, query.QueryClient.Walk, q)
		whole, goOn := w.page(s, err, &told)
		if !whole || !goOn {
			return told, whole, goOn
		}
		for _, l := range s.Locks {
			if whole, goOn := w.tellLock(l, &told); !whole || !goOn {
				return told, whole, goOn
			}
		}
		if whole, goOn := w.catchUp(&told); !whole || !goOn {
			return told, whole, goOn
		}
		more, q.Next = s.More, s.Next
	}
	return told, true, true
}

// catchUp tells what has happened from where the reading is to where the last page was read.
func (w *watch) catchUp(told *told) (whole, goOn bool) {
	told.more = false
	for told.from < told.upTo {
		s, err := w.since(told.from)
		if err != nil {
			w.yield(Event{}, err)
			return false, false
		}
		if s.Missed {
			return false, true
		}
		for _, each := range s.Events {
			e := eventOf(each)
			e.Position = 0
			if told.goesOn(each) && !w.yield(e, nil) {
				return false, false
			}
		}
		told.from, told.more = s.Position, s.More
	}
	return true, true
}

// page takes a part of what there is, and reports whether the same leader answers as before, and whether to go on.
func (w *watch) page(s *query.LockList, err error, told *told) (whole, goOn bool) {
	if err != nil {
		w.yield(Event{}, err)
		return false, false
	}
	if told.leader == 0 {
		told.leader, told.from = s.Leader, s.Position
	}
	told.upTo = s.Position
	return s.Leader == told.leader, true
}

// tellLock tells what there is of one key. Of one that very many share the page has not all.
func (w *watch) tellLock(l *query.Lock, told *told) (whole, goOn bool) {
	key := string(l.Key)
	if revision := l.Data.GetRevision(); revision > told.data[key] {
		told.data[key] = revision
		if !w.yield(Event{What: EventData, Key: key, Data: l.Data.GetValue(), Revision: revision}, nil) {
			return false, false
		}
	}
	for l.Held > 0 && len(l.Queue) > 0 {
		for _, st := range keyInfo(l).Queue {
			if st.Token != 0 && !w.tellHold(key, &st, told) {
				return false, false
			}
		}
		if int(l.Held) <= len(l.Queue) {
			break
		}
		behind := l.Queue[len(l.Queue)-1].Place
		more, err := look(w.ctx, w.node, query.QueryClient.Holders, &query.HoldersRequest{Origin: w.origin, Key: l.Key, After: behind})
		whole, goOn := w.page(more, err, told)
		if !whole || !goOn {
			return whole, goOn
		}
		if len(more.Locks) == 0 {
			break
		}
		l = more.Locks[0]
	}
	return true, true
}

// tellHold tells a hold, unless that has been told as it began.
func (w *watch) tellHold(key string, st *Standing, told *told) bool {
	hold := holdID{key, lockfsm.Token(st.Token)}
	e := Event{What: EventHeld, Key: key, Token: st.Token, Holder: st.Holder, Session: st.Session, At: st.Since, Value: st.Value, Labels: st.Labels}
	if !told.held[hold] && !w.yield(e, nil) {
		return false
	}
	told.held[hold] = true
	if !st.Expired || told.left[hold] {
		return true
	}
	told.left[hold] = true
	return w.yield(Event{What: EventLeft, Key: key, Token: st.Token, Holder: st.Holder, Session: st.Session}, nil)
}

// told is what a reading has told, by one leader.
type told struct {
	leader     uint64
	from, upTo uint64 // it is at from, and the last page was read at upTo
	more       bool   // has happened behind from
	held, left map[holdID]bool
	data       map[string]uint64
}

type holdID struct {
	key   string
	token lockfsm.Token
}

// goesOn reports whether an event that lies within the time of the reading is news to whoever was told what was read.
func (t *told) goesOn(e *query.Event) bool {
	key := string(e.Key)
	hold := holdID{key, lockfsm.Token(e.Token)}
	switch lockfsm.Happening(e.What) {
	case lockfsm.Began:
		known := t.held[hold]
		t.held[hold] = true
		return !known
	case lockfsm.Ended:
		known := t.held[hold]
		delete(t.held, hold)
		delete(t.left, hold)
		return known
	case lockfsm.Left:
		news := t.held[hold] && !t.left[hold]
		t.left[hold] = t.left[hold] || news
		return news
	case lockfsm.Wrote:
		known, any := t.data[key]
		if e.Data.GetRevision() <= known || len(e.Data.GetValue()) == 0 && !any {
			return false
		}
		t.data[key] = e.Data.GetRevision()
		return true
	}
	return false
}

// eventsOf are the events of an answer.
func eventsOf(list *query.EventList) (all []Event) {
	for _, e := range list.GetEvents() {
		all = append(all, eventOf(e))
	}
	return all
}

// eventOf is an event of the state machine as people are told of it.
func eventOf(e *query.Event) Event {
	told := Event{
		Position: e.Position, Key: string(e.Key), Token: Token(e.Token), At: time.UnixMilli(e.At),
		What: map[lockfsm.Happening]EventKind{
			lockfsm.Began: EventHeld, lockfsm.Left: EventLeft, lockfsm.Ended: EventFreed, lockfsm.Wrote: EventData,
		}[lockfsm.Happening(e.What)],
		Cause: map[lockfsm.Cause]Cause{
			lockfsm.Released: CauseReleased, lockfsm.Expired: CauseExpired, lockfsm.Closed: CauseClosed, lockfsm.Evicted: CauseForced,
			lockfsm.TakenUp: CauseResumed,
		}[lockfsm.Cause(e.Cause)],
	}
	if e.Session != 0 {
		told.Holder, told.Session = replica.HolderName(e.Record, lockfsm.SessionID(e.Session)), fmt.Sprint(e.Session)
	}
	told.By, told.Reason = string(e.By), string(e.Reason)
	if told.Data = e.Data.GetValue(); len(told.Data) > 0 {
		told.Revision = e.Data.GetRevision()
	}
	told.Value, told.Labels = shown.Decode(e.Value)
	return told
}

// Audit returns the last 256 events, the oldest first, that tell the end of a hold, or the loss of its holder, by force, because a session was not
// renewed in time, or because the hold ended by Request.MaxHold or by Lock.Lapse. They are part of the replicated state, and outlive leaders, but not the group; whoever must have all of them keeps what
// Watch tells.
func (n *Node) Audit(ctx context.Context) ([]Event, error) {
	s, err := look(ctx, n, query.QueryClient.Ends, &query.StateRequest{})
	return eventsOf(s), err
}

// EventKind says what an [Event] is.
type EventKind string

// The kinds of events. The first four happen to a key.
const (
	EventHeld    EventKind = "held"    // a hold began, with Token, by Holder
	EventLeft    EventKind = "left"    // the holder is gone or has detached it, by Cause; it stays for its LockDelay
	EventFreed   EventKind = "freed"   // a hold ended, by Cause
	EventData    EventKind = "data"    // the data of the key is now Data, at Revision, or none if that is empty
	EventReset   EventKind = "reset"   // forget what was reported before: what follows is what there is now
	EventCurrent EventKind = "current" // everything up to Position is reported: what happens in one moment comes before the same one
)

// Cause says why a hold ended, or why its holder is gone.
type Cause string

// The causes.
const (
	CauseReleased Cause = "released" // by Unlock
	CauseExpired  Cause = "expired"  // its session, its LockDelay or its MaxHold ran out, or it lapsed
	CauseClosed   Cause = "closed"   // with its session, when its instance left
	CauseForced   Cause = "forced"   // by ForceUnlock
	CauseResumed  Cause = "resumed"  // it goes on in another session, by Request.Resume
)
