package mortise

import (
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// picture is what this instance knows of the members without asking: the first page that the leader
// has answered last, and the names and zones of the voters. It is bounded by one page and by the
// number of replicas.
type picture struct {
	mu      sync.Mutex // guards the rest; never held across a wait
	at      clock.Time // of the page
	fetched bool       // there is a page
	members []Member   // never changed once it is stored
	total   int
	voters  map[nodeid.ID]person
}

// person is what people call an instance. Its texts are escaped.
type person struct{ name, zone string }

// keep takes what the leader has answered.
func (p *picture) keep(now clock.Time, page *query.MemberList, first bool) {
	list := membersOf(page)
	p.mu.Lock()
	defer p.mu.Unlock()
	if first {
		p.at, p.fetched, p.members, p.total = now, true, list, int(page.Total)
	}
	for _, each := range page.Names {
		p.learn(queries.ID(each.Instance), person{name: plain.Text(each.Name)})
	}
	for i, m := range page.Members {
		if m.Votes {
			p.learn(queries.ID(m.Instance), person{list[i].Name, list[i].Zone})
		}
	}
}

// last returns the page that was kept last, and how old it is; zero means that there is none.
func (p *picture) last(now clock.Time) (members []Member, total int, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fetched {
		return nil, 0, 0
	}
	return slices.Clone(p.members), p.total, max(now.Sub(p.at), 1)
}

// learn notes a name, and keeps a zone that is known. The caller holds mu.
func (p *picture) learn(id nodeid.ID, is person) {
	if p.voters == nil {
		p.voters = map[nodeid.ID]person{}
	}
	if is.name == "" || id.IsZero() || len(p.voters) >= votersKept && p.voters[id] == (person{}) {
		return
	}
	if is.zone == "" {
		is.zone = p.voters[id].zone
	}
	p.voters[id] = is
}

// votersKept bounds the names that are kept: of the replicas of now, and of some that were until a
// short while ago.
const votersKept = 64

// people returns the names and zones of the replicas, and of those that gossip sees. It keeps those
// of the replicas, for when gossip does not see them any more: a person looks for a name, not for
// an address.
func (p *picture) people(c *cluster.Status) map[nodeid.ID]person {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[nodeid.ID]person, len(c.Members)+len(p.voters))
	for id, is := range p.voters {
		all[id] = is
	}
	for _, m := range c.Members {
		if m.Name != "" {
			all[m.Instance] = person{plain.Text(m.Name), plain.Text(m.Zone)}
		}
	}
	p.voters = map[nodeid.ID]person{}
	for _, v := range c.Voters {
		p.learn(v.Instance, all[v.Instance])
	}
	return all
}

// people returns what is known of the instances that matter: those that gossip sees, and the
// replicas.
func (n *Node) people(c *cluster.Status) map[nodeid.ID]person {
	if r := n.replica.Load(); r != nil {
		n.known.mu.Lock()
		for id, name := range r.registry.ReplicaNames() { // none if it has never led
			n.known.learn(id, person{name: plain.Text(name)})
		}
		n.known.mu.Unlock()
	}
	return n.known.people(c)
}

// nameOf returns the name of an instance, or its ID if no name is known.
func nameOf(people map[nodeid.ID]person, instance nodeid.ID) string {
	if instance.IsZero() {
		return ""
	}
	if name := people[instance].name; name != "" {
		return name
	}
	return instance.String()
}
