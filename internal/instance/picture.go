package instance

import (
	"sync"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// picture holds data about the members for calls that send no query.
type picture struct {
	mu     sync.Mutex // guards voters
	voters map[nodeid.ID]InstanceName
}

// InstanceName is the name and zone of an instance. Its texts are escaped.
type InstanceName struct{ Name, Zone string }

// InstanceNames contains the known names and zones of instances. A few of them are looked up, and
// gossip can know thousands, so a name is searched and escaped only when it is looked up.
type InstanceNames struct {
	Members []cluster.Member           // not escaped
	kept    map[nodeid.ID]InstanceName // used if Members has no name
}

// Of returns the name and the zone of an instance. They are empty if they are not known.
func (p InstanceNames) Of(instance nodeid.ID) InstanceName {
	for i := range p.Members {
		if m := &p.Members[i]; m.Instance == instance && m.Name != "" {
			return InstanceName{plain.Text(m.Name), plain.Text(m.Zone)}
		}
	}
	return p.kept[instance]
}

// read stores the names and zones of the voters in an answer from the leader.
func (p *picture) read(page *query.MemberList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, each := range page.Names {
		p.learn(queries.ID(each.Instance), InstanceName{Name: plain.Text(each.Name)})
	}
	for _, m := range page.Members {
		if m.Votes {
			p.learn(queries.ID(m.Instance), InstanceName{plain.Text(m.Name), plain.Text(m.Zone)})
		}
	}
}

// learn stores a name and a zone. An empty zone does not replace a known zone. The caller must hold
// mu.
func (p *picture) learn(id nodeid.ID, is InstanceName) {
	if p.voters == nil {
		p.voters = map[nodeid.ID]InstanceName{}
	}
	if is.Name == "" || id.IsZero() || len(p.voters) >= votersKept && p.voters[id] == (InstanceName{}) {
		return
	}
	if is.Zone == "" {
		is.Zone = p.voters[id].Zone
	}
	p.voters[id] = is
}

// votersKept limits the stored names of present and former replicas.
const votersKept = 64

// names returns the names and zones of the replicas and of the instances that gossip knows. It
// stores those of the replicas, in case gossip loses an instance.
func (p *picture) names(c *cluster.Status) InstanceNames {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := InstanceNames{Members: c.Members, kept: p.voters}
	p.voters = map[nodeid.ID]InstanceName{}
	for _, v := range c.Voters {
		p.learn(v.Instance, all.Of(v.Instance))
	}
	return all
}

func (n *Instance) names(c *cluster.Status) InstanceNames {
	if r := n.replica.Load(); r != nil {
		n.known.mu.Lock()
		// The map is empty if this replica has never been the leader.
		for id, name := range r.core.SessionIndex.ReplicaNames() {
			n.known.learn(id, InstanceName{Name: plain.Text(name)})
		}
		n.known.mu.Unlock()
	}
	return n.known.names(c)
}

// Name returns the name of an instance, or its ID if the name is unknown. It returns "" for the
// zero ID.
func (p InstanceNames) Name(instance nodeid.ID) string {
	if instance.IsZero() {
		return ""
	}
	if name := p.Of(instance).Name; name != "" {
		return name
	}
	return instance.String()
}
