package instance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
	"github.com/mortise-lock/mortise/transport"
)

// ownReplica is what makes an instance a voter, or a learner, which may become one: one replica of the log, the state machine that it feeds,
// and the keeper of the sessions, who is at work while this replica leads. It lives from the acceptance of a charter, or from the
// leader's Prepare, until the restart in place, its removal, its retirement, or the end of the node.
//
// Its methods that implement raftlog.Applier run on the log's owner goroutine, which owns the fields marked so.
type ownReplica struct {
	node  *Instance
	group uint64
	id    uint64 // raft ID

	started chan struct{} // closed when log is set
	log     *raftlog.Log
	keeper  *keeper.Keeper
	ctx     context.Context // ends with the replica; bounds what it sends in the background
	cancel  context.CancelFunc

	stopping atomic.Bool
	stopped  chan struct{} // closed when stop has ended

	core  *replica.Core  // owned by the log's owner goroutine
	trail *history.Trail // likewise; nil: nothing is recorded

	retired  bool // guarded by the node's binding
	role     atomic.Pointer[raftlog.Role]
	telling  sync.Mutex  // makes reading role and telling it to the keeper one step; never held across a wait
	allBound atomic.Bool // everybody on the charter's list is bound
	born     atomic.Bool
	counting sync.Mutex                            // guards counts and used
	counts   lockfsm.Counts                        // of the machine, at the end of the last turn
	used     lockfsm.Usage                         // likewise
	frame    []*raftpb.Message                     // owned by the log's owner goroutine; for its memory
	config   atomic.Pointer[raftlog.Configuration] // applied here; never nil
	revision atomic.Uint64                         // of the state, at the end of the last turn

	questions *replica.Questions               // of those who look at the locks, while this replica leads
	registry  replica.Registry                 // who has a session, while this replica leads
	accord    replica.Accord                   // owned by the cluster's owner goroutine
	settings  atomic.Pointer[replica.Settings] // the group's; nil: not known
	rules     atomic.Uint32                    // version of the lock rules in force
	remarks   atomic.Pointer[[]string]         // settings that differ, while this replica leads
	missed    seldom                           // snapshots that did not arrive
	noRoom    seldom                           // requests for which a budget of bytes had no room
}

// foundReplica starts this instance's replica of the group of a charter, and founds it if it has not been before.
func foundReplica(n *Instance, c founding.Charter, id uint64) (*ownReplica, error) {
	machine, err := lockfsm.New(lockfsm.Charter{
		Group: c.Group, FoundedUnixMS: c.FoundedUnixMS, Rules: c.Rules, SessionTTL: c.Settings.SessionTTL, Grace: c.Settings.Grace,
		Limits: n.env.limits, Settings: replica.FoundedWith(c.Settings).Encode(),
	})
	if err != nil {
		return nil, err
	}
	store, fresh, err := n.store(c.Group, id)
	if err != nil {
		return nil, err
	}
	switch {
	case fresh && n.cluster().Status().Phase == cluster.PhaseMember:
		err = errors.New("the log is not there, although this voter has promised something before: empty the directory, the instance then joins as a new one")
	case fresh:
		err = raftlog.Found(store, c.Group, id, replica.Members(c.Voters), machine.Snapshot(nil))
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return startReplica(n, c.Group, id, store, machine)
}

// joinReplica starts a replica under an ID that the group's leader has given to this instance: an empty one, or, after a start with a
// directory, what is there of it. A log that had begun and is gone is refused by the directory.
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

// startReplica starts the log and what it feeds. machine is nil until the leader has sent the first snapshot. It owns the store.
func startReplica(n *Instance, group, id uint64, store raftlog.Store, machine *lockfsm.Machine) (*ownReplica, error) {
	r := &ownReplica{node: n, group: group, id: id, started: make(chan struct{}), stopped: make(chan struct{})}
	r.questions = replica.NewQuestions(id)
	r.core = replica.NewCore(replicaHost{r}, &r.registry, r.questions, machine)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if h := n.trace.History(); h != nil {
		r.trail = history.NewTrail(group, h.Record)
	}
	r.role.Store(&raftlog.Role{})
	r.config.Store(&raftlog.Configuration{})
	r.keeper = keeper.New(keeper.Config{
		Clock: n.env.clock, Propose: r.propose, Confirm: r.confirm, Reply: n.reply, Vouch: n.vouch, Stamp: replica.Stamp,
		WallUnixMS: func() int64 { return n.env.wall().UnixMilli() }, Logger: n.logger,
	})
	log, err := raftlog.Start(raftlog.Config{
		Group: group, ID: id, Store: store, Applier: r, Send: r.send, SendDuplicates: r.sendDuplicates, SendSnapshot: r.sendSnapshot, Clock: n.env.clock,
		Tick: raftTick, ElectionTicks: electionTicks, HeartbeatTicks: heartbeatTicks, Patient: r.core.Patient, Logger: n.logger,
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

// stop ends the replica for good and waits until nothing of it runs. Whoever calls it second waits for the first.
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

// proposeBorn lets the leader of the tentative group propose Born once everybody is bound.
func (r *ownReplica) proposeBorn() {
	if role := r.role.Load(); role.Leading && r.allBound.Load() && !r.born.Load() {
		r.keeper.ProposeBorn(role.Term)
	}
}

// Role implements raftlog.Applier.
func (r *ownReplica) Role(role raftlog.Role) {
	r.role.Store(&role)
	r.core.Role(role)
	r.tellKeeper()
	r.node.leaderKnown()
	r.node.cluster().Log(r.id, replica.LogOf(role))
	r.node.cluster().Look()
}

// tellKeeper tells the keeper the present role. It is told again when the address book has changed, since the leader's instance or
// address may not have been known before; in order, so that an older role never follows a newer one.
func (r *ownReplica) tellKeeper() {
	r.telling.Lock()
	defer r.telling.Unlock()
	role := r.role.Load()
	r.keeper.Role(keeper.Role{Term: role.Term, Leading: role.Leading, Leader: r.node.target(role.Leader)})
}

// Apply implements raftlog.Applier.
func (r *ownReplica) Apply(index, term uint64, batch []byte) error {
	return r.core.Apply(index, term, batch)
}

// Leads implements raftlog.Applier.
func (r *ownReplica) Leads(term uint64) {
	r.core.Leads(term)
	r.proposeBorn()
}

// Configured implements raftlog.Applier.
func (r *ownReplica) Configured(c raftlog.Configuration) {
	r.config.Store(&c)
	r.node.diskWell(r)
	applied := replica.Applied(&c)
	r.node.cluster().Configured(r.group, c.Index, applied.Voters)
	r.node.cluster().Applied(r.group, applied)
}

// Confirmed implements raftlog.Applier.
func (r *ownReplica) Confirmed(term, round uint64) {
	r.core.Confirmed(term, round)
}

// Snapshot implements raftlog.Applier.
func (r *ownReplica) Snapshot() (raftlog.Capture, error) {
	if r.trail != nil {
		r.trail.Mark()
	}
	return capture{r.core.Machine().Capture()}, nil
}

// Restore implements raftlog.Applier.
func (r *ownReplica) Restore(index, _ uint64, state []byte) error {
	err := r.core.Restore(state)
	if r.trail != nil && err == nil {
		r.trail.Start(index, r.core.Machine())
	}
	return err
}

// TurnEnd implements raftlog.Applier.
func (r *ownReplica) TurnEnd() {
	machine := r.core.Machine()
	if machine == nil {
		return
	}
	counts, used := machine.Counts(), machine.Usage()
	r.counting.Lock()
	r.counts, r.used = counts, used
	r.counting.Unlock()
	r.revision.Store(uint64(machine.Revision()))
	r.core.TurnEnd()
}

// counted returns what the state machine held at the end of the last turn.
func (r *ownReplica) counted() lockfsm.Counts {
	r.counting.Lock()
	defer r.counting.Unlock()
	return r.counts
}

// Retired implements raftlog.Applier. A broken state machine ends the node, anything else only this voter. Whoever is attached is told
// at once to look for another leader.
func (r *ownReplica) Retired(err error) {
	r.keeper.Role(keeper.Role{Term: r.role.Load().Term + 1})
	r.node.spawn(func() { r.node.retire(r, err) })
}

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

// eachReplica gives the messages to send, together with the replica that they are for. send must not
// keep the slice.
func (r *ownReplica) eachReplica(messages []*raftpb.Message, send func(to uint64, mine []*raftpb.Message)) {
	<-r.started
	for i, first := range messages {
		to := first.GetTo()
		if slices.ContainsFunc(messages[:i], func(m *raftpb.Message) bool { return m.GetTo() == to }) {
			continue
		}
		mine := r.frame[:0]
		for _, m := range messages[i:] {
			if m.GetTo() == to {
				mine = append(mine, m)
			}
		}
		send(to, mine)
		clear(mine)
		r.frame = mine
	}
}

func (r *ownReplica) sendSnapshot(m *raftpb.Message, done func(ok bool)) {
	sending := r.node.spawn(func() {
		ctx, cancel := context.WithTimeout(r.ctx, snapshotTimeout)
		defer cancel()
		err := r.node.port.SendSnapshot(ctx, r.node.peer(m.GetTo()), m)
		if err != nil && !errors.Is(err, context.Canceled) {
			r.missed.warn(r.node, "a snapshot did not reach a voter; it is sent again", "voter", nodeid.Hex(m.GetTo()), "error", err)
		}
		done(err == nil)
	})
	if !sending {
		done(false)
	}
}
