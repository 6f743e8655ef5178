package founding

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// leading describes the leader of a member's group, and for how long none is known.
type leading struct {
	leader bool
	guide  nodeid.ID     // leader to which this instance is attached; zero means none
	guided time.Duration // when another known voter last answered or a leader was last known
	since  time.Duration // when this member lost its leader
	// the same time as in the field since, by the wall clock
	sinceWall int64
	// lostLeader is set if this incarnation has had a leader, and since is the time of its loss.
	lostLeader bool
}

// observe records whether a leader is known, and whether this instance has a group to lead.
func (l *leading) observe(now time.Duration, wall int64, known, grouped bool) {
	if known || l.leader {
		l.guided = now
	}
	known = known && grouped
	if l.leader && !known {
		l.since, l.sinceWall, l.lostLeader = now, wall, true
	}
	l.leader = known
}

// begin records that this instance takes part in its group from now on, or again.
func (l *leading) begin(now time.Duration, wall int64) { l.since, l.sinceWall = now, wall }

// enter begins in a group whose leader this instance does not know yet.
func (l *leading) enter() { l.leader = false }

// hear records that a known voter has answered.
func (l *leading) hear(now time.Duration) { l.guided = now }

// attachedTo sets the leader to which this instance is attached. Zero means none.
func (l *leading) attachedTo(leader nodeid.ID) { l.guide = leader }

// orEarlier qualifies c.sinceWall: only an instance that has lost its leader has observed when that
// was.
func (l *leading) orEarlier() string {
	if l.lostLeader {
		return ""
	}
	return " or earlier, as this instance has known none since it began"
}
