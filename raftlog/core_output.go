package raftlog

import "go.etcd.io/raft/v3/raftpb"

// EventKind says what an Event is.
type EventKind uint8

// The kinds of events. Each is one call of the Applier.
const (
	RoleChanged EventKind = iota + 1 // Applier.Role(Role)
	Applied                          // Applier.Apply(Index, Term, Data)
	LeadBegins                       // Applier.Leads(Term)
	RoundDone                        // Applier.Confirmed(Term, Round)
	Restored                         // Applier.Restore(Index, Term, Data)
	Configured                       // Applier.Configured(*Config)
)

// Event is something that the state machine and those around it must hear of, in order.
type Event struct {
	Kind  EventKind
	Role  Role
	Index uint64
	Term  uint64
	Round uint64
	Data  []byte // shared with the log: must not be changed

	Config *Configuration // a pointer, since all other events would have to carry its room
}

// Take is what a snapshot is to become.
type Take struct {
	Index  uint64 // the last that is in the state now; Snapshotted names the snapshot by it
	Header []byte // what its bytes begin with; the encoded state follows
}

// Output is what a Turn wants done, in the order of its fields. All of it but Save and Prepare must
// have been done before the next call of any method of the Core, which uses the slices again; of a
// snapshot that means that it is begun.
type Output struct {
	// Events are carried out first, in order: a role is reported before anything is sent in it, and
	// replies that they cause may share a frame with Messages.
	Events []Event

	// Take asks for a snapshot; nil: for none. It is begun now, after Events, and handed in by
	// Snapshotted when it is complete, however many Turns later. A Restored event ends it: what is
	// handed in then is ignored. There is at most one at a time.
	Take *Take

	// Prepare is to be made durable by Store.Prepare, on whatever goroutine and beside the Saves;
	// then the owner calls Prepared. nil: nothing. There is at most one at a time.
	Prepare *raftpb.Snapshot

	// Save must become durable as one unit, on whatever goroutine; then the owner calls Stored.
	// There is at most one at a time: the next one comes after Stored and holds all that has
	// gathered. What may not leave before it is durable (votes, acknowledgements) is kept back by
	// the Core until Stored.
	Save *Batch

	// Messages may leave at once, before Save is durable: the leader's own disk works while its
	// entries travel. They may be lost, repeated and reordered.
	Messages []*raftpb.Message

	// Duplicates are those of Messages that should also travel on a second connection, which does
	// not wait for what the first one has lost (core_duplicate.go). They may be lost, repeated and
	// reordered.
	Duplicates []*raftpb.Message

	// Snapshots are messages that carry a snapshot, to be sent apart from the others. Each must be
	// answered by SnapshotSent, also when it was lost; until then its receiver gets nothing else.
	Snapshots []*raftpb.Message

	// Failed says that this replica must retire: ErrHung, or ErrBroken. Nothing else in this Output
	// is to be done.
	Failed error
}

// Idle reports that there is nothing to do.
func (o *Output) Idle() bool {
	return len(o.Events) == 0 && o.Take == nil && o.Prepare == nil && o.Save == nil && len(o.Messages) == 0 &&
		len(o.Snapshots) == 0 && o.Failed == nil
}
