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

// ownReplica is what makes an instance a voter, or a learner, which may become one: one replica of
// the log, the state machine that it feeds, and the keeper of the sessions, who is at work while
// this replica leads. It lives from the acceptance of a charter, or from the leader's Prepare,
// until the restart in place, its removal, its retirement, or the end of the node.
//
// Its methods that implement replica.Host run on the log's owner goroutine, which owns the fields
// marked so.
type ownReplica struct {
	node *Instance
	*replica.View
	core *replica.Core // owned by the log's owner goroutine, but for what it says itself

	started chan struct{} // closed when log is set
	log     *raftlog.Log
	keeper  *keeper.Keeper
	ctx     context.Context // ends with the replica; bounds what it sends in the background
	cancel  context.CancelFunc

	stopping atomic.Bool
	stopped  chan struct{} // closed when stop has ended

	retired bool              // guarded by the node's binding
	frame   []*raftpb.Message // owned by the log's owner goroutine; for its memory
	missed  seldom            // snapshots that did not arrive
	noRoom  seldom            // requests for which a budget of bytes had no room
}

// foundReplica starts this instance's replica of the group of a charter, and founds it if it has
// not been before.
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
		err = errors.New("the log is not there, although this voter has promised something before: empty the " +
			"directory, the instance then joins as a new one")
	case fresh:
		err = replica.Found(store, &c, id, machine)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return startReplica(n, c.Group, id, store, machine)
}

// joinReplica starts a replica under an ID that the group's leader has given to this instance: an
// empty one, or, after a start with a directory, what is there of it. A log that had begun and is
// gone is refused by the directory.
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

// startReplica starts the log and what it feeds. machine is nil until the leader has sent the first
// snapshot. It owns the store.
func startReplica(n *Instance, group, id uint64, store raftlog.Store, machine *lockfsm.Machine) (*ownReplica, error) {
	r := &ownReplica{node: n, started: make(chan struct{}), stopped: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.keeper = keeper.New(keeper.Config{
		Clock: n.env.clock, Vouch: n.vouch, Stamp: replica.Stamp,
		Outlets: keeper.Outlets{
			Propose: r.propose, Confirm: r.confirm, Reply: n.reply,
			WallUnixMS: func() int64 { return n.env.wall().UnixMilli() },
		},
	})
	config := replica.CoreConfig{
		Group: group, ID: id, Machine: machine, Keeper: r.keeper, Cluster: n.cluster(), Host: r, Solo: n.config.Alone,
	}
	if h := n.trace.History(); h != nil {
		config.Trail = history.NewTrail(group, h.Record)
	}
	r.core = replica.NewCore(config)
	r.View = r.core.View
	log, err := raftlog.Start(raftlog.Config{
		Group: group, ID: id, Store: store, Applier: r.core, Send: r.send, SendDuplicates: r.sendDuplicates,
		SendSnapshot: r.sendSnapshot, Clock: n.env.clock,
		Tick: replica.RaftTick, ElectionTicks: replica.ElectionTicks, HeartbeatTicks: replica.HeartbeatTicks,
		Patient: r.core.Patient, Logger: n.logger,
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

// stop ends the replica for good and waits until nothing of it runs. Whoever calls it second waits
// for the first.
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

// propose and confirm are called by the keeper, which is at work from the moment that the log is.
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
	if result.Budget != 0 {
		r.warnNoRoom(result)
	}
}

// Born implements replica.Host.
func (r *ownReplica) Born() clock.Time { return r.node.env.clock.Now() }

// Retired implements replica.Host. A broken state machine ends the node, anything else only this
// voter.
func (r *ownReplica) Retired(err error) { r.node.spawn(func() { r.node.retire(r, err) }) }

// send hands raft's messages to the transport, one frame for each replica.
func (r *ownReplica) send(messages []*raftpb.Message) {
	r.eachReplica(messages, func(to uint64, mine []*raftpb.Message) {
		if err := r.node.port.Send(r.node.peer(to), transport.Frame{Raft: mine}); err != nil {
			r.log.Unreachable(to)
		}
	})
}

// sendDuplicates hands over messages that also travel beside the links.
func (r *ownReplica) sendDuplicates(messages []*raftpb.Message) {
	r.eachReplica(messages, func(to uint64, mine []*raftpb.Message) {
		r.node.port.SendDuplicates(r.node.peer(to), mine)
	})
}

// eachReplica gives the messages to send, together with the replica that they are for. send must
// not keep the slice.
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
