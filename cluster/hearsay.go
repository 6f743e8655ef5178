package cluster

import (
	"sync"
	"time"
)

// hearsayEvery is how often the owner looks at what gossip has said, if gossip says much.
const hearsayEvery = 50 * time.Millisecond

// hearsay is what gossip has said and the owner has not looked at: of each member its latest word.
// So a flood of news costs the owner one look each hearsayEvery, and no more memory than there are
// members.
type hearsay struct {
	mu     sync.Mutex // guards all below
	latest map[string]hearing
	names  []string // of latest, in the order in which they came
	looked time.Time
}

// hearing is what was said of a member.
type hearing struct {
	meta meta
	here bool
	left bool // it had left before
}

// add notes news, and returns how long to wait before a look. First is false if a look is due
// already.
func (h *hearsay) add(name string, m meta, here bool, now time.Time) (wait time.Duration, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.latest == nil {
		h.latest = map[string]hearing{}
	}
	before, known := h.latest[name]
	if !known {
		h.names = append(h.names, name)
	}
	h.latest[name] = hearing{m, here, here && known && (before.left || !before.here)}
	if len(h.names) > 1 || known {
		return 0, false
	}
	return max(0, hearsayEvery-now.Sub(h.looked)), true
}

// take returns all news in the order in which they came, and forgets them.
func (h *hearsay) take(now time.Time) ([]string, map[string]hearing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	names, latest := h.names, h.latest
	h.names, h.latest, h.looked = nil, nil, now
	return names, latest
}

// news takes what gossip says about a member, on memberlist's goroutine and under its lock.
func (c *Cluster) news(name string, m meta, here bool) {
	wait, first := c.heard.add(name, m, here, time.Now())
	look := func() { c.in.post(c.hearNews) }
	switch {
	case first && wait > 0:
		time.AfterFunc(wait, look)
	case first:
		look()
	}
}

// hearNews is news on the owner goroutine.
func (c *Cluster) hearNews() {
	names, latest := c.heard.take(time.Now())
	for _, name := range names {
		h := latest[name]
		if h.left {
			c.seen(name, h.meta, false)
		}
		c.seen(name, h.meta, h.here)
	}
}
