package console

import (
	"strconv"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/purpose"
)

// This file says what is known about holders besides their names: whether the data is current, what
// a lock is for, and whether a later incarnation of the holder runs. A name outlives a process; a
// session does not.

// stale reports whether the data about locks may be outdated: without a leader that answers,
// everything was seen earlier.
func (s *scene) stale() bool {
	return s.all.err != nil || s.status.Leader == "" || s.status.Session != mortise.SessionAttached
}

// health returns the leader's current report on the voters, or nil if there is none.
func (s *scene) health() *mortise.Health {
	if s.stale() && s.status.Leader == "" {
		return nil
	}
	return s.all.health
}

// purposeOf returns what a key is held for, as its holder declares it.
func purposeOf(k mortise.KeyInfo) string {
	if len(k.Queue) == 0 {
		return ""
	}
	return k.Queue[0].Labels[purpose.Label]
}

// lasts reports whether a key is held long by design.
func lasts(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && purpose.Lasting(k.Queue[0].Labels)
}

// ofTick reports whether package tick holds a key for itself. No user code runs under such a key.
func ofTick(k mortise.KeyInfo) bool { return purposeOf(k) == purpose.Tick }

// later returns the newest session of the instance with a holder's name, if the holder's own
// session is an earlier one. Then the hold belongs to an earlier incarnation, or to a session that
// was lost, and it ends with that session. Session numbers increase in the order in which sessions
// are opened.
func (s *scene) later(st mortise.Standing) (newest string, is bool) {
	if s.sessions == nil {
		s.sessions = map[string]mortise.SessionInfo{}
		s.newest = map[string]uint64{}
		for _, each := range s.all.sessions {
			s.sessions[each.Session] = each
			if id, err := strconv.ParseUint(each.Session, 10, 64); err == nil && !each.Own && !each.Expired {
				s.newest[each.Holder] = max(s.newest[each.Holder], id)
			}
		}
	}
	id, err := strconv.ParseUint(st.Session, 10, 64)
	own, known := s.sessions[st.Session]
	if err != nil || !known || own.Own || id >= s.newest[st.Holder] {
		return "", false
	}
	return strconv.FormatUint(s.newest[st.Holder], 10), true
}
