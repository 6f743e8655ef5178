package console

import (
	"strconv"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/purpose"
)

// This file says what is known of holders beside their names: whether what was seen is still so,
// what a lock is for, and whether a later life of the holder is there. A name outlives a process; a
// session does not.

// stale reports whether nothing is known of the locks as they are now: without a leader that
// answers, everything was seen before.
func (s *scene) stale() bool {
	return s.all.err != nil || s.status.Leader == "" || s.status.Session != mortise.SessionAttached
}

// health is how the voters stand, as the leader says now; nil if none does.
func (s *scene) health() *mortise.Health {
	if s.stale() && s.status.Leader == "" {
		return nil
	}
	return s.all.health
}

// purposeOf is what a key is held for, as its holder says.
func purposeOf(k mortise.KeyInfo) string {
	if len(k.Queue) == 0 {
		return ""
	}
	return k.Queue[0].Labels[purpose.Label]
}

// lasts reports whether long holds of a key are as they should be.
func lasts(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && purpose.Lasting(k.Queue[0].Labels)
}

// ofTick reports whether a key is held by package tick for itself: no code of a user works under
// it.
func ofTick(k mortise.KeyInfo) bool { return purposeOf(k) == purpose.Tick }

// later returns the newest session of the instance that has the name of a holder, if the holder's
// own session is an earlier one: the hold is of an earlier life then, or of a session that was
// lost, and ends with that session. Sessions are numbered as they are opened.
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
