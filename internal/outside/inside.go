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

// Inside is what the tests of whole nodes reach of a node beyond its exported methods.
type Inside struct {
	Address  string                  // advertised
	Client   *client.Client          // of its own session
	Clients  func() []*client.Client // one for each session
	Port     *transport.Port
	Handler  transport.Handler // of what arrives at the port
	Key      func() nodeid.Key // of the present life
	Cluster  func() *cluster.Cluster
	Replica  func() *Replica // nil unless this instance votes
	Learning func() bool     // it is about to ask how the replicas are called

	Services transport.Services             // what others may ask
	Leader   func() (transport.Conn, error) // the way to the instance that is believed to lead
	// Look asks the replica here, if it leads.
	Look func(context.Context, replica.Question) (*replica.Answer, error)
}

// ID returns the ID of the present life.
func (i Inside) ID() nodeid.ID { return i.Key().ID() }

// Replica is one replica of a voter.
type Replica struct {
	Group, ID     uint64
	Log           *raftlog.Log
	Keeper        *keeper.Keeper
	Core          *replica.Core // owned by the log's owner goroutine
	Questions     *replica.Questions
	SessionIndex  *replica.SessionIndex
	Role          func() raftlog.Role
	Configuration func() *raftlog.Configuration
	Settings      func() *replica.Settings // the group's; nil if they are not known
	Counts        func() lockfsm.Counts    // of the machine, at the end of the last turn
	Usage         func() lockfsm.Usage     // likewise
	SendSnapshot  func(m *raftpb.Message, done func(ok bool))
	Retire        func(error) // ends it as an error of its own would
}
