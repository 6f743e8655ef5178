package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// Kind is the kind of a Step.
type Kind uint8

// The kinds of steps.
const (
	None    Kind = iota // no step now
	Prepare             // ask Instance to start an empty replica with ID; nothing is proposed
	// propose to add ID as a learner; the entry contains ID, Instance and the instance's address
	AddLearner
	Change   // propose one joint change with AutoLeave: Promote, Demote, Remove
	Transfer // transfer the leadership to ID
)

func (k Kind) String() string {
	names := [...]string{None: "none", Prepare: "prepare", AddLearner: "add learner", Change: "change",
		Transfer: "transfer"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Step is the next action. The caller carries it out once. It calls Reconcile again when the View
// has changed, and when the time Next has passed.
type Step struct {
	// Kind determines which of the other fields are set.
	Kind Kind
	// ID is the replica that Prepare, AddLearner or Transfer concerns.
	ID nodeid.ReplicaID
	// Instance is the instance that runs or will run the replica ID.
	Instance nodeid.ID
	// Promote lists learners that become voters, by ID.
	Promote []nodeid.ReplicaID
	// Demote lists voters that become learners and keep their data, by ID.
	Demote []nodeid.ReplicaID
	// Remove lists voters and learners that leave the configuration for good, by ID.
	Remove []nodeid.ReplicaID
	// Why explains the step in a sentence for Status and logs.
	Why string
	// Next is the time after which to evaluate again even if nothing changes. Zero means never.
	Next time.Duration
}

// Reconcile returns the next step towards the voters that the group should have. For equal views it
// returns equal steps.
func Reconcile(v View) Step {
	step, _ := look(v).decide()
	return step
}

// Same reports whether two steps are equal, ignoring Why and Next.
func (s Step) Same(o Step) bool {
	return s.Kind == o.Kind && s.ID == o.ID && s.Instance == o.Instance &&
		slices.Equal(s.Promote, o.Promote) && slices.Equal(s.Demote, o.Demote) && slices.Equal(s.Remove, o.Remove)
}
