package sim

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
)

// ownReplica is the replica of a process: the owner of its log, the owner of its keeper, and its
// store.
type ownReplica struct {
	p *proc
	*replica.View
	glue *replica.Core

	log   actor // owns core and glue
	core  *raftlog.Core
	store *raftlog.MemoryStore
	snap  snapshotting
	// the batch that is being written; a crash now loses it or keeps all of it
	saving *raftlog.Batch
	outbox []*raftpb.Message
	survey raftlog.Survey

	keeping actor // owns keeper
	keeper  *keeper.Core

	counted  bool   // in watch.leaders
	judgedAs string // name of this run of the replica, for the judges
	applying uint64 // the term of the present entry
	first    bool   // no other replica has applied the present entry before
}

// foundReplica starts the replica of this process in the group with the given charter. If the log
// does not exist, foundReplica founds the group in a new log.
func foundReplica(p *proc, c founding.Charter, id uint64) (r *ownReplica, fresh bool) {
	w := p.w
	machine, err := replica.Founded(&c, w.cfg.Limits)
	w.must(err)
	w.watch.founded(&c)
	store, fresh := p.m.openLog(c.Group, id)
	if fresh {
		w.must(replica.Found(store, &c, id, machine))
	}
	return startReplica(p, c.Group, id, store, machine, fresh), fresh
}

// joinReplica starts a replica under an ID that the leader has assigned, with an empty log or with
// the log on the disk.
func joinReplica(p *proc, group, id uint64) *ownReplica {
	store, fresh := p.m.openLog(group, id)
	if fresh {
		p.w.must(raftlog.Join(store, group, id))
	}
	return startReplica(p, group, id, store, nil, fresh)
}

func startReplica(p *proc, group, id uint64, store *raftlog.MemoryStore, machine *lockfsm.Machine,
	fresh bool) *ownReplica {
	w := p.w
	state, err := store.Load()
	w.must(err)
	r := &ownReplica{p: p, store: store, keeper: keeper.NewCore()}
	r.log, r.keeping = actor{p: p, turn: r.logTurn}, actor{p: p}
	r.glue = replica.NewCore(replica.CoreConfig{
		Group: group, ID: id, Machine: machine, Keeper: keeperInbox{&r.keeping, r.keeper, r}, Cluster: inbox{p}, Host: r,
		Wall:  func() time.Time { return time.UnixMilli(p.m.wallUnixMS()) },
		Trail: w.watch.account(r, group), Step: func() int { return 1 + w.rng.IntN(1+w.rng.IntN(100)) },
	})
	r.View = r.glue.View
	r.keeper.Vouch, r.keeper.Stamp, r.keeper.Step = p.vouch, replica.Stamp, w.cfg.Step
	to := r.outlets()
	r.keeping.turn = func(now clock.Time) clock.Time {
		r.keeper.Turn(now, to)
		return r.keeper.Next()
	}
	var trace raftlog.RaftTracer
	if w.cfg.RaftTrace != nil {
		trace = w.cfg.RaftTrace(group)
	}
	r.core, err = raftlog.NewCore(raftlog.CoreConfig{
		RaftTrace: trace,
		State:     state, Now: p.m.clock(), Tick: replica.RaftTick, ElectionTicks: replica.ElectionTicks,
		HeartbeatTicks:  replica.HeartbeatTicks,
		EntriesInFlight: 2, Deferrable: r.glue.Deferrable, Queued: r.glue.Queued, Digest: r.glue.Digest, QueueBytes: 1 << 20,
		SnapshotBytes: w.cfg.SnapshotBytes, KeepEntries: w.cfg.KeepEntries,
		Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	})
	w.must(err)
	w.watch.replicaStarts(r, state, fresh)
	r.log.rouse()
	r.keeping.rouse()
	return r
}

// stop ends the replica. A batch that is being written is then saved as a whole or not at all.
func (r *ownReplica) stop() {
	if r.saving != nil && r.p.w.chance(0.5) {
		r.p.w.must(r.store.Save(*r.saving))
		r.p.w.watch.saved(r, r.saving)
	}
	r.saving = nil
	r.log.ended, r.keeping.ended = true, true
	r.p.w.watch.stopped(r)
}

func (r *ownReplica) logTurn(now clock.Time) clock.Time {
	r.core.Tick(now)
	idle, err := r.core.Carry(r)
	if err != nil {
		r.glue.Retired(err)
		return 0
	}
	if !idle {
		r.log.rouse()
	}
	r.flush()
	if r.core.DeferralBegins() {
		r.p.w.after(raftlog.MaxDeferral, func() { r.log.post(func(clock.Time) { r.core.EndDeferral() }) })
	}
	r.glue.TurnEnd()
	r.look()
	return r.core.NextTick()
}

func (r *ownReplica) look() {
	if s, anew := r.core.Surveyed(); anew {
		r.survey = s
	}
}

// Event implements raftlog.Shell.
func (r *ownReplica) Event(e *raftlog.Event) error {
	r.look()
	watch := r.p.w.watch
	switch e.Kind {
	case raftlog.Applied:
		watch.applies(r, e)
	case raftlog.Restored:
		r.snap.capture, r.first = nil, false
		watch.voterStep(r, check.LeaseStep{Kind: check.Stopped})
	case raftlog.LeadBegins:
		r.p.w.note("%v leads group %x in term %d", r.p, r.Group, e.Term)
		watch.voterStep(r, check.LeaseStep{Kind: check.Leads, Term: e.Term})
	}
	if err := raftlog.Deliver(e, r.glue); err != nil {
		return err
	}
	if n := r.p.w.cfg.Searched; n != 0 && e.Kind == raftlog.Restored { // also the first event of each replica
		r.glue.Machine().BoundSearches(n, n)
	}
	if e.Kind == raftlog.Restored || e.Kind == raftlog.Applied && e.Index%stateEvery == 0 {
		watch.compare(r, e.Index)
	}
	return nil
}

// Send implements raftlog.Shell. It ignores the duplicates in its second argument, because step
// repeats messages at random.
func (r *ownReplica) Send(messages, _ []*raftpb.Message) { r.outbox = append(r.outbox, messages...) }

// Save implements raftlog.Shell. On a machine with a disk, the batch becomes durable only after a
// while.
func (r *ownReplica) Save(batch raftlog.Batch) (done bool, err error) {
	w, d := r.p.w, r.p.m.disk
	if d == nil {
		w.must(r.store.Save(batch))
		w.watch.saved(r, &batch)
		return true, nil
	}
	took := w.between(d.latency/2, d.latency*2)
	if w.befalls(slowSave, w.nemesis.slowDisk, r.p.m.name) {
		took += w.between(0, replica.ElectionTimeout)
	}
	r.saving = &batch
	w.after(took, func() {
		if r.saving != &batch || r.log.gone() {
			return
		}
		w.must(r.store.Save(batch))
		w.watch.saved(r, &batch)
		r.saving = nil
		if w.befalls(powerFails, w.nemesis.brittle/8, r.p.m.name) {
			r.p.m.crashAndReturn() // the batch is durable, but Stored is never called
			return
		}
		r.log.post(func(clock.Time) { r.core.Stored() })
	})
	return false, nil
}

// RoleChanged implements replica.Host.
func (r *ownReplica) RoleChanged() {
	r.p.w.watch.role(r)
	r.p.leaderKnown()
}

// Configured implements replica.Host.
func (r *ownReplica) Configured() { r.p.w.watch.configured(r, r.Configuration()) }

// Answering implements replica.Host.
func (r *ownReplica) Answering(*lockfsm.Result) {}

// Born implements replica.Host.
func (r *ownReplica) Born() clock.Time {
	r.p.w.watch.born(r)
	return r.p.m.clock()
}

// Retired implements replica.Host. The instance remains a member of the group. The last frame with
// this raft ID tells the other replicas that this one has retired.
func (r *ownReplica) Retired(err error) {
	p := r.p
	p.w.note("%v retires: %v", p, err)
	if errors.Is(err, raftlog.ErrBroken) {
		p.w.broken("%v: %v", p, err)
	}
	p.w.watch.stats.Retired++
	r.keeping.run() // the keeper notifies the attached clients
	r.stop()
	if p.replica != r {
		return
	}
	for _, v := range r.Others(p.instance) {
		_ = p.send(v.Instance, v.Addr, frame{retired: true})
	}
	p.replica = nil
	if p.m.disk != nil && errors.Is(err, raftlog.ErrHung) {
		// Its vote waits on the disk, and people start it anew.
		p.w.watch.stats.GivenUp++
		p.later(p.w.between(0, readyWithin/2), func() {
			if !p.leaving {
				p.m.crash(false)
				p.m.ensureUp()
			}
		})
	} else {
		inbox{p}.Retired(r.ID)
	}
	p.leaderKnown()
}

func (r *ownReplica) peerLost(instance nodeid.ID) {
	for _, id := range r.Of(instance) {
		r.log.post(func(clock.Time) { r.core.PeerLost(id) })
	}
}

// step passes a message of another replica to the log. It copies the message, as a network would.
func (r *ownReplica) step(m *raftpb.Message) {
	w := r.p.w
	m = proto.Clone(m).(*raftpb.Message)
	if w.befalls(repeated, w.net.repeat, r.p.m.name) {
		again := proto.Clone(m).(*raftpb.Message)
		w.after(w.between(0, replica.ElectionTimeout), func() { r.log.post(func(clock.Time) { r.core.Step(again) }) })
	}
	r.log.post(func(clock.Time) { r.core.Step(m) })
}

// flush sends one frame to each replica for which the log has messages. If messages are lost
// because a queue is full, raft sends them again.
func (r *ownReplica) flush() {
	raftlog.EachReplica(r.outbox, nil, func(to uint64, mine []*raftpb.Message) {
		mine = slices.Clone(mine)
		r.p.w.watch.sends(r, mine)
		v := r.Place(r.p.core, to)
		f := frame{raft: mine}
		lost := r.p.w.befalls(dropped, r.p.w.net.drop, r.p.m.name)
		if lost {
			r.p.w.loses(r.p.m, r.p.w.watch.names[v.Instance], "lost: %v", f)
		}
		if lost || r.p.send(v.Instance, v.Addr, f) != nil {
			r.log.post(func(clock.Time) { r.core.Unreachable(to) })
		}
	})
	r.outbox = nil
}
