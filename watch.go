package mortise

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
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
	return n.watchFor(ctx, asker{}, prefix, after)
}

func (n *Node) watchFor(ctx context.Context, from asker, prefix string, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := watch{node: n, ctx: ctx, prefix: prefix, after: after, yield: yield, asker: from}
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
	asker  asker // the zero one is this node
}

// look puts a question to the leader for the program that watches.
func (w *watch) look(q replica.Question) (sight, error) { return w.node.lookFor(w.ctx, w.asker, q) }

func (w *watch) run() {
	missed := w.after == 0
	for {
		if missed && !w.begin() {
			return
		}
		s, err := w.look(replica.Question{Op: replica.OpWatch, Key: w.prefix, After: w.after})
		if err != nil {
			w.yield(Event{}, err)
			return
		}
		if missed = s.Missed; missed {
			continue
		}
		for i := range s.Events {
			if !w.yield(eventOf(&s.Events[i]), nil) {
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
	q := replica.Question{Op: replica.OpWalk, Key: w.prefix}
	for more := true; more; {
		s, whole, goOn := w.page(q, &told)
		if !whole || !goOn {
			return told, whole, goOn
		}
		for _, l := range s.Locks {
			if whole, goOn := w.tellLock(&s, l, &told); !whole || !goOn {
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
		s, err := w.look(replica.Question{Op: replica.OpWatch, Key: w.prefix, After: told.from})
		if err != nil {
			w.yield(Event{}, err)
			return false, false
		}
		if s.Missed {
			return false, true
		}
		for i := range s.Events {
			e := eventOf(&s.Events[i])
			e.Position = 0
			if told.goesOn(&s.Events[i]) && !w.yield(e, nil) {
				return false, false
			}
		}
		told.from, told.more = s.Position, s.More
	}
	return true, true
}

// page asks for a part of what there is, and reports whether the same leader answers as before, and whether to go on.
func (w *watch) page(q replica.Question, told *told) (s sight, whole, goOn bool) {
	s, err := w.look(q)
	if err != nil {
		w.yield(Event{}, err)
		return s, false, false
	}
	if told.leader == 0 {
		told.leader, told.from = s.Leader, s.Position
	}
	told.upTo = s.Position
	return s, s.Leader == told.leader, true
}

// tellLock tells what there is of one key. Of one that very many share the page has not all.
func (w *watch) tellLock(s *sight, l lockfsm.LockInfo, told *told) (whole, goOn bool) {
	if uint64(l.Data.Revision) > told.data[l.Key] {
		told.data[l.Key] = uint64(l.Data.Revision)
		if !w.yield(Event{What: EventData, Key: l.Key, Data: bytes.Clone(l.Data.Value), Revision: uint64(l.Data.Revision)}, nil) {
			return false, false
		}
	}
	for l.Held > 0 && len(l.Queue) > 0 {
		for _, st := range s.info(l).Queue {
			if st.Token != 0 && !w.tellHold(l.Key, &st, told) {
				return false, false
			}
		}
		if l.Held <= len(l.Queue) {
			break
		}
		behind := l.Queue[len(l.Queue)-1].Place
		more, whole, goOn := w.page(replica.Question{Op: replica.OpHolders, Key: l.Key, After: uint64(behind)}, told)
		if !whole || !goOn {
			return whole, goOn
		}
		if len(more.Locks) == 0 {
			break
		}
		s, l = &more, more.Locks[0]
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
func (t *told) goesOn(e *lockfsm.Event) bool {
	hold := holdID{e.Key, e.Token}
	switch e.What {
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
		d := e.How.Data
		known, any := t.data[e.Key]
		if uint64(d.Revision) <= known || len(d.Value) == 0 && !any {
			return false
		}
		t.data[e.Key] = uint64(d.Revision)
		return true
	}
	return false
}

// eventOf is an event of the state machine as people are told of it.
func eventOf(e *lockfsm.Event) Event {
	told := Event{
		Position: e.Position, Key: e.Key, Token: Token(e.Token), At: time.UnixMilli(e.WallUnixMS),
		What: map[lockfsm.Happening]EventKind{
			lockfsm.Began: EventHeld, lockfsm.Left: EventLeft, lockfsm.Ended: EventFreed, lockfsm.Wrote: EventData,
		}[e.What],
		Cause: map[lockfsm.Cause]Cause{
			lockfsm.Released: CauseReleased, lockfsm.Expired: CauseExpired, lockfsm.Closed: CauseClosed, lockfsm.Evicted: CauseForced,
			lockfsm.TakenUp: CauseResumed,
		}[e.Cause],
	}
	if e.Session != 0 {
		told.Holder, told.Session = replica.HolderName(e.Record, e.Session), fmt.Sprint(uint64(e.Session))
	}
	if e.How != nil {
		told.By, told.Reason = string(e.How.By), string(e.How.Reason)
		if told.Data = bytes.Clone(e.How.Data.Value); len(told.Data) > 0 {
			told.Revision = uint64(e.How.Data.Revision)
		}
		told.Value, told.Labels = showed(e.How.Value)
	}
	return told
}

// Audit returns the last 256 events, the oldest first, that tell the end of a hold, or the loss of its holder, by force, because a session was not
// renewed in time, or because the hold ended by Request.MaxHold or by Lock.Lapse. They are part of the replicated state, and outlive leaders, but not the group; whoever must have all of them keeps what
// Watch tells.
func (n *Node) Audit(ctx context.Context) ([]Event, error) { return n.auditFor(ctx, asker{}) }

func (n *Node) auditFor(ctx context.Context, from asker) ([]Event, error) {
	s, err := n.lookFor(ctx, from, replica.Question{Op: replica.OpEnds})
	var all []Event
	for i := range s.Events {
		all = append(all, eventOf(&s.Events[i]))
	}
	return all, err
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
