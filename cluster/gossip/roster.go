package gossip

import (
	"errors"
	"time"
)

// membersMax is how many members gossip knows at most, whether they are here or have left a short
// while ago. An entry costs each instance about 0.6 KB, and packets to spread; 4,096 are four times
// the largest fleet that is tested. Members beyond it are not seen by this instance, which costs
// only a hint.
const membersMax = 4096

// memberNameMax is the longest name of a member: mortise makes names of 24 bytes.
const memberNameMax = 64

var (
	errRosterFull = errors.New("as many members as gossip may know are known")
	errBadMember  = errors.New("no instance of mortise says that of itself")
)

// roster bounds the members that memberlist knows. memberlist forgets a member that has left only
// when it has gone round all others, and does not tell; so a name that has left keeps its place for
// as long as that may take. A core: it is told the time.
type roster struct {
	most  int
	known map[string]time.Time // when the place is free again; the zero time for a member that is here
}

func newRoster(most int) roster { return roster{most: most, known: map[string]time.Time{}} }

// admit reports whether memberlist may know a member.
func (r *roster) admit(name string, now time.Time) bool {
	if _, known := r.known[name]; known {
		return true // what is said of it may be old: only joined and left change its place
	}
	if len(r.known) >= r.most {
		for name, until := range r.known {
			if !until.IsZero() && !now.Before(until) {
				delete(r.known, name)
			}
		}
		if len(r.known) >= r.most {
			return false
		}
	}
	r.left(name, now) // until it has joined
	return true
}

// joined takes that an admitted member is here.
func (r *roster) joined(name string) { r.known[name] = time.Time{} }

// left takes that a member has left. memberlist keeps it for half a minute, and then until it has
// probed each member once, one a second.
func (r *roster) left(name string, now time.Time) {
	r.known[name] = now.Add(30*time.Second + time.Duration(len(r.known))*time.Second)
}

// fullEvery is how often a full roster is logged.
const fullEvery = time.Minute
