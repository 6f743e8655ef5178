package instance

import (
	"context"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// This file lists what an instance calls of the parts that it connects. The test of the wiring puts
// recorders in their place, and compares what each event calls with a table.

// sessionClient is the part of *client.Client that concerns all sessions of an instance.
type sessionClient interface {
	Follows(former []byte)
	Rebind(record []byte, targets []nodeid.Endpoint)
	SetTargets(targets []nodeid.Endpoint)
	Receive(from nodeid.ID, replies []byte)
	Down(peer nodeid.ID)
	Leaving()
	WaitReleased(ctx context.Context) error
	CloseSession(ctx context.Context) error
	Close()
	Status() client.Status
}

// port is the part of *transport.Port that an instance uses once it has started.
type port interface {
	Send(to nodeid.Endpoint, f transport.Frame) error
	SendDuplicates(to nodeid.Endpoint, messages []*raftpb.Message)
	SendSnapshot(ctx context.Context, to nodeid.Endpoint, m *raftpb.Message) error
	Identify(self transport.Self)
	Prefer(addrs []string)
	Spare(leader nodeid.ID, voters []nodeid.Endpoint, count int)
	Linked(instance nodeid.ID) bool
	Met(instance nodeid.ID) (transport.Identity, bool)
	To(addr string, to nodeid.ID) *transport.Remote
	Close() error
}

// membership is the part of *cluster.Cluster that an instance uses.
type membership interface {
	replica.Cluster
	PeerLost(instance nodeid.ID)
	RemovedPeer(instance nodeid.ID, addr string)
	Retired(raft uint64)
	WentBack(why error)
	HasLeader(known bool)
	Floor(unixMS int64)
	Recover(ctx context.Context, group uint64) error
	QueryStatus(ctx context.Context) (cluster.VoterStatus, error)
	QueryStatusFor(ctx context.Context, raft uint64) (cluster.VoterStatus, error)
	Report() (voters.Report, bool)
	Heir(name string) (cluster.Heir, bool)
	Status() cluster.Status
	Leave(ctx context.Context, alone bool)
	Close() error
}

// replicaLog is the part of *raftlog.Log that an instance uses.
type replicaLog interface {
	Step(m *raftpb.Message)
	StepDuplicate(m *raftpb.Message)
	PeerLost(id uint64)
	Unreachable(id uint64)
	Propose(term uint64, batch []byte) bool
	Confirm(term, n uint64)
	Change(term uint64, c raftlog.Change) bool
	Transfer(ctx context.Context, to uint64) error
	Campaign()
	Survey() raftlog.Survey
	Status() raftlog.Status
	Close() error
}

// leases is the part of *keeper.Keeper that an instance uses.
type leases interface {
	replica.Keeper
	ReceiveFrom(by keeper.Sender, renewals, commands []byte)
	Down(peer nodeid.ID)
	AllBound()
	ProposeEnd(term uint64, e keeper.Ending)
	Left(ctx context.Context, sessions []lockfsm.SessionID) []time.Duration
	Close()
}

// startLog starts the log of a replica.
func startLog(c raftlog.Config) (replicaLog, error) {
	log, err := raftlog.Start(c)
	if err != nil {
		return nil, err
	}
	return log, nil
}
