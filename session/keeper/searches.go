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
	searchLatest   = time.Second          // the longest pause before a request is searched again
	stepPause      = 2 * time.Microsecond // per step; a step takes 30 to 200 ns
	searchLostTime = time.Second          // after it, a search without an answer is requested again
)

type searches struct {
	due, asked bool
	at         clock.Time // of the next search; if one is asked, when it counts as lost
	refuse     []byte     // commands to propose
}

// note is called with the report that the machine has searches to continue.
func (s *searches) note(unsearched bool) { s.due = s.due || unsearched }

// wants reports whether to request a search at the time s.at. The next one must wait until the log
// has accepted the last Refuse, so that a full log does not collect more of them.
func (s *searches) wants() bool { return s.due && len(s.refuse) == 0 }

// ask reports whether to request a search now.
func (s *searches) ask(now clock.Time) bool {
	if !s.wants() || now.Before(s.at) {
		return false
	}
	s.asked, s.at = true, now.Add(searchLostTime)
	return true
}

func (s *searches) answered(now clock.Time, found lockfsm.Search) {
	if !s.asked {
		return
	}
	pause := max(searchPause, time.Duration(found.Steps)*stepPause)
	if found.Again { // in a slow group a Refuse takes effect late
		pause = max(pause, min(time.Duration(max(found.Tries, 1))*searchAgain, searchLatest))
	}
	s.asked, s.due, s.at = false, found.Left, now.Add(pause)
	s.refuse = append(s.refuse, found.Refuse...)
}

// accepted is called when the log has accepted the commands to refuse.
func (s *searches) accepted() { s.refuse = nil }
