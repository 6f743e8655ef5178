package mortise

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// registry is who has a session, as the leader's look at the voters needs it: written by the log's owner goroutine, read by the
// cluster's. The log's owner hands over what has changed, and no list of all: with a hundred thousand sessions that would hold up everybody
// who waits for a lock. A look is called for only when the last news were read, so that a thousand instances that open their sessions at once
// cost a few looks and not a thousand. The news themselves are always handed over: the log of an idle group may be silent for seconds.
type registry struct {
	changed []lockfsm.SessionID // owned by the log's owner goroutine: those of whom there is something to hand over
	wanted  atomic.Bool         // whoever hands over news calls for a look: the last ones are read, or about to be

	mu   sync.Mutex // guards what follows; held for an assignment
	anew bool       // the news are all there is: a lead has begun
	news []registration

	known []registration // owned by the cluster's owner goroutine; ascending by session
}

// registration is one session and what its record says.
type registration struct {
	session lockfsm.SessionInfo
	ended   bool
	record  record
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

// read returns who has a session, all their records, and the longest TTL. Only the cluster's owner goroutine calls it.
func (g *registry) read(linked func(instance nodeid.ID) bool) (list []voters.Registered, records []record, longest time.Duration) {
	g.catchUp()
	list, records = make([]voters.Registered, 0, len(g.known)), make([]record, 0, len(g.known))
	for _, k := range g.known {
		s, r := k.session, k.record
		longest = max(longest, s.TTL)
		if r.Guest || s.Opener.Capability != [32]byte{} {
			continue // comes for one lock and goes: it neither votes nor has a word in what all have to agree on
		}
		records = append(records, r)
		instance := r.id()
		if instance.IsZero() || instance != s.Opener.Instance {
			continue // of another build, or another library: nobody who could vote
		}
		list = append(list, voters.Registered{
			Instance: instance, Name: r.Name, Zone: r.Zone, Leaving: s.Leaving, Session: true, Reachable: linked(instance),
			Addr: r.Addr, Order: uint64(s.ID),
		})
	}
	return list, records, longest
}

// catchUp takes the news in. Those of one session are in order, and a later one replaces an earlier one.
func (g *registry) catchUp() {
	g.wanted.Store(true) // before they are taken: whoever hands over more from now on calls for the next look
	g.mu.Lock()
	news, anew := g.news, g.anew
	g.news, g.anew = nil, false
	g.mu.Unlock()
	if anew {
		g.known = nil
	}
	gone := false
	for _, n := range news {
		i, found := slices.BinarySearchFunc(g.known, n.session.ID, func(k registration, id lockfsm.SessionID) int { return cmp.Compare(k.session.ID, id) })
		switch {
		case found:
			g.known[i].session.Leaving, g.known[i].ended = n.session.Leaving, n.ended
			gone = gone || n.ended
		case !n.ended:
			n.record = decodeRecord(n.session.Record)
			g.known = slices.Insert(g.known, i, n) // at the end: IDs ascend
		}
	}
	if gone {
		g.known = slices.DeleteFunc(g.known, func(k registration) bool { return k.ended })
	}
}
