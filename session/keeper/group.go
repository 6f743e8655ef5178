package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Leadership is the state of the group when the leader has applied the first entry of its term.
type Leadership struct {
	Group     uint64 // the ID of the group
	Term      uint64
	Sessions  []lockfsm.SessionInfo // ascending by ID; the core keeps the slice and does not change it
	Born      bool
	GraceOver bool
	// BornAt is when this node applied the command Born or restored a later snapshot. It has a
	// meaning only if Born is set.
	BornAt clock.Time
	Grace  time.Duration
	// Unsearched reports that the machine has searches to continue, see lockfsm.Machine.Search.
	Unsearched bool
	// Rules is the version of the rules in force. Zero means 1.
	Rules uint32
}

// group is what the applied log says of the group, from the first entry of this term on.
type group struct {
	id              uint64
	led             bool // that entry is applied
	born, graceOver bool
	bornAt          clock.Time
	grace           time.Duration
	rules           uint32 // the version in force
}

// follow begins a term whose first entry is not applied.
func (g *group) follow() { g.led, g.born, g.graceOver = false, false, false }

func (g *group) lead(l *Leadership) {
	*g = group{id: l.Group, led: true, born: l.Born, graceOver: l.GraceOver, bornAt: l.BornAt, grace: l.Grace,
		rules: max(l.Rules, 1)}
}

// serving reports whether client commands are accepted. A leader that has not applied the first
// entry of its term does not know the state. Before Born there is no group.
func (g *group) serving() bool { return g.led && g.born }

// appliedBorn reports whether the group was founded now.
func (g *group) appliedBorn(now clock.Time, code lockfsm.Code) bool {
	if code != lockfsm.Done || g.born {
		return false
	}
	g.born, g.bornAt = true, now
	g.graceOver = g.grace == 0
	return true
}

// appliedEndGrace reports whether the grace is over now.
func (g *group) appliedEndGrace(code lockfsm.Code) bool {
	if code != lockfsm.Done || g.graceOver {
		return false
	}
	g.graceOver = true
	return true
}

func (g *group) raised(version uint32) { g.rules = max(g.rules, version) }

func (g *group) graceEnds() clock.Time { return g.bornAt.Add(g.grace) }
