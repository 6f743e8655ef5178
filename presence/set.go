package presence

import (
	"maps"
	"strings"

	"github.com/mortise-lock/mortise"
)

// set is the members of a name, by key, as far as the events show them.
type set struct {
	prefix  string
	members map[string]Member
	shown   map[string]mortise.Token // the tokens at the last report; nil before the first
}

func newSet(name string) *set { return &set{prefix: prefix(name), members: map[string]Member{}} }

// add adds a member. It ignores keys that Run has not made, such as those of another name that
// begins with this name and a slash.
func (s *set) add(key string, m Member) {
	if m.ID = strings.TrimPrefix(key, s.prefix); isID(m.ID) {
		s.members[key] = m
	}
}

// isID reports whether text has the form of rand.Text.
func isID(text string) bool {
	return len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// apply applies an event. It reports whether the set has changed since the last report and is that
// of one moment.
func (s *set) apply(e *mortise.Event) (report bool) {
	switch e.Kind {
	case mortise.EventReset:
		clear(s.members)
	case mortise.EventHeld:
		s.add(e.Key, Member{Instance: e.Holder, Value: e.Value, Token: e.Token, Since: e.At})
	case mortise.EventFreed, mortise.EventLeft:
		if s.members[e.Key].Token == e.Token {
			delete(s.members, e.Key)
		}
	case mortise.EventCurrent:
		now := make(map[string]mortise.Token, len(s.members))
		for key, m := range s.members {
			now[key] = m.Token
		}
		report = s.shown == nil || !maps.Equal(now, s.shown)
		s.shown = now
	}
	return report
}
