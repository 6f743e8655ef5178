package cluster

import (
	"cmp"
	"strings"
	"time"
)

// Limits of a departure.
const (
	// Leaderless is the time for which a leaving instance asks for a leader that can take over its
	// vote. It is longer than any election in a group that has a majority.
	Leaderless = 3 * time.Second
	// FinalWait limits the wait for the end of the session when perhaps no other instance is left
	// to answer, as when all instances leave.
	FinalWait = time.Second
	// DepartPoll is the time between two status queries that ask whether this instance may stop.
	DepartPoll = 20 * time.Millisecond
)

// Departure is the orderly departure of an instance from its group. The instance waits until its
// locks are released. Then its replica stays until another leader reports that a configuration
// without this replica is applied (rules 12 and 13 of package voters). Then it closes its session.
// The zero Departure has not begun. It is not safe for concurrent use.
type Departure struct {
	// Alone is set at the end if perhaps no other instance is left to answer.
	Alone bool
	// Lost is set at the end to the reason why the remaining instances lose a vote. Empty means
	// that they lose none.
	Lost string

	stage  stage
	paused bool          // a leader has answered, and no further question was sent since
	until  time.Duration // when it stops waiting for others
	words  string        // the leader's last answer
}

type stage uint8

const (
	begins stage = iota
	releases
	asks
	seesOff
	parts
)

// Step is the next step of an instance that leaves.
type Step uint8

// The steps of a departure. Part is the last one.
const (
	Release Step = iota + 1 // wait until it holds no lock, or until its time has run out
	Ask                     // send a status query about the replica, for at most Leaderless; then call Heard
	Pause                   // wait for DepartPoll
	Part                    // close its session if it holds no lock, within FinalWait if Alone; then stop
)

// Leaver is the state of an instance that leaves, as it knows it.
type Leaver struct {
	Held            bool   // it still waits for the release of a lock
	Member          bool   // it belongs to a group that is born
	Raft            uint64 // of its replica, or zero without one
	Votes           bool   // the replica votes in the configuration that is applied here
	Leads           bool   // it votes and leads
	OthersConnected bool   // another replica of that configuration is connected
	TimeOver        bool   // it must not wait any longer
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

// Heard records the answer of the leader. Nil means that no leader has answered for longer than an
// election takes, so no instance can take over the vote.
func (d *Departure) Heard(now time.Duration, l Leaver, said *VoterStatus) {
	switch {
	case said == nil && l.TimeOver: // the leader's last answer still holds
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

// lost returns why a vote is lost, or "". Without an answer of a leader only open connections show
// that other instances exist.
func (d *Departure) lost(l Leaver) string {
	if !l.Votes || d.words == "" && !l.OthersConnected {
		return ""
	}
	return cmp.Or(d.words, "no leader has answered")
}

// stays reports whether this instance is the leader and must wait although all instances leave. The
// leader stops last, so that the others need not elect a new leader to learn that they may stop.
func (l Leaver) stays() bool { return l.Raft != 0 && l.Leads && l.OthersConnected }
