package instance

import (
	"context"
	"errors"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// ownReplica is the replica of a voter or a learner: a copy of the log, its state machine, and the
// keeper. The methods of replica.Host run on the log's owner goroutine.
type ownReplica struct {
	node *Instance
	*replica.View
	core *replica.Core // owned by the log's owner goroutine; Core documents the exceptions

	started chan struct{} // closed when log is set
	log     replicaLog
	keeper  leases
	ctx     context.Context // canceled when the replica ends; limits its background sends
	cancel  context.CancelFunc

	stopping atomic.Bool
	stopped  chan struct{}

	retired bool              // guarded by Instance.binding
	frame   []*raftpb.Message // memory that is reused, owned by the log's owner goroutine
	old     seldom            // for the warning that an instance has an old build
	missed  seldom            // for the warning that a snapshot did not arrive
	noRoom  seldom            // for the warning that a budget of bytes is used up
}

// foundReplica starts this instance's replica of the group that the charter founds. If the log is
// new, it first stores the founding state.
func foundReplica(n *Instance, c founding.Charter, id uint64) (*ownReplica, error) {
	machine, err := replica.Founded(&c, n.env.limits)
	if err != nil {
		return nil, err
	}
	store, fresh, err := n.store(c.Group, id)
	if err != nil {
		return nil, err
	}
	switch {
	case fresh && n.cluster().Status().Phase == cluster.PhaseMember:
		err = errors.New("the log is missing, although this voter has used its raft ID before: empty the " +
			"directory, the instance then joins as a new one")
	case fresh:
		err = replica.Found(store, &c, id, machine)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return startReplica(n, c.Group, id, store, machine)
}

// joinReplica starts a replica under a raft ID that the leader has given to this instance. The
// replica is empty unless the directory contains its log. If the files of an existing log are
// missing, joinReplica fails.
func joinReplica(n *Instance, group, id uint64) (*ownReplica, error) {
	store, fresh, err := n.store(group, id)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := raftlog.Join(store, group, id); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return startReplica(n, group, id, store, nil)
}

// startReplica starts the log, its state machine and the keeper. machine is nil if the leader's
// first snapshot will contain the state. startReplica owns the store, and closes it after an error.
func startReplica(n *Instance, group, id uint64, store raftlog.Store, machine *lockfsm.Machine) (*ownReplica, error) {
	r := &ownReplica{node: n, started: make(chan struct{}), stopped: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.keeper = keeper.New(keeper.Config{
		Clock: n.env.clock, Vouch: n.vouch, Outdated: r.outdated, Stamp: replica.Stamp,
		Outlets: keeper.Outlets{
			Propose: r.propose, Confirm: r.confirm, Reply: n.reply,
			WallUnixMS: func() int64 { return n.env.wall().UnixMilli() },
		},
	})
	config := replica.CoreConfig{
		Group: group, ID: id, Machine: machine, Keeper: r.keeper, Cluster: n.cluster(), Host: r, Solo: n.config.Alone,
		Alter: n.env.alter, Wall: n.env.wall,
	}
	if h := n.trace.History(); h != nil {
		config.Trail = history.NewTrail(group, h.Record)
	}
	r.core = replica.NewCore(config)
	r.View = r.core.View
	log, err := n.env.startLog(raftlog.Config{
		Group: group, ID: id, Store: store, Applier: r.core, Send: r.send, SendDuplicates: r.sendDuplicates,
		SendSnapshot: r.sendSnapshot, Clock: n.env.clock,
		Tick: replica.RaftTick, ElectionTicks: replica.ElectionTicks, HeartbeatTicks: replica.HeartbeatTicks,
		Deferrable: r.core.Deferrable, Queued: r.core.Queued, Digest: r.core.Digest, Logger: n.logger,
	})
	if err != nil {
		r.keeper.Close()
		r.cancel()
		return nil, errors.Join(err, store.Close())
	}
	r.log = log
	close(r.started)
	return r, nil
}

// stop ends the replica permanently and waits for its goroutines. A second call waits for the
// first.
func (r *ownReplica) stop() {
	if !r.stopping.CompareAndSwap(false, true) {
		<-r.stopped
		return
	}
	defer close(r.stopped)
	r.cancel()
	if err := r.log.Close(); err != nil {
		r.node.logger.Warn("the log did not close cleanly", "error", err)
	}
	r.keeper.Close()
}

// propose and confirm may be called before log is set, so they wait for it.
func (r *ownReplica) propose(term uint64, commands []byte) bool {
	<-r.started
	return r.log.Propose(term, commands)
}

func (r *ownReplica) confirm(term, round uint64) {
	<-r.started
	r.log.Confirm(term, round)
}

// RoleChanged implements replica.Host.
func (r *ownReplica) RoleChanged() { r.node.leaderKnown() }

// Configured implements replica.Host.
func (r *ownReplica) Configured() { r.node.diskWell(r) }

// Answering implements replica.Host.
func (r *ownReplica) Answering(result *lockfsm.Result) {
	if e := result.Evicted; e != nil && result.Kind == lockfsm.Evict {
		r.node.logger.Warn("a lock was ended by force", "key", e.Key, "token", uint64(e.Token), "holder",
			replica.HolderName(e.Record, e.Session),
			"by", string(e.By), "reason", string(e.Reason))
	}
	if e := result.Evicted; e != nil && e.Live {
		r.node.logger.Warn("a lock was taken over from a session that has not ended", "key", e.Key, "token",
			uint64(e.Token), "holder", replica.HolderName(e.Record, e.Session), "by",
			replica.HolderName(e.Taker, result.Session))
	}
	if result.Budget != 0 {
		r.warnNoRoom(result)
	}
}

// Born implements replica.Host.
func (r *ownReplica) Born() clock.Time { return r.node.env.clock.Now() }

// Retired implements replica.Host. It must not wait, because it runs on the log's owner goroutine.
func (r *ownReplica) Retired(err error) { r.node.spawn(func() { r.node.retire(r, err) }) }

func (r *ownReplica) send(messages []*raftpb.Message) {
	r.eachReplica(messages, func(to uint64, mine []*raftpb.Message) {
		if err := r.node.port.Send(r.node.peer(to), transport.Frame{Raft: mine}); err != nil {
			r.log.Unreachable(to)
		}
	})
}

func (r *ownReplica) sendDuplicates(messages []*raftpb.Message) {
	r.eachReplica(messages, func(to uint64, mine []*raftpb.Message) {
		r.node.port.SendDuplicates(r.node.peer(to), mine)
	})
}

// eachReplica calls send once for each receiver, with the messages to this receiver. The function
// send must not keep the slice.
func (r *ownReplica) eachReplica(messages []*raftpb.Message, send func(to uint64, mine []*raftpb.Message)) {
	<-r.started
	r.frame = raftlog.EachReplica(messages, r.frame, send)
}

func (r *ownReplica) sendSnapshot(m *raftpb.Message, done func(ok bool)) {
	sending := r.node.spawn(func() {
		ctx, cancel := context.WithTimeout(r.ctx, snapshotTimeout)
		defer cancel()
		err := r.node.port.SendSnapshot(ctx, r.node.peer(m.GetTo()), m)
		if err != nil && !errors.Is(err, context.Canceled) {
			r.missed.warn(r.node, "a snapshot did not reach a voter; it is sent again", "voter",
				nodeid.Hex(m.GetTo()), "error", err)
		}
		done(err == nil)
	})
	if !sending {
		done(false)
	}
}
