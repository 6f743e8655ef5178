package sim

import (
	"errors"
	"io"
	"log/slog"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/keeper"
)

// ownReplica is a voter: its log, what the log feeds, and the keeper, as replica.go in the root package puts them together.
type ownReplica struct {
	p         *proc
	group, id uint64

	log     actor // owns core and machine
	core    *raftlog.Core
	store   *raftlog.MemoryStore
	snap    snapshotting
	saving  *raftlog.Batch // being written: lost, or kept whole, if the process dies now
	glue    *replica.Core
	born    bool
	outbox  []*raftpb.Message
	results []lockfsm.Result // of the entry that is being applied, for the keeper

	keeping actor // owns keeper
	keeper  *keeper.Core

	role     raftlog.Role
	allBound bool
	config   raftlog.Configuration // applied here
	survey   raftlog.Survey        // as the log has published it
	stale    bool                  // it is to be published anew in this turn

	registry  replica.Registry
	questions *replica.Questions
	accord    replica.Accord
	settings  *replica.Settings // of the group; nil: not known
	rules     uint32

	counted bool // among those that lead

	who   string         // for the judges: this life of this replica
	trail *history.Trail // what it says of what it applies
	first bool           // nobody has applied the entry before
}

// foundReplica founds this process's replica of the group of a charter, or opens it again.
func foundReplica(p *proc, c founding.Charter, id uint64) (r *ownReplica, fresh bool) {
	w := p.w
	machine, err := lockfsm.New(lockfsm.Charter{
		Group: c.Group, FoundedUnixMS: c.FoundedUnixMS, Rules: c.Rules, SessionTTL: c.Settings.SessionTTL, Grace: c.Settings.Grace,
		Limits: w.cfg.Limits, Settings: replica.FoundedWith(c.Settings).Encode(),
	})
	w.must(err)
	w.watch.founded(&c)
	store, fresh := p.m.openLog(c.Group, id)
	if fresh {
		w.must(raftlog.Found(store, c.Group, id, replica.Members(c.Voters), machine.Snapshot(nil)))
	}
	return startReplica(p, c.Group, id, store, machine, fresh), fresh
}

// joinReplica starts a replica under an ID that the leader has given: an empty one, or what the disk has of it.
func joinReplica(p *proc, group, id uint64) *ownReplica {
	store, fresh := p.m.openLog(group, id)
	if fresh {
		p.w.must(raftlog.Join(store, group, id))
	}
	return startReplica(p, group, id, store, nil, fresh)
}

func startReplica(p *proc, group, id uint64, store *raftlog.MemoryStore, machine *lockfsm.Machine, fresh bool) *ownReplica {
	w := p.w
	state, err := store.Load()
	w.must(err)
	r := &ownReplica{p: p, group: group, id: id, store: store, keeper: keeper.NewCore()}
	r.questions = replica.NewQuestions(id)
	r.glue = replica.NewCore(r, &r.registry, r.questions, machine)
	r.keeper.Vouch, r.keeper.Stamp, r.keeper.Step = p.vouch, replica.Stamp, w.cfg.Step
	r.core, err = raftlog.NewCore(raftlog.CoreConfig{
		State: state, Now: p.m.clock(), Tick: raftTick, ElectionTicks: electionTicks, HeartbeatTicks: heartbeatTicks,
		EntriesInFlight: 2, Patient: r.glue.Patient, QueueBytes: 1 << 20, SnapshotBytes: w.cfg.SnapshotBytes, KeepEntries: w.cfg.KeepEntries,
		Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	})
	w.must(err)
	w.watch.replicaStarts(r, state, fresh)
	r.log = actor{p: p, turn: r.logTurn}
	r.keeping = actor{p: p, turn: r.keeperTurn}
	r.log.rouse()
	r.keeping.rouse()
	return r
}

// stop ends the replica. What was being written then is there as a whole or not at all, whether the process or the power went; crash
// images of the real store show elsewhere that there is nothing in between.
func (r *ownReplica) stop() {
	if r.saving != nil && r.p.w.chance(0.5) {
		r.p.w.must(r.store.Save(*r.saving))
		r.p.w.watch.saved(r, r.saving)
	}
	r.saving = nil
	r.log.ended, r.keeping.ended = true, true
	r.p.w.watch.stopped(r)
}

// logTurn is Log.turn: the core's outputs, carried out in order.
func (r *ownReplica) logTurn(now clock.Time) clock.Time {
	tick := r.core.NextTick()
	r.core.Tick(now)
	for range 32 {
		out := r.core.Turn()
		if out.Idle() {
			break
		}
		if out.Failed != nil {
			r.retire(out.Failed)
			return 0
		}
		r.carry(&out)
		if r.log.gone() {
			return 0
		}
	}
	r.flush()
	if r.core.Reminds() {
		r.p.w.after(patience, func() { r.log.post(func(clock.Time) { r.core.Remind() }) })
	}
	r.glue.TurnEnd()
	if r.core.NextTick() != tick || r.stale {
		r.survey, r.stale = r.core.Survey(), false
	}
	return r.core.NextTick()
}

func (r *ownReplica) carry(out *raftlog.Output) {
	for i := range out.Events {
		r.event(&out.Events[i])
	}
	if out.Take != nil {
		r.beginSnapshot(*out.Take)
	}
	r.outbox = append(r.outbox, out.Messages...) // Duplicates are lost here; step draws its own
	for _, m := range out.Snapshots {
		r.sendSnapshot(m)
	}
	if out.Prepare != nil {
		r.prepare(out.Prepare)
	}
	if out.Save == nil {
		return
	}
	if r.p.m.disk == nil {
		r.p.w.must(r.store.Save(*out.Save))
		r.p.w.watch.saved(r, out.Save)
		r.core.Stored()
		return
	}
	r.write(out.Save)
}

// write makes a batch durable, after a while.
func (r *ownReplica) write(b *raftlog.Batch) {
	w, d := r.p.w, r.p.m.disk
	took := w.between(d.latency/2, d.latency*2)
	if w.chance(w.nemesis.slowDisk) {
		took += w.between(0, electionTimeout)
	}
	batch := *b
	r.saving = &batch
	w.after(took, func() {
		if r.saving != &batch || r.log.gone() {
			return
		}
		w.must(r.store.Save(batch))
		w.watch.saved(r, &batch)
		r.saving = nil
		if w.chance(w.nemesis.brittle / 8) {
			r.p.m.crashAndReturn() // durable, and nobody knows
			return
		}
		r.log.post(func(clock.Time) { r.core.Stored() })
	})
}

// event is one call of the Applier.
func (r *ownReplica) event(e *raftlog.Event) {
	switch e.Kind {
	case raftlog.RoleChanged:
		r.role, r.stale = e.Role, true
		r.glue.Role(e.Role)
		r.p.w.watch.role(r)
		r.tellKeeper()
		r.p.leaderKnown()
		p, id, log := r.p, r.id, replica.LogOf(e.Role)
		p.ofLife(func() { p.core.Founding.Log(p.birthNow(), id, log) })
		r.p.look()
	case raftlog.Applied:
		r.apply(e)
	case raftlog.LeadBegins:
		r.stale = true
		r.p.w.note("%v leads group %x in term %d", r.p, r.group, e.Term)
		r.glue.Leads(e.Term)
		r.proposeBorn()
	case raftlog.Configured:
		r.configured(e.Config)
	case raftlog.RoundDone:
		r.glue.Confirmed(e.Term, e.Round)
	case raftlog.Restored:
		r.snap.capture = nil
		r.p.w.must(r.glue.Restore(e.Data))
		r.p.w.watch.restored(r, e)
	}
}

// configured hands on a configuration that is applied here.
func (r *ownReplica) configured(c *raftlog.Configuration) {
	r.config, r.stale = *c, true
	r.p.w.watch.configured(r, c)
	p, group, applied := r.p, r.group, replica.Applied(c)
	p.ofLife(func() {
		p.core.Configured(p.birthNow(), group, applied.At, applied.Voters)
		p.core.Founding.Applied(p.birthNow(), group, applied)
	})
}

func (r *ownReplica) apply(e *raftlog.Event) {
	r.p.w.watch.applies(r, e)
	r.p.w.must(r.glue.Apply(e.Index, e.Term, e.Data))
	r.p.w.watch.applied(r, e)
	if results := r.results; len(results) > 0 {
		r.results = nil
		r.keeping.post(func(now clock.Time) { r.keeper.Applied(now, results) })
	}
}

func (r *ownReplica) proposeBorn() {
	if !r.role.Leading || !r.allBound || r.born {
		return
	}
	term := r.role.Term
	r.keeping.post(func(now clock.Time) { r.keeper.ProposeBorn(now, term) })
}

func (r *ownReplica) tellKeeper() {
	role := keeper.Role{Term: r.role.Term, Leading: r.role.Leading, Leader: r.leader()}
	r.keeping.post(func(now clock.Time) { r.keeper.Role(now, role) })
}

// retire ends a voter that cannot go on; its instance stays a member.
func (r *ownReplica) retire(err error) {
	r.p.w.note("%v retires: %v", r.p, err)
	if errors.Is(err, raftlog.ErrBroken) {
		r.p.w.broken("%v: %v", r.p, err)
	}
	r.p.w.watch.stats.Retired++
	role := keeper.Role{Term: r.role.Term + 1}
	r.keeping.post(func(now clock.Time) { r.keeper.Role(now, role) })
	r.keeping.run()
	r.stop()
	p, id := r.p, r.id
	if p.replica == r {
		p.farewell(r)
		p.replica = nil
		p.ofLife(func() { p.core.Retired(p.birthNow(), id) })
		p.leaderKnown()
	}
}

// farewell tells the other replicas, as the last frame under this raft ID, that this one has retired.
func (p *proc) farewell(r *ownReplica) {
	for _, v := range replica.Placed(&r.config) {
		if v.Instance != p.instance {
			p.send(v.Instance, v.Addr, frame{retired: true})
		}
	}
}

// step takes a message of another replica. It is copied, as the wire would.
func (r *ownReplica) step(m *raftpb.Message) {
	w := r.p.w
	m = proto.Clone(m).(*raftpb.Message)
	if w.chance(w.net.repeat) {
		again := proto.Clone(m).(*raftpb.Message)
		w.after(w.between(0, electionTimeout), func() { r.log.post(func(clock.Time) { r.core.Step(again) }) })
	}
	r.log.post(func(clock.Time) { r.core.Step(m) })
}
