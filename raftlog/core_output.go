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

// Output is what a Turn wants done, in the order of its fields. All of it but Save must have been done before the next call of
// any method of the Core, which uses the slices again.
type Output struct {
	// Events are carried out first, in order: a role is reported before anything is sent in it, and replies that they cause may
	// share a frame with Messages.
	Events []Event

	// TakeSnapshot asks for the encoded state after Events, to be handed in by Snapshotted.
	TakeSnapshot bool

	// Save must become durable as one unit, on whatever goroutine; then the owner calls Stored. There is at most one at a time:
	// the next one comes after Stored and holds all that has gathered. What may not leave before it is durable (votes,
	// acknowledgements) is kept back by the Core until Stored.
	Save *Batch

	// Messages may leave at once, before Save is durable: the leader's own disk works while its entries travel. They may be lost,
	// repeated and reordered.
	Messages []*raftpb.Message

	// Snapshots are messages that carry a snapshot, to be sent apart from the others. Each must be answered by SnapshotSent, also when
	// it was lost; until then its receiver gets nothing else.
	Snapshots []*raftpb.Message

	// Failed says that this replica must retire: ErrHung, or ErrBroken. Nothing else in this Output is to be done.
	Failed error
}

// Idle reports that there is nothing to do.
func (o *Output) Idle() bool {
	return len(o.Events) == 0 && !o.TakeSnapshot && o.Save == nil && len(o.Messages) == 0 && len(o.Snapshots) == 0 && o.Failed == nil
}
