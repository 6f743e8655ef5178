package swim

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
)

// newsEvery is the shortest time between a Take and the next call of Config.News.
const newsEvery = 50 * time.Millisecond

// unread holds the latest news of each member until the owner takes it. Its memory is proportional
// to the number of members, however much news arrives.
type unread struct {
	mu     sync.Mutex // guards the fields below
	latest map[string]word
	names  []string // keys of the map latest, in order of arrival
	looked time.Time
}

type word struct {
	meta gossip.Meta
	here bool
	left bool // the member left and came back since the last Take
}

// add stores news about a member. If first is true, the caller must wake the owner when the
// returned time has passed. Otherwise a wake-up is already scheduled.
func (u *unread) add(name string, m gossip.Meta, here bool, now time.Time) (wait time.Duration, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[string]word{}
	}
	before, known := u.latest[name]
	if !known {
		u.names = append(u.names, name)
	}
	u.latest[name] = word{m, here, here && known && (before.left || !before.here)}
	if len(u.names) > 1 || known {
		return 0, false
	}
	return max(0, newsEvery-now.Sub(u.looked)), true
}

func (u *unread) drain(now time.Time) []gossip.News {
	u.mu.Lock()
	names, latest := u.names, u.latest
	u.names, u.latest, u.looked = nil, nil, now
	u.mu.Unlock()
	all := make([]gossip.News, 0, len(names))
	for _, name := range names {
		w := latest[name]
		if w.left {
			all = append(all, gossip.News{Name: name, Meta: w.meta})
		}
		all = append(all, gossip.News{Name: name, Meta: w.meta, Here: w.here})
	}
	return all
}

// Take returns the latest news of each member since the last call, in the order of each member's
// first news. For a member that has left and come back since that call, it returns two entries, and
// the first reports that the member left. The slice belongs to the caller.
func (g *Gossip) Take() []gossip.News { return g.unread.drain(time.Now()) }

// pass stores news about a member and wakes the owner. memberlist calls it under its lock.
func (g *Gossip) pass(name string, m gossip.Meta, here bool) {
	wait, first := g.unread.add(name, m, here, time.Now())
	switch {
	case first && wait > 0:
		time.AfterFunc(wait, g.news)
	case first:
		g.news()
	}
}
