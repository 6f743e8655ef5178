package session

import "fmt"

// Outdated means that the build of an instance cannot read the state of the group. The zero value
// means that it can.
type Outdated struct {
	Group uint32 // version of the lock rules that is in force
	Build uint32 // newest version that the build knows
}

// String returns the cause and the next step, or "" for the zero value.
func (o Outdated) String() string {
	if o == (Outdated{}) {
		return ""
	}
	return fmt.Sprintf("the group has lock rules %d, this build knows up to %d: it gets no session, and could not "+
		"vote; upgrade it to the build of the others, or take the roll-out of this build back", o.Group, o.Build)
}
