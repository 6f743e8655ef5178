package instance

import (
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
)

// This file converts events of other packages to NodeEvents. It runs on the owner goroutines of
// these packages, so it only queues the calls of hooks.

func (n *Instance) tell(e NodeEvent) {
	if h := n.config.Hooks; h != nil && h.Node != nil {
		n.trace.Later(func() { h.Node(e) })
	}
}

// observer observes one session. It runs on the goroutine of the session's client.
type observer struct {
	node   *Instance
	own    bool // the session is one of the user's own
	losses lossLog
	grace  clock.Time // the end of the grace that was last logged
}

func (w *observer) news(news *client.News) {
	n, before, after := w.node, &news.Before, &news.After
	now := n.env.clock.Now()
	w.log(now, before, after)
	n.trace.ReportLeaks() // news comes with each renewal of the lease
	if !w.own {
		n.noteAvailable(now, after)
	}
	if n.config.Hooks == nil {
		return
	}
	id := SessionText(after.Session)
	if after.Session != before.Session {
		w.tellSession(before, after)
	}
	if after.Lease != before.Lease {
		e := NodeEvent{State: after.Lease.String(), Session: id, Left: max(after.Deadline.Sub(now), 0)}
		n.tell(e)
	}
	for _, took := range news.Renewed {
		n.tell(NodeEvent{State: stateAcknowledged, Session: id, Took: took})
	}
	for range news.Unanswered {
		n.tell(NodeEvent{State: stateUnanswered, Session: id})
	}
}

func (n *Instance) noteAvailable(now clock.Time, s *client.Status) {
	can := s.Phase == client.Attached && s.GraceUntil == 0 && s.Lease != client.Lost
	took, changed := n.grantable.set(now, can)
	if !changed {
		return
	}
	e := NodeEvent{State: stateUnavailable, Took: took}
	if can {
		e.State = stateAvailable
	}
	n.tell(e)
}

func (w *observer) tellSession(before, after *client.Status) {
	if before.Session != 0 {
		w.node.tell(NodeEvent{State: after.Ended.String(), Session: SessionText(before.Session)})
	}
	if after.Session != 0 {
		w.node.tell(NodeEvent{State: stateOpened, Session: SessionText(after.Session)})
	}
}

// SessionText returns a session ID in the form in which Peek shows it.
func SessionText(id lockfsm.SessionID) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprint(uint64(id))
}

// grantable measures for how long the group could grant locks to this instance. begin must be
// called first.
type grantable struct {
	mu    sync.Mutex // guards the fields below
	began clock.Time
	since clock.Time // the start, or the last change of the state
	can   bool
	total time.Duration // how long locks could be granted before that change
}

func (g *grantable) begin(now clock.Time) { g.began, g.since = now, now }

// set reports whether the state has changed, and how long the previous state has lasted.
func (g *grantable) set(now clock.Time, can bool) (lasted time.Duration, changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if can == g.can {
		return 0, false
	}
	lasted = now.Sub(g.since)
	if g.can {
		g.total += lasted
	}
	g.can, g.since = can, now
	return lasted, true
}

func (g *grantable) share(now clock.Time) (age, granted time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	granted = g.total
	if g.can {
		granted += now.Sub(g.since)
	}
	return now.Sub(g.began), granted
}

type timedStore struct {
	raftlog.Store
	node *Instance
}

func (n *Instance) timed(s raftlog.Store) raftlog.Store {
	if n.config.Hooks == nil || n.config.Hooks.Synced == nil || s.Volatile() {
		return s
	}
	return timedStore{s, n}
}

// Save implements raftlog.Store. It reports each failed batch, and each successful batch that
// contains entries or a snapshot.
func (s timedStore) Save(b raftlog.Batch) error {
	began := s.node.env.clock.Now()
	err := s.Store.Save(b)
	if len(b.Entries) == 0 && b.Snapshot == nil && err == nil {
		return nil
	}
	if h := s.node.config.Hooks; h != nil && h.Synced != nil {
		took := s.node.env.clock.Now().Sub(began)
		s.node.trace.Later(func() { h.Synced(took, err) })
	}
	return err
}
