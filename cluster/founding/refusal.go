package founding

import "strconv"

// Refusal is the reason why a charter was refused. The values are sent to other instances and never
// change.
type Refusal uint8

// The reasons of rule 3. A charter is accepted if none applies.
const (
	Accepted Refusal = iota
	RefusedMalformed
	RefusedSolo
	RefusedPhase
	RefusedRepeated   // this incarnation has refused the charter before
	RefusedUnlisted   // the list does not have this instance's ID, name and address
	RefusedIncomplete // the list is incomplete by this instance's own settings
	RefusedSettings
	RefusedRules // the charter needs a version of the lock rules that this instance does not know
	RefusedClock // the founding time is too far from this instance's clock
	RefusedSilence
	RefusedStranger // an instance that is not on the list answers at a Join address
	RefusedGroup
	RefusedDirectory
	RefusedClaim
	refusals
)

// String returns the reason as a sentence in which "it" means the refusing instance.
func (r Refusal) String() string {
	texts := [refusals]string{
		Accepted:          "accepted",
		RefusedMalformed:  "the charter is malformed",
		RefusedSolo:       "it runs alone: set Join on all instances",
		RefusedPhase:      "it belongs to another charter or group",
		RefusedRepeated:   "it has refused this charter before",
		RefusedUnlisted:   "it is not on the list",
		RefusedIncomplete: "the list is not complete",
		RefusedSettings:   "its settings differ",
		RefusedRules:      "it does not know this version of the lock rules",
		RefusedClock:      "its clock differs too much",
		RefusedSilence:    "an address in its Join has not answered",
		RefusedStranger:   "an address in its Join is answered by an instance that is not on the list",
		RefusedGroup:      "it reaches a group that has a leader",
		RefusedDirectory:  "it cannot write its directory",
		RefusedClaim:      "it reaches an instance that keeps another group in its directory",
	}
	if r < refusals {
		return texts[r]
	}
	return "refusal " + strconv.Itoa(int(r))
}
