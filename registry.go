package mortise

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/lockfsm"
)

// registry is who has a session, as the leader's look at the voters needs it: written by the log's owner goroutine, read by the
// cluster's. A list of all sessions is made only when somebody has read the last one, so that a thousand instances that open their
// sessions at once cost a few lists and not a thousand.
type registry struct {
	changed bool        // owned by the log's owner goroutine: the list is not what was published
	wanted  atomic.Bool // the last list was read

	mu       sync.Mutex // guards sessions; held for an assignment
	sessions []lockfsm.SessionInfo

	records map[lockfsm.SessionID]record // owned by the cluster's owner goroutine: decoded already
}

// begin publishes the sessions at the begin of a lead.
func (g *registry) begin(sessions []lockfsm.SessionInfo) {
	g.changed = false
	g.publish(sessions)
}

// note takes a result that may have changed who has a session.
func (g *registry) note(result lockfsm.Result) {
	switch result.Kind {
	case lockfsm.Open, lockfsm.Leaving, lockfsm.Close, lockfsm.Expire:
		g.changed = true
	}
}

// due reports whether a new list is to be published.
func (g *registry) due() bool {
	if !g.changed || !g.wanted.Swap(false) {
		return false
	}
	g.changed = false
	return true
}

func (g *registry) publish(sessions []lockfsm.SessionInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions = sessions
}

// read returns who has a session, all their records, and the longest TTL. Only the cluster's owner goroutine calls it.
func (g *registry) read(linked func(instance uint64) bool) (list []voters.Registered, records []record, longest time.Duration) {
	g.mu.Lock()
	sessions := g.sessions
	g.mu.Unlock()
	g.wanted.Store(true)
	last := g.records
	g.records = make(map[lockfsm.SessionID]record, len(sessions))
	list, records = make([]voters.Registered, 0, len(sessions)), make([]record, 0, len(sessions))
	for _, s := range sessions {
		r, known := last[s.ID]
		if !known {
			r = decodeRecord(s.Record)
		}
		g.records[s.ID] = r
		records, longest = append(records, r), max(longest, s.TTL)
		instance := r.id()
		if instance == 0 {
			continue // of another build, or another library: nobody who could vote
		}
		list = append(list, voters.Registered{
			Instance: instance, Name: r.Name, Zone: r.Zone, Leaving: s.Leaving, Session: true, Reachable: linked(instance),
			Addr: r.Addr, Order: uint64(s.ID),
		})
	}
	return list, records, longest
}
