package keeper

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// A new leader gives every session its full TTL from the beginning of the leadership. A million
// sessions are too many for one turn, so this file adds ("enters") them to the core in steps:
//
//   - If a message names a session, the session is entered first.
//   - A session that is not entered does not expire.
//   - An Open that arrives before all sessions are entered is not answered, because the number of
//     sessions of its instance is unknown. Its client retries.

// entering holds the sessions that existed when the leadership began, until all are entered.
type entering struct {
	sessions []lockfsm.SessionInfo
	done     []bool // whether the session at this index is entered
	next     int    // all sessions before this index are entered
	left     int
	since    clock.Time // when the leadership began, on the clock of deadlines
}

func (e *entering) at(id lockfsm.SessionID) (place int, found bool) {
	if e.left == 0 {
		return 0, false
	}
	place, found = slices.BinarySearchFunc(e.sessions, id, func(s lockfsm.SessionInfo, id lockfsm.SessionID) int {
		return cmp.Compare(s.ID, id)
	})
	return place, found && !e.done[place]
}

// begin keeps the slice until all sessions are entered.
func (e *entering) begin(sessions []lockfsm.SessionInfo, since clock.Time) {
	*e = entering{sessions: sessions, done: make([]bool, len(sessions)), left: len(sessions), since: since}
}

// some calls enter for the next sessions, at most as many as the budget.
func (e *entering) some(budget int, enter func(place int)) {
	for ; budget > 0 && e.left > 0; e.next++ {
		if !e.done[e.next] {
			enter(e.next)
			budget--
		}
	}
	if e.left == 0 {
		*e = entering{}
	}
}

// enter marks a session as entered.
func (e *entering) enter(place int) *lockfsm.SessionInfo {
	e.done[place] = true
	e.left--
	return &e.sessions[place]
}
