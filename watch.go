package mortise

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Event is one thing that happened to one key, as [Node.Watch] and [Node.Audit] tell it. It is a
// value of its own.
type Event struct {
	// Position orders the events of a group, and of a later group that is founded in its place. It
	// is what Watch goes on from. It is 0 from an EventReset until all that there is has been told:
	// who has heard only a part of that begins anew.
	Position uint64

	// What has happened to Key, or, for EventReset and EventCurrent, to the watch itself, without a
	// key.
	What EventKind

	Key     string
	Token   Token
	Holder  string // Name of the instance
	Session string // ID of its session
	// by the leader's wall clock, for people; of a hold that was there at a reset: when it began;
	// zero for the other things told then
	At time.Time

	Value  string            // of a hold that began, as its Request shows it
	Labels map[string]string // the same

	Cause Cause // of EventFreed and of EventLeft; not set for what had been left before a reset
	// of a forced end: the instance on which it was called, and what was said there; of
	// Request.MaxHold and Lock.Lapse the Reason alone
	By, Reason string

	Data     []byte
	Revision uint64 // of Data, as Put wants it; 0: there is none
}

// Watch tells what happens to the keys that begin with prefix: every hold and every change of data,
// in order, none left out and none told twice. after 0 begins with an EventReset and what there is
// now, then comes EventCurrent, then what happens. A watch that broke off goes on with the Position
// of the last event that was seen, also if that is 0: if what came behind it is not known any more
// (the leader keeps the last 8,192 events of all keys, and none from before it restored a snapshot)
// it begins with an EventReset too. So nothing is ever missing without a word. EventCurrent comes
// whenever all that has happened is told, and again every few seconds in which nothing happens: of
// a lock that goes from one holder to the next, EventFreed and EventHeld come before it.
//
// It asks the leader, whoever that is, and waits for one without end: what was told may be old when
// it is told, and nothing may be decided by it that a token should decide. Those who wait in queues
// are not told; see [Node.Peek]. It ends when the loop over it does, or, with an error and a zero
// Event, when ctx ends or the node is closed.
func (n *Node) Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[Event, error] {
	return n.watchFor(ctx, nil, prefix, after)
}

func (n *Node) watchFor(ctx context.Context, from *query.Origin, prefix string, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := queries.Watch{
			Origin: from, Prefix: prefix,
			Tell: func(t queries.Told) bool { return yield(toldEvent(t), nil) },
			Events: func(q *query.WatchRequest) (*query.EventList, error) {
				return look(ctx, n, query.QueryClient.Watch, q)
			},
			Walk: func(q *query.ListRequest) (*query.LockList, error) {
				return look(ctx, n, query.QueryClient.Walk, q)
			},
			Holders: func(q *query.HoldersRequest) (*query.LockList, error) {
				return look(ctx, n, query.QueryClient.Holders, q)
			},
		}
		if err := w.Run(after); err != nil {
			yield(Event{}, err)
		}
	}
}

// toldEvent is what a watch tells, as people are told of it.
func toldEvent(t queries.Told) Event {
	switch {
	case t.Reset:
		return Event{What: EventReset}
	case t.Current:
		return Event{What: EventCurrent, Position: t.Position}
	}
	e := eventOf(t.Event)
	e.Position = t.Position
	return e
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
		Position: e.Position, Key: string(e.Key), Token: Token(e.Token),
		What: map[lockfsm.Happening]EventKind{
			lockfsm.Began: EventHeld, lockfsm.Left: EventLeft, lockfsm.Ended: EventFreed, lockfsm.Wrote: EventData,
		}[lockfsm.Happening(e.What)],
		Cause: map[lockfsm.Cause]Cause{
			lockfsm.Released: CauseReleased, lockfsm.Expired: CauseExpired, lockfsm.Closed: CauseClosed,
			lockfsm.Evicted: CauseForced,
			lockfsm.TakenUp: CauseResumed,
		}[lockfsm.Cause(e.Cause)],
	}
	if e.At != 0 {
		told.At = time.UnixMilli(e.At)
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

// Audit returns the last 256 events, the oldest first, that tell the end of a hold, or the loss of
// its holder, by force, because a session was not renewed in time, or because the hold ended by
// Request.MaxHold or by Lock.Lapse. They are part of the replicated state, and outlive leaders, but
// not the group; whoever must have all of them keeps what Watch tells.
func (n *Node) Audit(ctx context.Context) ([]Event, error) {
	s, err := look(ctx, n, query.QueryClient.Ends, &query.StateRequest{})
	return eventsOf(s), err
}

// EventKind says what an [Event] is.
type EventKind string

// The kinds of events. The first four happen to a key.
const (
	EventHeld  EventKind = "held"  // a hold began, with Token, by Holder
	EventLeft  EventKind = "left"  // the holder is gone or has detached it, by Cause; it stays for its LockDelay
	EventFreed EventKind = "freed" // a hold ended, by Cause
	EventData  EventKind = "data"  // the data of the key is now Data, at Revision, or none if that is empty
	EventReset EventKind = "reset" // forget what was reported before: what follows is what there is now
	// everything up to Position is reported: what happens in one moment comes before the same one
	EventCurrent EventKind = "current"
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
