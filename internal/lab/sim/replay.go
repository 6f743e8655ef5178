package sim

import (
	"math/rand/v2"
	"time"
)

// chance is a fault that may happen at each message, turn or save.
type chance uint8

// These are the chances, in the order of chanceNames.
const (
	late chance = iota
	repeated
	dropped
	sluggish
	powerFails
	slowSave
	hungSnapshot
	strayClaim
	chances
)

var chanceNames = [chances]string{
	"a message is late", "a message comes twice", "a message is lost", "a turn is late",
	"the power fails at a save", "a save is slow",
	"a snapshot hangs", "a claim is late",
}

// Strike is a fault that has happened in a run.
type Strike struct {
	At   time.Duration // since the beginning of the run
	Text string        // what happened, if Config.Verbose was set
	// The states of the run's random numbers before the fault was drawn and after it.
	before, after rand.PCG
}

// Replay is the list of the faults of an earlier run, and those of them that do not happen. At each
// strike the random numbers are those of the earlier run, whatever happens between the strikes. So
// the faults that are left happen at the same times and on the same machines. With all faults, the
// run is the same as the earlier run.
type Replay struct {
	strikes []Strike
	off     map[int]bool
	silent  [chances]bool         // this chance never comes true
	only    [chances]map[int]bool // if not nil: the occurrences that happen, from zero
}

func (r *Replay) happens(strike int) bool {
	return r == nil || strike < len(r.strikes) && !r.off[strike]
}

func (r *Replay) befalls(c chance, occurrence int) bool {
	return r == nil || !r.silent[c] && (r.only[c] == nil || r.only[c][occurrence])
}

// known returns the strike of the earlier run with this number, or nil.
func (r *Replay) known(strike int) *Strike {
	if r == nil || strike >= len(r.strikes) {
		return nil
	}
	return &r.strikes[strike]
}
