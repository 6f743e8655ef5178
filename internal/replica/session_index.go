package replica

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// SessionIndex is the leader's index of sessions for the voter reconciler. The log's owner
// goroutine writes it, and the cluster's owner goroutine reads it. The writer publishes only
// changes, because publishing a hundred thousand sessions would delay the callers of locks. A
// publication requests a pass only if the reader has read the previous publication, so many
// simultaneous changes cause few passes.
//
// A pass reads only the instances that may vote, and finds them by their names. It uses only the
// counts of all other sessions.
type SessionIndex struct {
	// sessions with unpublished changes; owned by the log's owner goroutine
	changed []lockfsm.SessionID
	// the next publication must request a pass, because the last one was read or is being read
	wanted atomic.Bool

	mu    sync.Mutex            // guards the fields below; held only for assignments
	anew  bool                  // a term as leader has begun; its sessions are in the field begun
	begun []lockfsm.SessionInfo // shared with the keeper, and never changed
	news  []indexed

	table // owned by the cluster's owner goroutine

	// number of members in the census, for any goroutine
	members atomic.Int64
	// names of the replicas' instances; the map is never changed
	named atomic.Pointer[map[nodeid.ID]string]
}

// Begin publishes all sessions at the beginning of a term as leader. It does not copy them, because
// copying a million sessions would take a large part of an election timeout.
func (g *SessionIndex) Begin(sessions []lockfsm.SessionInfo) {
	g.changed = g.changed[:0]
	g.mu.Lock()
	defer g.mu.Unlock()
	g.anew, g.begun, g.news = true, sessions, nil
}

// Note records the sessions that a result may have opened, changed or ended.
func (g *SessionIndex) Note(result *lockfsm.Result) {
	switch result.Kind {
	case lockfsm.Open, lockfsm.Leaving, lockfsm.Close, lockfsm.Expire:
		g.changed = append(g.changed, result.Session)
	}
}

// Publish publishes the changed sessions, and reports whether the caller must request a pass.
func (g *SessionIndex) Publish(find func(lockfsm.SessionID) (lockfsm.SessionInfo, bool)) bool {
	if len(g.changed) == 0 {
		return false
	}
	slices.Sort(g.changed)
	var news []indexed
	for _, id := range slices.Compact(g.changed) {
		s, ok := find(id)
		s.ID = id
		news = append(news, indexed{session: s, ended: !ok})
	}
	g.changed = g.changed[:0]
	g.mu.Lock()
	g.news = append(g.news, news...)
	g.mu.Unlock()
	return g.wanted.Swap(false)
}

// Read adds the sessions to the facts of a pass, which must already contain the founders and the
// replicas. Only the cluster's owner goroutine may call Read and use the facts.
func (g *SessionIndex) Read(f *voters.Facts, linked func(instance nodeid.ID) bool) {
	g.catchUp()
	g.matter(f)
	for _, k := range g.pick(len(f.Settings.Founders) == 0) {
		f.Registered = append(f.Registered, k.registered(linked))
	}
	if len(f.Settings.Founders) > 0 {
		f.Others = others{&g.table, linked}
	}
}

// matter finds the names on which the choice of voters depends: the names of the founders, and
// the last known names of the instances with a replica.
func (g *SessionIndex) matter(f *voters.Facts) {
	before, now := map[nodeid.ID]string{}, map[nodeid.ID]string{}
	if last := g.named.Load(); last != nil {
		before = *last
	}
	g.relevant = make(map[string]bool, len(f.Settings.Founders)+len(f.Replicas))
	for _, name := range f.Settings.Founders {
		g.relevant[name] = true
	}
	for _, r := range f.Replicas {
		name := before[r.Instance]
		if known := g.instances[r.Instance]; len(known) > 0 {
			name = known[len(known)-1].record.Name
		}
		if name != "" && !r.Instance.IsZero() {
			now[r.Instance], g.relevant[name] = name, true
		}
	}
	if !maps.Equal(before, now) {
		g.named.Store(&now)
	}
}

// catchUp applies the published changes. A later change of a session replaces an earlier one.
func (g *SessionIndex) catchUp() {
	g.wanted.Store(true) // before taking the changes, so that any later change requests a pass
	g.mu.Lock()
	begun, news, anew := g.begun, g.news, g.anew
	g.begun, g.news, g.anew = nil, nil, false
	g.mu.Unlock()
	if anew || g.known == nil {
		g.table = table{
			known:     make(map[lockfsm.SessionID]*indexed, len(begun)),
			instances: map[nodeid.ID][]*indexed{}, names: map[string][]*indexed{},
		}
	}
	for _, s := range begun {
		if !s.Gone {
			g.enter(s)
		}
	}
	for i := range news {
		n := &news[i]
		switch k := g.known[n.session.ID]; {
		case k == nil && !n.ended:
			g.enter(n.session)
		case k != nil && n.ended:
			g.strike(k)
		case k != nil:
			g.marked(k, n.session.Leaving)
		}
	}
	g.members.Store(int64(g.census.members))
}

// Members returns the number of members at the last pass. It is safe for concurrent use.
func (g *SessionIndex) Members() int { return int(g.members.Load()) }

// ReplicaNames returns the names of the instances that had a replica at the last pass. It is safe
// for concurrent use. The map must not be changed.
func (g *SessionIndex) ReplicaNames() map[nodeid.ID]string {
	if names := g.named.Load(); names != nil {
		return *names
	}
	return nil
}
