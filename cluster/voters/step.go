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
	None    Kind = iota // nothing now
	Prepare             // ask Instance to start an empty replica under ID; nothing is proposed
	// propose to add ID, which Instance runs, as a learner; the entry holds ID, instance and address
	AddLearner
	Change   // propose one joint change with AutoLeave: Promote, Demote, Remove
	Transfer // hand the lead to ID; its leader then reconciles again
)

func (k Kind) String() string {
	names := [...]string{None: "none", Prepare: "prepare", AddLearner: "add learner", Change: "change",
		Transfer: "transfer"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Step is the one thing to do now. The caller carries it out once. It asks again when anything in
// its View has changed, and after Next.
type Step struct {
	// Kind determines which of the fields are set.
	Kind Kind
	// ID is the replica of Prepare, AddLearner and Transfer.
	ID nodeid.ReplicaID
	// Instance is that of Prepare and AddLearner.
	Instance nodeid.ID
	// Promote lists learners that become voters, by ID.
	Promote []nodeid.ReplicaID
	// Demote lists voters that become learners and keep their data, by ID.
	Demote []nodeid.ReplicaID
	// Remove lists voters and learners that leave the configuration for good, by ID.
	Remove []nodeid.ReplicaID
	// Why is a sentence for Status and logs.
	Why string
	// Next is when to look again although nothing has changed. Zero means never.
	Next time.Duration
}

// Reconcile returns the next step towards the voters that the group should have. Equal views give
// equal steps.
func Reconcile(v View) Step {
	step, _ := look(v).decide()
	return step
}

// Same reports whether two steps do the same, ignoring Why and Next.
func (s Step) Same(o Step) bool {
	return s.Kind == o.Kind && s.ID == o.ID && s.Instance == o.Instance &&
		slices.Equal(s.Promote, o.Promote) && slices.Equal(s.Demote, o.Demote) && slices.Equal(s.Remove, o.Remove)
}
