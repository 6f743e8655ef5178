package swim

import (
	"errors"
	"time"
)

// maxMembers is the maximum number of members in gossip, including those that left recently. The
// largest tested fleet has a quarter as many members. If members beyond the limit are ignored,
// other packages only get fewer addresses to ask.
const maxMembers = 4096

// maxMemberName is the maximum length of a member's name. The names of mortise have 24 bytes.
const maxMemberName = 64

var (
	errRosterFull = errors.New("gossip has reached its limit of members")
	errBadMember  = errors.New("malformed data about a member")
)

// roster limits the members that memberlist keeps. When a member has left, memberlist keeps it for
// some time, which depends on the number of members, and does not report when it forgets the
// member. The member therefore keeps its slot for the longest possible time. Times are arguments.
type roster struct {
	limit int
	known map[string]time.Time // when the member's slot becomes free; zero for a present member
}

func newRoster(most int) roster { return roster{limit: most, known: map[string]time.Time{}} }

func (r *roster) admit(name string, now time.Time) bool {
	if _, known := r.known[name]; known {
		return true // the message may be old, so it does not change the slot
	}
	if len(r.known) >= r.limit {
		for name, until := range r.known {
			if !until.IsZero() && !now.Before(until) {
				delete(r.known, name)
			}
		}
		if len(r.known) >= r.limit {
			return false
		}
	}
	r.left(name, now) // frees the slot if the member never joins
	return true
}

func (r *roster) joined(name string) { r.known[name] = time.Time{} }

// left records that a member has left. memberlist keeps this member for half a minute, and then for
// one round in which memberlist probes each member, one per second.
func (r *roster) left(name string, now time.Time) {
	r.known[name] = now.Add(30*time.Second + time.Duration(len(r.known))*time.Second)
}

const fullEvery = time.Minute
