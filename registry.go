package mortise

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// registry is who has a session, as the leader's look at the voters needs it: written by the log's
// owner goroutine, read by the cluster's. The log's owner hands over what has changed, and no list
// of all: with a hundred thousand sessions that would hold up every caller that waits for a lock. A
// look is called for only when the last news were read, so that a thousand instances that open
// their sessions at once cost a few looks and not a thousand. The news themselves are always handed
// over: the log of an idle group may be silent for seconds.
//
// A look reads what matters for the voters and no more: the instances that may vote, found by their
// names, and counts of the rest. So its cost does not grow with the sessions of instances that
// cannot vote.
type registry struct {
	changed []lockfsm.SessionID // owned by the log's owner goroutine: those of whom there is something to hand over
	wanted  atomic.Bool         // whoever hands over news calls for a look: the last ones are read, or about to be

	mu   sync.Mutex // guards what follows; held for an assignment
	anew bool       // the news are all there is: a lead has begun
	news []registration

	table // owned by the cluster's owner goroutine

	members  atomic.Int64                         // of the census, for any goroutine
	replicas atomic.Pointer[map[nodeid.ID]string] // names of the replicas' instances; a map that is never changed
}

// table is the registry as its reader has it.
type table struct {
	known     map[lockfsm.SessionID]*registration
	instances map[nodeid.ID][]*registration // those that are instances
	names     map[string][]*registration    // likewise
	census    census
	electable []*registration // all instances, ascending by session; nil: not made since something changed
	relevant  map[string]bool // names that matter for the voters, as of the last look
}

// registration is one session and what its record says.
type registration struct {
	session  lockfsm.SessionInfo
	ended    bool
	record   record
	instance nodeid.ID // that it registers, as its record says and its opener has proved; zero: none
}

// begin hands over all sessions at the begin of a lead.
func (g *registry) begin(sessions []lockfsm.SessionInfo) {
	news := make([]registration, 0, len(sessions))
	for _, s := range sessions {
		if !s.Gone {
			news = append(news, registration{session: s})
		}
	}
	g.changed = g.changed[:0]
	g.mu.Lock()
	defer g.mu.Unlock()
	g.anew, g.news = true, news
}

// note takes a result that may have changed who has a session.
func (g *registry) note(result *lockfsm.Result) {
	switch result.Kind {
	case lockfsm.Open, lockfsm.Leaving, lockfsm.Close, lockfsm.Expire:
		g.changed = append(g.changed, result.Session)
	}
}

// publish hands over what has changed, if anything has, and reports whether it calls for a look.
func (g *registry) publish(find func(lockfsm.SessionID) (lockfsm.SessionInfo, bool)) bool {
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

// read adds to the facts of a look, which name the founders and the replicas, who has a session.
// Only the cluster's owner goroutine calls it, and it alone may use the facts.
func (g *registry) read(f *voters.Facts, linked func(instance nodeid.ID) bool) {
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
func (g *registry) matter(f *voters.Facts) {
	before, now := map[nodeid.ID]string{}, map[nodeid.ID]string{}
	if last := g.replicas.Load(); last != nil {
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
		g.replicas.Store(&now)
	}
}

// pick returns the registrations that matter for the voters, ascending by session.
func (t *table) pick(all bool) (list []*registration) {
	order := func(a, b *registration) int { return cmp.Compare(a.session.ID, b.session.ID) }
	switch {
	case all && t.electable == nil:
		for _, same := range t.instances {
			list = append(list, same...)
		}
		slices.SortFunc(list, order)
		t.electable = list
	case all:
		list = t.electable
	default:
		for name := range t.relevant {
			list = append(list, t.names[name]...)
		}
		slices.SortFunc(list, order)
	}
	return list
}

func (k *registration) registered(linked func(instance nodeid.ID) bool) voters.Registered {
	return voters.Registered{
		Instance: k.instance, Name: k.record.Name, Zone: k.record.Zone, Leaving: k.session.Leaving, Session: true,
		Reachable: linked(k.instance), Addr: k.record.Addr, Order: uint64(k.session.ID),
	}
}

// others are the instances that matter for no vote. It implements voters.Others.
type others struct {
	table  *table
	linked func(instance nodeid.ID) bool
}

// All implements voters.Others.
func (o others) All() iter.Seq[voters.Registered] {
	return func(yield func(voters.Registered) bool) {
		for _, same := range o.table.instances {
			for _, k := range same {
				if !o.table.relevant[k.record.Name] && !yield(k.registered(o.linked)) {
					return
				}
			}
		}
	}
}

// Has implements voters.Others.
func (o others) Has(instance nodeid.ID) bool { return len(o.table.instances[instance]) > 0 }

// catchUp takes the news in. Those of one session are in order, and a later one replaces an earlier
// one.
func (g *registry) catchUp() {
	g.wanted.Store(true) // before they are taken: whoever hands over more from now on calls for the next look
	g.mu.Lock()
	news, anew := g.news, g.anew
	g.news, g.anew = nil, false
	g.mu.Unlock()
	if anew || g.known == nil {
		g.table = table{
			known:     make(map[lockfsm.SessionID]*registration, len(news)),
			instances: map[nodeid.ID][]*registration{}, names: map[string][]*registration{},
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

// enter takes in a session that is new.
func (t *table) enter(s lockfsm.SessionInfo) {
	k := &registration{session: s, record: decodeRecord(s.Record)}
	k.session.Record, k.record.leaving = nil, s.Leaving // it is decoded
	t.known[s.ID] = k
	t.census.lives(s.TTL, 1)
	if k.isMember() {
		t.census.members++
	}
	if !k.counts() {
		return
	}
	t.census.add(&k.record)
	// A record of another build or another library names no instance that could vote.
	if id := k.record.id(); !id.IsZero() && id == s.Opener.Instance {
		k.instance, t.electable = id, nil
		t.instances[id], t.names[k.record.Name] = append(t.instances[id], k), append(t.names[k.record.Name], k)
	}
}

// marked takes in whether the instance of a session has said that it leaves.
func (t *table) marked(k *registration, leaving bool) {
	if k.session.Leaving == leaving {
		return
	}
	if k.counts() {
		t.census.remove(&k.record)
	}
	k.session.Leaving, k.record.leaving = leaving, leaving
	if k.counts() {
		t.census.add(&k.record)
	}
}

// strike takes out a session that has ended.
func (t *table) strike(k *registration) {
	delete(t.known, k.session.ID)
	t.census.lives(k.session.TTL, -1)
	if k.isMember() {
		t.census.members--
	}
	if !k.counts() {
		return
	}
	t.census.remove(&k.record)
	if !k.instance.IsZero() {
		t.electable = nil
		without(t.instances, k.instance, k)
		without(t.names, k.record.Name, k)
	}
}

// without removes k from the list of a key.
func without[K comparable](lists map[K][]*registration, key K, k *registration) {
	left := slices.DeleteFunc(lists[key], func(o *registration) bool { return o == k })
	if lists[key] = left; len(left) == 0 {
		delete(lists, key)
	}
}

// counts reports whether the session has a word in what all have to agree on. A guest comes for one
// lock and goes: it neither votes nor is asked.
func (k *registration) counts() bool {
	return !k.record.Guest && k.session.Opener.Capability == [32]byte{}
}

// isMember reports whether the session stands for an instance or a program, and is not one of
// several that its user has opened.
func (k *registration) isMember() bool { return !k.record.Own }
