package voters

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Refusal is the reason why the leadership cannot be moved to an instance. The values are sent to
// other instances and never change.
type Refusal uint32

// The refusals.
const (
	Fit        Refusal = 0 // no refusal
	LeadsNow   Refusal = 1 // the instance leads already
	NoInstance Refusal = 2 // no instance with this name has a session or a vote
	NoVote     Refusal = 3 // the instance has no vote
	Silent     Refusal = 4 // the leader is not in contact with the instance
	Leaves     Refusal = 5 // the instance is about to leave
	NotTaken   Refusal = 6 // the instance has not taken over within an election timeout
)

// heardWithin is how long a new leader may not have heard from a voter that is well. Meanwhile such
// a voter counts as fit: a transfer shows whether it is.
const heardWithin = time.Second

// Heir returns the voter with the given name, to which an operator may move the leadership, or the
// reason why it may not. It does not return NotTaken.
func Heir(v View, name string) (nodeid.ReplicaID, Refusal) {
	s, why := look(v), NoInstance
	for _, m := range s.voters {
		switch {
		case m.info.Name != name:
		case m.self:
			return m.ID, LeadsNow
		case m.mayHear() && !m.info.Leaving:
			return m.ID, Fit
		case m.mayHear():
			why = Leaves
		default:
			why = Silent
		}
	}
	if why == NoInstance && v.named(name) {
		why = NoVote
	}
	return 0, why
}

// mayHear reports whether the voter is in contact, or this leader is too new to know.
func (m *member) mayHear() bool {
	return m.Active || !m.Heard && m.SilentFor < heardWithin
}

func (v *View) named(name string) bool {
	f := Facts{Registered: v.Registered, Others: v.Others}
	for r := range f.All() {
		if r.Name == name {
			return true
		}
	}
	return false
}
