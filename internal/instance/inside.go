package instance

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
)

// Inside returns the internals of this instance for the tests in internal/e2e.
func (n *Instance) Inside() outside.Inside {
	return outside.Inside{
		Address: n.address, Client: n.client, Clients: n.clients, Port: n.port, Handler: inbound{n},
		Services: n.services, Leader: n.leader, Query: n.queryHere,
		Key: func() nodeid.Key { return *n.key.Load() }, Cluster: n.cluster, Replica: n.insideReplica,
		Learning: n.learning.Load,
	}
}

func (n *Instance) insideReplica() *outside.Replica {
	r := n.replica.Load()
	if r == nil {
		return nil
	}
	return &outside.Replica{
		Group: r.Group, ID: r.ID, Log: r.log, Keeper: r.keeper, Core: r.core, Questions: r.core.Questions,
		SessionIndex: &r.core.SessionIndex,
		Role:         r.Role, Configuration: r.Configuration, Settings: r.Settings,
		Counts: r.Counts, Usage: r.Usage, SendSnapshot: r.sendSnapshot, Retire: func(err error) { n.retire(r, err) },
	}
}
