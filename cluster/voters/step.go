package voters

import (
	"slices"
	"time"
)

// Kind says what a Step is.
type Kind uint8

// The kinds of steps.
const (
	None    Kind = iota // nothing now
	Prepare             // ask Instance to start an empty replica under ID; nothing is proposed
	// propose to add ID, which Instance runs, as a learner; the entry carries ID, instance and
	// address
	AddLearner
	Change   // propose one joint change that raft leaves by itself (AutoLeave): Promote, Demote, Remove
	Transfer // hand the lead to ID, then look again there
)

func (k Kind) String() string {
	names := [...]string{None: "none", Prepare: "prepare", AddLearner: "add learner", Change: "change",
		Transfer: "transfer"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Step is the one thing to do now. The caller carries it out once, and asks again when anything in
// its View has changed, and after Next.
type Step struct {
	// Kind says which of the fields count.
	Kind Kind
	// ID is whom Prepare, AddLearner and Transfer are about.
	ID ID
	// Instance is whom Prepare and AddLearner are about.
	Instance Instance
	// Promote lists learners that become voters, by ID.
	Promote []ID
	// Demote lists voters that become learners and keep their data, by ID.
	Demote []ID
	// Remove lists voters and learners that leave the configuration for good, by ID.
	Remove []ID
	// Why is a sentence for Status and logs.
	Why string
	// Next is after how long to look again although nothing has changed, since a limit of time ends
	// then. 0: never.
	Next time.Duration
}

// Reconcile returns the next step towards the voters that the group should have. It is a pure
// function: equal views give equal steps, and a new leader that calls it with what it sees goes on
// where the one before stopped.
func Reconcile(v View) Step {
	step, _ := look(v).decide()
	return step
}

// Same reports whether two steps do the same, whatever they say and when they ask for another look.
func (s Step) Same(o Step) bool {
	return s.Kind == o.Kind && s.ID == o.ID && s.Instance == o.Instance &&
		slices.Equal(s.Promote, o.Promote) && slices.Equal(s.Demote, o.Demote) && slices.Equal(s.Remove, o.Remove)
}
