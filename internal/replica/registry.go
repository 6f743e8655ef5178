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

// Registry is who has a session, as the leader's look at the voters needs it: written by the log's
// owner goroutine, read by the cluster's. The log's owner hands over what has changed, and no list
// of all: with a hundred thousand sessions that would hold up every caller that waits for a lock. A
// look is called for only when the last news were read, so that a thousand instances that open
// their sessions at once cost a few looks and not a thousand. The news themselves are always handed
// over: the log of an idle group may be silent for seconds.
//
// A look reads what matters for the voters and no more: the instances that may vote, found by their
// names, and counts of the rest. So its cost does not grow with the sessions of instances that
// cannot vote.
type Registry struct {
	changed []lockfsm.SessionID // owned by the log's owner goroutine: those of whom there is something to hand over
	wanted  atomic.Bool         // whoever hands over news calls for a look: the last ones are read, or about to be

	mu    sync.Mutex            // guards what follows; held for an assignment
	anew  bool                  // a lead has begun: with the sessions that follow, and the news since
	begun []lockfsm.SessionInfo // shared with the keeper, and never changed
	news  []registration

	table // owned by the cluster's owner goroutine

	members atomic.Int64                         // of the census, for any goroutine
	named   atomic.Pointer[map[nodeid.ID]string] // names of the replicas' instances; a map that is never changed
}

// Begin hands over all sessions at the beginning of a lead. It copies none, since a million of them
// would hold up the log for a large part of an election timeout.
func (g *Registry) Begin(sessions []lockfsm.SessionInfo) {
	g.changed = g.changed[:0]
	g.mu.Lock()
	defer g.mu.Unlock()
	g.anew, g.begun, g.news = true, sessions, nil
}

// Note takes a result that may have changed who has a session.
func (g *Registry) Note(result *lockfsm.Result) {
	switch result.Kind {
	case lockfsm.Open, lockfsm.Leaving, lockfsm.Close, lockfsm.Expire:
		g.changed = append(g.changed, result.Session)
	}
}

// Publish hands over what has changed, if anything has, and reports whether it calls for a look.
func (g *Registry) Publish(find func(lockfsm.SessionID) (lockfsm.SessionInfo, bool)) bool {
	if len(g.changed) == 0 {
		return false
	}
	slices.Sort(g.changed)
	var news []registration
	for _, id := range slices.Compact(g.changed) {
		s, ok := find(id)
		s.ID = id
		news = append(news, registration{session: s, ended: !ok})
	}
	g.changed = g.changed[:0]
	g.mu.Lock()
	g.news = append(g.news, news...)
	g.mu.Unlock()
	return g.wanted.Swap(false)
}

// Read adds to the facts of a look, which name the founders and the replicas, who has a session.
// Only the cluster's owner goroutine calls it, and it alone may use the facts.
func (g *Registry) Read(f *voters.Facts, linked func(instance nodeid.ID) bool) {
	g.catchUp()
	g.matter(f)
	for _, k := range g.pick(len(f.Settings.Founders) == 0) {
		f.Registered = append(f.Registered, k.registered(linked))
	}
	if len(f.Settings.Founders) > 0 {
		f.Others = others{&g.table, linked}
	}
}

// matter finds the names that matter for the voters: those of the founders, and those under which
// an instance that has a replica is registered, or was. A later life of it is known by its name.
func (g *Registry) matter(f *voters.Facts) {
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

// catchUp takes the news in. Those of one session are in order, and a later one replaces an earlier
// one.
func (g *Registry) catchUp() {
	g.wanted.Store(true) // before they are taken: whoever hands over more from now on calls for the next look
	g.mu.Lock()
	begun, news, anew := g.begun, g.news, g.anew
	g.begun, g.news, g.anew = nil, nil, false
	g.mu.Unlock()
	if anew || g.known == nil {
		g.table = table{
			known:     make(map[lockfsm.SessionID]*registration, len(begun)),
			instances: map[nodeid.ID][]*registration{}, names: map[string][]*registration{},
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

// Members returns how many sessions are an instance, or a program that only takes locks, as of the
// last look. Any goroutine may call it.
func (g *Registry) Members() int { return int(g.members.Load()) }

// ReplicaNames returns how the instances are called that have a replica, as of the last look. Any
// goroutine may call it. The map must not be changed.
func (g *Registry) ReplicaNames() map[nodeid.ID]string {
	if names := g.named.Load(); names != nil {
		return *names
	}
	return nil
}
