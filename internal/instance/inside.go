package instance

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// Inside returns the internals of this instance for the tests in internal/lab/e2e.
func (n *Instance) Inside() outside.Inside {
	port, _ := n.port.(*transport.Port)
	return outside.Inside{
		Address: n.address, Client: n.client, Clients: n.Clients, Port: port, Handler: inbound{n},
		Services: n.services, Leader: n.leader, Query: n.queryHere,
		Key: func() nodeid.Key { return *n.key.Load() }, Cluster: n.group, Replica: n.insideReplica,
		Learning: n.learning.Load,
	}
}

func (n *Instance) insideReplica() *outside.Replica {
	r := n.replica.Load()
	if r == nil {
		return nil
	}
	log, _ := r.log.(*raftlog.Log)
	keeper, _ := r.keeper.(*keeper.Keeper)
	return &outside.Replica{
		Group: r.Group, ID: r.ID, Log: log, Keeper: keeper, Core: r.core, Questions: r.core.Questions,
		SessionIndex: &r.core.SessionIndex,
		Role:         r.Role, Configuration: r.Configuration, Settings: r.Settings,
		Counts: r.Counts, Usage: r.Usage, SendSnapshot: r.sendSnapshot, Retire: func(err error) { n.retire(r, err) },
	}
}
