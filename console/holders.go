package console

import (
	"strconv"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// stale reports whether the data about locks may be outdated, because no leader has answered the
// last queries.
func (s *scene) stale() bool {
	return s.all.err != nil || s.status.Leader == "" || !s.status.Attached
}

// health returns the leader's report on the voters, or nil if no current report exists.
func (s *scene) health() *mortise.Health {
	if s.stale() && s.status.Leader == "" {
		return nil
	}
	return s.all.health
}

// purposeOf returns the purpose that the first request in the queue of a key declares in a label.
func purposeOf(k mortise.KeyInfo) string {
	if len(k.Queue) == 0 {
		return ""
	}
	return k.Queue[0].Labels[shown.PurposeLabel]
}

func lasts(k mortise.KeyInfo) bool {
	return len(k.Queue) > 0 && shown.Lasting(k.Queue[0].Labels)
}

// ofTick reports whether package tick itself has requested the key. No user code runs while such a
// key is held.
func ofTick(k mortise.KeyInfo) bool { return purposeOf(k) == shown.Tick }

// later returns the newest session that was opened under the holder's name. It reports false if
// that session is not newer than the holder's session. If it is newer, the holder's session was
// lost or belongs to an earlier incarnation, and the hold ends when the holder's session ends.
// Session numbers increase in the order in which sessions are opened.
func (s *scene) later(st mortise.Standing) (newest string, is bool) {
	if s.sessions == nil {
		s.sessions = map[string]mortise.SessionInfo{}
		s.newest = map[string]uint64{}
		for _, each := range s.all.sessions {
			s.sessions[each.Session] = each
			if id, err := strconv.ParseUint(each.Session, 10, 64); err == nil && each.Instance != "" && !each.Expired {
				s.newest[each.Name] = max(s.newest[each.Name], id)
			}
		}
	}
	id, err := strconv.ParseUint(st.Session, 10, 64)
	own, known := s.sessions[st.Session]
	if err != nil || !known || own.Instance == "" || id >= s.newest[st.Holder] {
		return "", false
	}
	return strconv.FormatUint(s.newest[st.Holder], 10), true
}
