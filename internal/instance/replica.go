package instance

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
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
		Clock: n.env.clock, Self: n.instance(), Vouch: n.vouch, Outdated: r.outdated, Stamp: replica.Stamp,
		Outlets: keeper.Outlets{
			Propose: r.propose, Confirm: r.confirm, Reply: n.reply,
			WallUnixMS: func() int64 { return n.env.wall().UnixMilli() },
		},
	})
	var first [8]byte
	n.env.random(first[:])
	config := replica.CoreConfig{
		Group: group, ID: id, Machine: machine, Keeper: r.keeper, Cluster: n.cluster(), Host: r, Solo: n.config.Alone,
		Alter: n.env.alter, Wall: n.env.wall, Questions: binary.LittleEndian.Uint64(first[:]),
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
		SilenceTicks: replica.SilenceTicks,
		Deferrable:   r.core.Deferrable, Queued: r.core.Queued, Digest: r.core.Digest, Logger: n.logger,
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
	if e := result.Evicted; e != nil && e.Cause == lockfsm.Revoked {
		r.node.logger.Warn("a session was ended by an operator", "session", uint64(e.Session), "holder",
			replica.HolderName(e.Record, e.Session), "by", string(e.By), "reason", string(e.Reason))
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
			r.missed.warn(r.node.env.clock.Now(), r.node.logger,
				"a snapshot did not reach a voter; it is sent again", "voter",
				nodeid.Hex(m.GetTo()), "error", err)
		}
		done(err == nil)
	})
	if !sending {
		done(false)
	}
}

const snapshotTimeout = time.Minute

func (r *ownReplica) answer(ctx context.Context, q replica.Question) (*replica.Answer, error) {
	one, err := r.core.Questions.Ask(q)
	if err != nil {
		return nil, err
	}
	defer r.core.Questions.Drop(one)
	role := r.Role() // read after Ask, so that a later change of the role ends the query
	if !role.Leading {
		return nil, replica.ErrNoLead
	}
	<-r.started
	if q.Op == replica.OpEnd {
		r.keeper.ProposeEnd(role.Term, q.Ending(one.Number))
	} else if command, changes := q.Command(one.Number); !changes {
		r.log.Confirm(role.Term, replica.QuestionRound|one.Number)
	} else if !r.log.Propose(role.Term, command.Append(r.stamp(&q))) {
		return nil, replica.ErrBusy
	}
	var idle <-chan time.Time
	if q.Op == replica.OpWatch {
		timer := time.NewTimer(replica.WatchTime)
		defer timer.Stop()
		idle = timer.C
	}
	select {
	case <-one.Done():
	case <-idle:
		return r.core.Questions.Idle(one)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
		return nil, replica.ErrNoLead
	}
	a, err := one.Answer()
	switch {
	case err != nil:
		return nil, err
	case q.Op == replica.OpMembers || q.Op == replica.OpNames:
		a.AsMembers(q.From == lockfsm.SessionCursor{}, r.Configuration(), &r.core.SessionIndex)
	default:
		a.Left = r.left(ctx, a.About())
	}
	return a, nil
}

// stamp returns what precedes the command of q in its log entry. A Reserve needs a recent stamp,
// which an idle group does not have.
func (r *ownReplica) stamp(q *replica.Question) []byte {
	if q.Op != replica.OpReserve {
		return nil
	}
	return lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: r.node.env.wall().UnixMilli()}.Append(nil)
}

func (r *ownReplica) left(ctx context.Context, sessions []lockfsm.SessionID) map[lockfsm.SessionID]time.Duration {
	if len(sessions) == 0 {
		return nil
	}
	left := map[lockfsm.SessionID]time.Duration{}
	for i, d := range r.keeper.Left(ctx, sessions) {
		left[sessions[i]] = d
	}
	return left
}

func (r *ownReplica) peerLost(instance nodeid.ID) {
	for _, raft := range r.Of(instance) {
		r.log.PeerLost(raft)
	}
}

// outdated implements the function Outdated of package keeper.
func (r *ownReplica) outdated(b []byte) session.Outdated {
	why := replica.Outdated(b, r.Rules())
	if why != (session.Outdated{}) {
		is := replica.DecodeRecord(b)
		r.core.Refused.Note(r.node.env.clock.Now(), &is, why)
		r.old.warn(r.node.env.clock.Now(), r.node.logger,
			"an instance gets no session, because its build does not know the lock rules of the group: "+
				"upgrade that instance, or take the roll-out of its build back", "name", plain.Text(is.Name), "addr",
			plain.Text(is.Addr), "rules", why.Group, "its_build_knows_up_to", why.Build)
	}
	return why
}

// warnNoRoom logs, at most once a minute for each replica, that a budget of bytes is used up.
func (r *ownReplica) warnNoRoom(result *lockfsm.Result) {
	err := client.BudgetErrorOf(result.Code, result.Budget)
	if err == nil {
		return
	}
	holder := ""
	if s, ok := r.core.Machine().Session(result.Session); ok {
		holder = replica.HolderName(s.Record, s.ID)
	}
	usage := r.core.Machine().Usage()
	r.noRoom.warn(r.node.env.clock.Now(), r.node.logger,
		"a request was refused because a budget of bytes is used up", "request",
		result.Kind.String(), "of", holder,
		"group_bytes", usage.Bytes, "group_budget", usage.Budget, "err", err)
}

// mayYield reports whether the instance that asks may give up its vote. This replica must be the
// leader. The active voters must be a majority even without that instance and all instances with a
// faulty disk. The caller must already have stored that instance's report.
func (r *ownReplica) mayYield(now clock.Time, asks nodeid.ID) bool {
	s := r.log.Survey()
	if s.Term == 0 || s.Pending {
		return false
	}
	n := r.node
	gone := map[nodeid.ID]bool{asks: true}
	for id, f := range n.diskReports.all(now) {
		gone[id] = gone[id] || f.State != DiskLow
	}
	if own := n.diskFault(); own != nil && own.State != DiskLow {
		gone[n.instance()] = true
	}
	left := map[uint64]bool{}
	for _, v := range replica.Placed(&s.Config) {
		active := slices.ContainsFunc(s.Replicas, func(p raftlog.Progress) bool { return p.ID == v.Raft && p.Active })
		left[v.Raft] = active && !gone[v.Instance]
	}
	return majorityOf(s.Config.Voters, left)
}

func majorityOf(voters []uint64, left map[uint64]bool) bool {
	n := 0
	for _, id := range voters {
		if left[id] {
			n++
		}
	}
	return n > len(voters)/2
}

// seen returns the time in the highest token known to this replica, in Unix milliseconds. A token
// is the time of the founding, shifted left by 21 bits, plus the number of changes since the
// founding.
func (r *ownReplica) seen() int64 { return int64(r.Revision() >> 21) }
