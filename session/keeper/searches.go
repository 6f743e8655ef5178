package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file paces the searches for deadlocks that an Acquire has ended at its bound. The machine
// belongs to the log's goroutine, so a round with SearchRound requests each search: it takes its
// turn among the log's other work. A pause in proportion to the work follows, so that all searches
// together take at most a small part of a processor.

// SearchRound marks the number of a round as the request of one search. The receiver of the round
// must call Searched instead of Confirmed.
const SearchRound = 1 << 62

const (
	searchPause    = 5 * time.Millisecond // the shortest pause between two searches
	searchAgain    = 50 * time.Millisecond
	stepPause      = 2 * time.Microsecond // per step; a step takes 30 to 200 ns
	searchLostTime = time.Second          // after it, a search without an answer is requested again
)

type searches struct {
	due, asked bool
	at         clock.Time // of the next search; if one is asked, when it counts as lost
	refuse     []byte     // commands to propose
}

// search requests a search, if one is due.
func (k *Core) search(to *Outlets) {
	s := &k.searches
	if !k.led || !s.due || k.now.Before(s.at) {
		return
	}
	s.asked, s.at = true, k.now.Add(searchLostTime)
	k.round++
	to.Confirm(k.role.Term, SearchRound|k.round)
}

// Searched implements [Keeper.Searched].
func (k *Core) Searched(now clock.Time, term uint64, found lockfsm.Search) {
	k.begin(now)
	s := &k.searches
	if term != k.role.Term || !k.led || !s.asked {
		return
	}
	pause := max(searchPause, time.Duration(found.Steps)*stepPause)
	if found.Again {
		pause = max(pause, searchAgain)
	}
	s.asked, s.due, s.at = false, found.Left, now.Add(pause)
	s.refuse = append(s.refuse, found.Refuse...)
}
