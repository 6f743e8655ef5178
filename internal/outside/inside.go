package outside

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// Inside gives tests access to the parts of a node that no exported method returns.
type Inside struct {
	Address string
	Client  *client.Client // the client of the node's own session
	Clients func() []*client.Client
	Port    *transport.Port
	Handler transport.Handler // handles what arrives at the port
	Key     func() nodeid.Key // key of the present incarnation
	Cluster func() *cluster.Cluster
	Replica func() *Replica // nil unless this instance votes
	// Reports whether the instance is about to ask for the names of the replicas.
	Learning func() bool

	Services transport.Services
	// A connection to the presumed leader.
	Leader func() (transport.Conn, error)
	// Query asks the replica of this node, if that replica leads.
	Query func(context.Context, replica.Question) (*replica.Answer, error)
}

// ID returns the node ID of the present incarnation.
func (i Inside) ID() nodeid.ID { return i.Key().ID() }

// Replica gives access to the replica of a voter.
type Replica struct {
	Group, ID     uint64
	Log           *raftlog.Log
	Keeper        *keeper.Keeper
	Core          *replica.Core // owned by the log's owner goroutine
	Questions     *replica.Questions
	SessionIndex  *replica.SessionIndex
	Role          func() raftlog.Role
	Configuration func() *raftlog.Configuration
	Settings      func() *replica.Settings // the group's settings; nil if they are not known
	Counts        func() lockfsm.Counts    // counts of the state machine after the owner's last turn
	Usage         func() lockfsm.Usage     // usage of the state machine after the owner's last turn
	SendSnapshot  func(m *raftpb.Message, done func(ok bool))
	Retire        func(error) // ends the replica in the same way as an error of the replica
}
