package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// keptSession is a session of the applied state with its deadline.
type keptSession struct {
	id       lockfsm.SessionID
	nonce    lockfsm.Nonce
	opener   lockfsm.Opener // the instance that may use the session; zero if the session is gone
	life     uint64         // the start of that instance which has opened it
	epoch    lockfsm.Epoch
	ttl      time.Duration
	deadline clock.Time // on the clock of deadlines; see elapsed
	// expiring means that the expiry is decided. Renewals are then not acknowledged.
	expiring bool
	// heard is the sending time of the newest answer that the client has confirmed. told contains
	// the unconfirmed answers. Both remain across attachments, because a client that receives
	// nothing attaches repeatedly.
	heard clock.Time
	told  session.Sent
	// earlier and later are the neighbours in the list of openers.
	earlier, later *keptSession
}

// tells notes that the answer with the number seq is sent now, at a time on the clock of deadlines.
func (s *keptSession) tells(seq uint64, now clock.Time) { s.told.Note(seq, now) }

// hears is called when a renewal confirms the answer with the number seq. It reports whether the
// newest confirmed answer was sent less than a TTL ago.
func (s *keptSession) hears(seq uint64, now clock.Time) bool {
	if sent, ok := s.told.Acknowledged(seq); ok {
		s.heard = max(s.heard, sent)
	}
	// The mutant ack-while-expiring disables this check, because the check would hide the mutant's
	// fault.
	return now.Sub(s.heard) < s.ttl
}
