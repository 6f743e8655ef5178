package raftlog

import "go.etcd.io/raft/v3/raftpb"

// EventKind is the kind of an Event.
type EventKind uint8

// Each kind of Event stands for a call of one method of the Applier.
const (
	RoleChanged EventKind = iota + 1 // Applier.Role(Role)
	Applied                          // Applier.Apply(Index, Term, Data)
	LeadBegins                       // Applier.Leads(Term)
	RoundDone                        // Applier.Confirmed(Term, Round)
	Restored                         // Applier.Restore(Index, Term, Data)
	Configured                       // Applier.Configured(*Config)
)

// Event is one call of the Applier. Events must be delivered in order.
type Event struct {
	Kind  EventKind
	Role  Role
	Index uint64
	Term  uint64
	Round uint64
	Data  []byte // shared with the log; must not be changed

	Config *Configuration // a pointer, to keep the other events small
}

// Take requests a snapshot of the present state.
type Take struct {
	Index  uint64 // index of the last entry in the state; the argument of Snapshotted
	Header []byte // first bytes of the snapshot, to which the encoded state must be appended
}

// Output is the work of one Turn, to be done in the order of its fields. All of it must be done
// before the next call of a method of the Core, because the Core reuses the slices. Only the work
// of Save, Prepare and Take may end later, but a Take must begin before that call.
type Output struct {
	// Events come first, so that Applier.Role is called before any message of the new role is sent.
	Events []Event

	// Take requests a snapshot. Nil means none. The owner must begin the snapshot after Events.
	// When the snapshot is complete, any number of Turns later, the owner calls Snapshotted. A
	// Restored event abandons the snapshot. There is at most one Take at a time.
	Take *Take

	// Prepare is a snapshot that Store.Prepare must make durable, on any goroutine and concurrently
	// with Saves. When it is durable, the owner calls Prepared. Nil means none. There is at most
	// one Prepare at a time.
	Prepare *raftpb.Snapshot

	// Save is a batch that must be made durable as one unit, on any goroutine. When it is durable,
	// the owner calls Stored. Nil means none. Until that call there is no other Save, and the Core
	// holds back the votes and acknowledgements that depend on the batch.
	Save *Batch

	// Messages may be sent before Save is durable. They may be lost, repeated and reordered.
	Messages []*raftpb.Message

	// Duplicates are those Messages that should also be sent on a second connection
	// (core_duplicate.go).
	Duplicates []*raftpb.Message

	// Snapshots are messages that carry a snapshot. The owner must call SnapshotSent for each, even
	// if the message was lost. Until that call nothing else is sent to the receiver.
	Snapshots []*raftpb.Message

	// Failed is not nil if this replica must retire. It wraps ErrHung, ErrBroken or ErrCorrupt. The
	// other fields must then be ignored.
	Failed error
}

// maxRecycle is the largest capacity of a slice whose memory is reused.
const maxRecycle = 256

// Idle reports that there is nothing to do.
func (o *Output) Idle() bool {
	return len(o.Events) == 0 && o.Take == nil && o.Prepare == nil && o.Save == nil && len(o.Messages) == 0 &&
		len(o.Snapshots) == 0 && o.Failed == nil
}

// outputs are the next Output, which is being collected, and the last one, whose memory is reused.
type outputs struct{ next, last Output }

// fail makes the next Output retire the replica. Only the first error is kept.
func (o *outputs) fail(err error) {
	if o.next.Failed == nil {
		o.next.Failed = err
	}
}

func (o *outputs) event(e Event) { o.next.Events = append(o.next.Events, e) }

// handOut returns the next Output, and begins another one.
func (o *outputs) handOut() Output {
	out := o.next
	o.next = Output{
		Failed: out.Failed, Events: o.last.Events, Messages: o.last.Messages, Duplicates: o.last.Duplicates,
	}
	o.last = out
	return out
}

// recycle is called when the last Output is carried out.
func (o *outputs) recycle() {
	clear(o.last.Events)
	clear(o.last.Messages)
	clear(o.last.Duplicates)
	events, messages := o.last.Events[:0], o.last.Messages[:0]
	if cap(events) > maxRecycle {
		events = nil
	}
	if cap(messages) > maxRecycle {
		messages = nil
	}
	duplicates := o.last.Duplicates[:0] // few, see maxDuplicatesPerTick
	o.last = Output{Events: events, Messages: messages, Duplicates: duplicates}
}
