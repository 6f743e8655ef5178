package gossip

import (
	"errors"
	"time"
)

// maxMembers is how many members gossip knows at most, including those that left a short while ago.
// An entry costs each instance about 0.6 KB, and packets to spread. The largest tested fleet has a
// quarter as many. Ignoring further members costs only hints.
const maxMembers = 4096

// maxMemberName is the longest name of a member: mortise makes names of 24 bytes.
const maxMemberName = 64

var (
	errRosterFull = errors.New("gossip has reached its limit of members")
	errBadMember  = errors.New("malformed data about a member")
)

// roster limits the members that memberlist knows. memberlist forgets a member that has left only
// after it has gone through all others, and does not report it. So a member that has left keeps its
// slot for as long as that may take. Times are arguments.
type roster struct {
	limit int
	known map[string]time.Time // when the slot is free again; zero for a present member
}

func newRoster(most int) roster { return roster{limit: most, known: map[string]time.Time{}} }

func (r *roster) admit(name string, now time.Time) bool {
	if _, known := r.known[name]; known {
		return true // the news may be old: only joined and left change the slot
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
	r.left(name, now) // frees the slot if it never joins
	return true
}

func (r *roster) joined(name string) { r.known[name] = time.Time{} }

// left records that a member has left. memberlist keeps it for half a minute, and then until it has
// probed each member once, one a second.
func (r *roster) left(name string, now time.Time) {
	r.known[name] = now.Add(30*time.Second + time.Duration(len(r.known))*time.Second)
}

const fullEvery = time.Minute
