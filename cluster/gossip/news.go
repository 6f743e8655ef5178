package gossip

import (
	"sync"
	"time"
)

// newsEvery is the shortest time between two calls of Config.News.
const newsEvery = 50 * time.Millisecond

// News is the latest state of a member in gossip: its Meta, and whether it is present or has left.
type News struct {
	Name string // memberlist's name of the member; different at every start of an instance
	Meta Meta
	Here bool
}

// unread is the news that the owner has not taken: the latest of each member. So a flood of news
// costs the owner one Take each newsEvery, and no more memory than there are members.
type unread struct {
	mu     sync.Mutex // guards all below
	latest map[string]word
	names  []string // of latest, in order of arrival
	looked time.Time
}

type word struct {
	meta Meta
	here bool
	left bool // it had left and came back
}

// add records news. first reports whether the owner has to be woken, after wait; otherwise that is
// already scheduled.
func (u *unread) add(name string, m Meta, here bool, now time.Time) (wait time.Duration, first bool) {
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

// take returns and forgets all news in order of arrival. A member that has left and come back is in
// it twice, first as having left.
func (u *unread) take(now time.Time) []News {
	u.mu.Lock()
	names, latest := u.names, u.latest
	u.names, u.latest, u.looked = nil, nil, now
	u.mu.Unlock()
	all := make([]News, 0, len(names))
	for _, name := range names {
		w := latest[name]
		if w.left {
			all = append(all, News{Name: name, Meta: w.meta})
		}
		all = append(all, News{Name: name, Meta: w.meta, Here: w.here})
	}
	return all
}

// Take returns the latest news of each member since the last call, ordered by each member's first
// news. A member that has left and come back meanwhile is in it twice. The slice belongs to the
// caller. Config.News is called when a Take is due.
func (g *Gossip) Take() []News { return g.unread.take(time.Now()) }

// pass wakes the owner for news of a member. memberlist calls it under its lock.
func (g *Gossip) pass(name string, m Meta, here bool) {
	wait, first := g.unread.add(name, m, here, time.Now())
	switch {
	case first && wait > 0:
		time.AfterFunc(wait, g.news)
	case first:
		g.news()
	}
}
