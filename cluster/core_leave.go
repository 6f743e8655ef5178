package cluster

import (
	"cmp"
	"strings"
	"time"
)

const (
	// Leaderless is how long a leaver asks for a leader that can replace its vote. If the group has
	// a majority, every election takes less time.
	Leaderless = 3 * time.Second
	// FinalWait limits each wait for an answer when perhaps no other instance runs, for example
	// when all instances leave.
	FinalWait = time.Second
	// DepartPoll is the pause between two questions to the leader.
	DepartPoll = 20 * time.Millisecond
)

// Departure decides the steps of an instance that leaves its group. The instance first waits until
// its locks are released. Its replica then runs until another leader reports that a configuration
// without it is applied (rules 12 and 13 of package voters). Last, the instance closes its session.
// The zero Departure has not begun. It is not safe for concurrent use.
type Departure struct {
	// Alone means that perhaps no other instance can answer. It is valid once Next has returned Part.
	Alone bool
	// Lost is valid once Next has returned Part. It says why the group loses a vote, or is empty if
	// the group loses none.
	Lost string

	stage  stage
	paused bool
	until  time.Duration // a leader waits until then for the others to stop
	words  string        // the leader's last answer, as text
}

type stage uint8

const (
	begins stage = iota
	releases
	asks
	seesOff
	parts
)

// Step is the next action of an instance that leaves.
type Step uint8

// A departure begins with the step Release and ends with the step Part.
const (
	Release Step = iota + 1 // wait until Held is false or TimeOver is true
	Ask                     // ask the leader, for at most Leaderless; then call Heard
	Pause                   // wait for DepartPoll
	Part                    // unless Held, close the session (at most FinalWait if Alone); then stop
)

// Leaver is the state of an instance that leaves.
type Leaver struct {
	Held            bool   // the instance still waits for the release of a lock
	Member          bool   // the instance belongs to a group that is born
	Raft            uint64 // ID of the instance's replica; zero means none
	Votes           bool   // the replica votes in the applied configuration
	Leads           bool   // the replica votes and leads
	OthersConnected bool   // another replica of that configuration is connected
	TimeOver        bool   // the instance may not wait any longer
}

// Next returns the next step.
func (d *Departure) Next(now time.Duration, l Leaver) Step {
	switch {
	case d.stage == begins:
		d.stage = releases
		return Release
	case d.stage == releases && l.Held && !l.TimeOver:
		return Release
	case d.stage == releases:
		d.stage = asks
	}
	if d.stage == asks {
		return d.ask(l)
	}
	if d.stage == seesOff && l.stays() && !l.TimeOver && now < d.until {
		return Pause
	}
	return Part
}

func (d *Departure) ask(l Leaver) Step {
	switch {
	case d.paused:
		d.paused = false
		return Pause
	case !l.Member:
		return d.part(true, "")
	case l.Raft == 0:
		return d.part(false, "")
	case l.TimeOver:
		return d.part(false, d.lost(l))
	}
	return Ask
}

func (d *Departure) part(alone bool, lost string) Step {
	d.stage, d.Alone, d.Lost = parts, alone, lost
	return Part
}

// Heard records the answer of the leader. If said is nil, no leader has answered for longer than an
// election takes, so the vote cannot be replaced.
func (d *Departure) Heard(now time.Duration, l Leaver, said *VoterStatus) {
	switch {
	case said == nil && l.TimeOver: // d.words stays the leader's last answer
	case said == nil:
		d.words = ""
		d.part(true, d.lost(l))
	case said.AllLeaving:
		d.stage, d.Alone, d.until = seesOff, true, now+FinalWait
	case said.MayStop:
		d.part(false, "")
	default:
		d.words, d.paused = strings.Join(append([]string{said.Report.Next.Why}, said.Remarks...), "; "), true
	}
}

// lost returns why the group loses a vote, or "". If no leader has answered, only connections show
// whether other instances run.
func (d *Departure) lost(l Leaver) string {
	if !l.Votes || d.words == "" && !l.OthersConnected {
		return ""
	}
	return cmp.Or(d.words, "no leader has answered")
}

// stays reports whether this instance leads and must stop last. If the leader stopped first, the
// others would need another election before they may stop.
func (l Leaver) stays() bool { return l.Raft != 0 && l.Leads && l.OthersConnected }
