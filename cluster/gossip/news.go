package gossip

import (
	"sync"
	"time"
)

// newsEvery is how often the owner is woken for news, if there is much of it.
const newsEvery = 50 * time.Millisecond

// News is the latest word of gossip about a member: what it says about itself, and that it is here
// or has left.
type News struct {
	Name string // memberlist's name of the member: another at every start of an instance
	Meta Meta
	Here bool
}

// unread is what gossip has said and the owner has not taken: of each member its latest word. So a
// flood of news costs the owner one look each newsEvery, and no more memory than there are members.
type unread struct {
	mu     sync.Mutex // guards all below
	latest map[string]word
	names  []string // of latest, in the order in which they came
	looked time.Time
}

// word is what was said of a member.
type word struct {
	meta Meta
	here bool
	left bool // it had left before
}

// add notes news, and returns how long to wait before the owner is woken. First is false if that is
// due already.
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

// take returns all news in the order in which they came, and forgets them. A member that has left
// and is here again has left first.
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

// Take returns the news since the last call, in the order in which members first had news: of each
// member its latest word. One that has left and come back meanwhile is in it twice. The slice
// belongs to the caller. News says when it is due.
func (g *Gossip) Take() []News { return g.unread.take(time.Now()) }

// pass wakes the owner for what gossip says about a member. It is called under memberlist's lock.
func (g *Gossip) pass(name string, m Meta, here bool) {
	wait, first := g.unread.add(name, m, here, time.Now())
	switch {
	case first && wait > 0:
		time.AfterFunc(wait, g.news)
	case first:
		g.news()
	}
}
