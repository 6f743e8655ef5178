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

// beginEntering keeps the slice until all sessions are entered.
func (k *Core) beginEntering(sessions []lockfsm.SessionInfo) {
	n := len(sessions)
	k.entering = entering{sessions: sessions, done: make([]bool, n), left: n, since: k.elapsed()}
	k.expiries = make(expiryHeap, 0, n) // growing the heap would copy the whole heap in one turn
}

func (k *Core) enterSome() {
	e := &k.entering
	for budget := k.step(); budget > 0 && e.left > 0; e.next++ {
		if !e.done[e.next] {
			k.enter(e.next)
			budget--
		}
	}
	if e.left == 0 {
		k.entering = entering{}
	}
}

func (k *Core) enter(place int) {
	e := &k.entering
	e.done[place] = true
	e.left--
	k.keep(&e.sessions[place], e.since)
}

func (k *Core) session(id lockfsm.SessionID) *keptSession {
	if place, found := k.entering.at(id); found {
		k.enter(place)
	}
	return k.sessions[id]
}

func (k *Core) step() int {
	if k.Step > 0 {
		return k.Step
	}
	return sessionsPerTurn
}
