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

// Event is one change of one key, as [Node.Watch] and [Node.Audit] report it.
type Event struct {
	// Position orders the events of a group and of the groups founded in its place. Pass it to Watch
	// to continue after this event. Position is 0 from an EventReset until the present state is
	// reported: a reader that has only a part of that state must start over.
	Position uint64

	// Kind is what has happened. EventReset and EventCurrent concern the watch itself and have no
	// key. It is empty if the leader runs a later build and reports a kind that this build does not
	// know: ignore the event, apart from its Position.
	Kind EventKind

	// Part is the key, and how the hold locks it after the event. A hold of several keys has an
	// event for each, at one moment. A hold with Tree has events of its own key, and none of the
	// nodes above, even if the request also names one of them, shared and without Tree. For EventData
	// only Key counts.
	Part
	Hold // without Since and Kept; Value and Labels only in EventHeld and EventUpgraded
	// At is the time of the event by the leader's wall clock, for display. In the state that
	// follows an EventReset, At is the beginning of a hold, and zero for other events.
	At time.Time

	Cause Outcome // set for EventFreed and EventLeft, but not in the state after an EventReset
	// After ForceUnlock, EndSession and TransferLead, By is the instance on which it was called, and
	// Reason is its argument. If Request.MaxHold, Request.MaxIdle, the agent or a later start of the
	// holder's node ended the hold, only Reason is set. If another session resumed the hold although
	// its session had not ended, By is the holder of that session.
	By, Reason string

	Data     []byte
	Revision uint64 // the revision of Data, for Put; zero if there is no data
}

// Watch reports every hold and every change of data of the keys that begin with prefix, in order,
// each exactly once. If after is 0, Watch reports an EventReset, the present state, an
// EventCurrent, and then changes. To continue an interrupted watch, pass the Position of the last
// event that you received, even if that is 0. If the leader no longer has the events after that
// Position, the watch begins with an EventReset. The leader keeps the last 8,192 events of all
// keys, and no events from before it restored a snapshot.
//
// Watch reports an EventCurrent each time it has caught up with the leader, and every few seconds
// while there is no change, but never between the EventFreed and the EventHeld of a lock that
// passes to the next holder. Waiters are not reported; see [Node.Peek]. Of a kept lock
// ([Node.LockSticky]), Watch reports when an instance gets it and gives it back, and not the grants
// to the callers there. Of the ends of these callers, Watch and [Node.Audit] report only those by
// Request.MaxHold, or because a client of an agent is gone, with the caller's token. Such an event
// is missing if the connection to the leader breaks at that moment, or if an instance has more than
// 256 of them at once.
//
// All callers of a node share one watch of the group, so any number of them costs the leader one.
// It has places for the watches of 4,096 instances and programs. Beyond that, and beyond 2,048
// with one derived secret, events are up to a second late, and a WARN names the limit.
//
// Watch waits for a leader without a time limit. An event may be stale when it is reported, so use
// tokens and not events to protect a resource. The watch ends when the caller leaves the loop. It
// also ends, with an error and a zero Event, when ctx ends or the node is closed, and with
// ErrBadRequest if the prefix is longer than a key.
func (n *Node) Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[Event, error] {
	return n.watchFor(ctx, nil, prefix, after)
}

func (n *Node) watchFor(ctx context.Context, from *query.Origin, prefix string, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := badPrefix(prefix); err != nil {
			yield(Event{}, err)
			return
		}
		ask := func(ctx context.Context, q *query.WatchRequest) (*query.EventList, error) {
			return look(ctx, n, query.QueryClient.Watch, q)
		}
		shared := n.watches.Open(queries.WatchedNode{Ask: ask, Spawn: n.engine.Background}, prefix)
		defer shared.Close()
		w := queries.Watch{
			Origin: from, Prefix: prefix,
			Tell: func(t queries.WatchItem) bool { return yield(toldEvent(t), nil) },
			Events: func(q *query.WatchRequest) (*query.EventList, error) {
				if from == nil {
					return shared.Events(ctx, q.After)
				}
				return ask(ctx, q)
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

func badPrefix(prefix string) error {
	if most := int(lockfsm.DefaultLimits().KeyBytes); len(prefix) > most {
		return fmt.Errorf("%w: Watch: the prefix has %d bytes, and a key at most %d", ErrBadRequest, len(prefix), most)
	}
	return nil
}

func toldEvent(t queries.WatchItem) Event {
	switch {
	case t.Reset:
		return Event{Kind: EventReset}
	case t.Current:
		return Event{Kind: EventCurrent, Position: t.Position}
	}
	e := eventOf(t.Event)
	e.Position = t.Position
	return e
}

func eventsOf(list *query.EventList) (all []Event) {
	for _, e := range list.GetEvents() {
		all = append(all, eventOf(e))
	}
	return all
}

func eventOf(e *query.Event) Event {
	told := Event{
		Position: e.Position, Part: partOf(e.Part), Hold: Hold{Token: Token(e.Token)},
		Kind: map[lockfsm.EventKind]EventKind{
			lockfsm.Began: EventHeld, lockfsm.Valued: EventHeld,
			lockfsm.Left: EventLeft, lockfsm.Ended: EventFreed, lockfsm.Wrote: EventData,
			lockfsm.Lowered: EventDowngraded, lockfsm.Upgraded: EventUpgraded, lockfsm.Moved: eventLead,
		}[lockfsm.EventKind(e.What)],
		Cause: map[lockfsm.Cause]Outcome{
			lockfsm.Released: OutcomeReleased, lockfsm.Expired: OutcomeExpired, lockfsm.Closed: OutcomeClosed,
			lockfsm.Evicted: OutcomeForced,
			lockfsm.Resumed: OutcomeResumed, lockfsm.Revoked: OutcomeForced, lockfsm.Superseded: OutcomeExpired,
		}[lockfsm.Cause(e.Cause)],
	}
	if e.At != 0 {
		told.At = time.UnixMilli(e.At)
	}
	if e.Session != 0 {
		told.Holder, told.Session = replica.HolderName(e.Record, lockfsm.SessionID(e.Session)), fmt.Sprint(e.Session)
	}
	if told.By, told.Reason = string(e.By), string(e.Reason); told.Cause == OutcomeResumed && len(e.By) > 0 {
		told.By = replica.HolderName(e.By, 0)
	}
	if told.Data = e.Data.GetValue(); len(told.Data) > 0 {
		told.Revision = e.Data.GetRevision()
	}
	told.Value, told.Labels = shown.Decode(e.Value)
	return told
}

// Audit returns the last 256 events in which a hold ended or lost its holder for one of these
// reasons: force, a session that was not renewed in time, a later start of the holder's node,
// Request.MaxHold, a client of an agent that is gone, or a Node.Resume while the session of the
// hold had not ended. The oldest event comes first. In a full log a further event replaces the
// oldest one of the derived secret under which the most events are, so that one secret cannot push
// out those of others. The events are replicated state: they survive a change of leader, but not
// the end of the group. To keep all of them, store the events that Watch reports.
//
// A call of Node.TransferLead is in the log, too. Its event has the Kind "lead" and no key, and its
// Reason begins with the names of the leader and of the next one. Watch does not report it.
func (n *Node) Audit(ctx context.Context) ([]Event, error) {
	s, err := look(ctx, n, query.QueryClient.Ends, &query.StateRequest{})
	return eventsOf(s), err
}

// EventKind is the kind of an [Event].
type EventKind string

// eventLead is the kind of a call of Node.TransferLead in the audit log.
const eventLead EventKind = "lead"

// The kinds of events. The first six happen to a key.
const (
	EventHeld  EventKind = "held"  // a hold began, with Token, by Holder; repeated if SetValue changed its Value
	EventLeft  EventKind = "left"  // the holder is gone or has detached the hold; LockDelay keeps the lock taken
	EventFreed EventKind = "freed" // a hold ended, for the reason in Cause
	// the hold with Token goes on, and excludes less: it now has Mode; see Lock.Downgrade
	EventDowngraded EventKind = "downgraded"
	// the exclusive hold of a Lock.Upgrade began, with Token; the upgradable hold goes on beside it
	EventUpgraded EventKind = "upgraded"
	EventData     EventKind = "data"  // the key's data is now Data, at Revision; empty Data means none
	EventReset    EventKind = "reset" // forget earlier events: the present state follows
	// the watch has reported everything up to Position; see Node.Watch
	EventCurrent EventKind = "current"
)
