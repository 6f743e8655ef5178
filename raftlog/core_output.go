package raftlog

import "go.etcd.io/raft/v3/raftpb"

// EventKind is the kind of an Event.
type EventKind uint8

// Each kind is one call of the Applier.
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
	Data  []byte // shared with the log: must not be changed

	Config *Configuration // a pointer, to keep the other events small
}

// Take asks for a snapshot of the present state.
type Take struct {
	Index  uint64 // of the last entry in the state; names the snapshot for Snapshotted
	Header []byte // beginning of the snapshot's bytes; the encoded state follows
}

// Output is the work of one Turn, to be done in the order of its fields. Everything but Save,
// Prepare and Take must be done before the next call of any method of the Core, which reuses the
// slices. A Take must have begun by then.
type Output struct {
	// Events are delivered first, so that a role is reported before any message is sent in this
	// role, and so that the Applier's replies can share a frame with Messages.
	Events []Event

	// Take asks for a snapshot. Nil means none. The owner begins it now, after Events. When the
	// snapshot is complete, any number of Turns later, the owner passes it to Snapshotted. A
	// Restored event ends it before that. There is at most one at a time.
	Take *Take

	// Prepare must be made durable by Store.Prepare, on any goroutine and concurrently with Saves;
	// then the owner calls Prepared. Nil means nothing. There is one at a time.
	Prepare *raftpb.Snapshot

	// Save must be made durable as one unit, on any goroutine. Then the owner calls Stored; there
	// is no other Save before that. Nil means that there is nothing to save. The Core keeps votes
	// and acknowledgements until Stored.
	Save *Batch

	// Messages may be sent before Save is durable, so that entries are sent while the leader writes
	// them to its disk. They may be lost, repeated and reordered.
	Messages []*raftpb.Message

	// Duplicates are the messages of Messages that should also be sent on a second connection
	// (core_duplicate.go). They may be lost, repeated and reordered.
	Duplicates []*raftpb.Message

	// Snapshots are messages that carry a snapshot. The owner must call SnapshotSent for each, even
	// if the message was lost. Until then nothing else is sent to its receiver.
	Snapshots []*raftpb.Message

	// Failed is set if this replica must retire: it is ErrHung, ErrBroken or ErrCorrupt. The rest of
	// this Output must then be ignored.
	Failed error
}

// Idle reports that there is nothing to do.
func (o *Output) Idle() bool {
	return len(o.Events) == 0 && o.Take == nil && o.Prepare == nil && o.Save == nil && len(o.Messages) == 0 &&
		len(o.Snapshots) == 0 && o.Failed == nil
}

// fail ends the replica. Only the first error is kept.
func (c *Core) fail(err error) {
	if c.out.Failed == nil {
		c.out.Failed = err
	}
}
