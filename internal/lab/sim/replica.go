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
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// ownReplica is the replica of a process: the owner of its log, the owner of its keeper, and its
// store.
type ownReplica struct {
	*voter
	p *proc

	log   actor // owns core and glue
	store *raftlog.MemoryStore
	snap  snapshotting
	// the batch that is being written; a crash now loses it or keeps all of it
	saving *raftlog.Batch
	outbox []*raftpb.Message
	survey raftlog.Survey

	keeping actor // owns keeper
	keeper  *keeper.Core
}

// foundReplica starts the replica of this process in the group with the given charter. If the log
// does not exist, foundReplica founds the group in a new log.
func foundReplica(p *proc, c founding.Charter, id uint64) (r *ownReplica, fresh bool) {
	w := p.w
	machine, err := replica.Founded(&c, w.cfg.Limits)
	w.must(err)
	w.watch.voters.founded(&c)
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
	r := &ownReplica{voter: &voter{p: p.life}, p: p, store: store, keeper: keeper.NewCore()}
	r.log, r.keeping = actor{p: p.life, turn: r.logTurn}, actor{p: p.life}
	r.keep = r.keeping.post
	r.glue = replica.NewCore(replica.CoreConfig{
		Group: group, ID: id, Machine: machine, Keeper: keeperInbox{&r.keeping, r.keeper, r}, Cluster: inbox{p}, Host: r,
		Wall:      func() time.Time { return time.UnixMilli(p.m.wallUnixMS()) },
		Questions: id ^ uint64(w.now)*0x9e3779b97f4a7c15, // not drawn, so that the rest of a run does not depend on it
		Trail:     w.watch.log.account(r.voter, group), Step: func() int { return 1 + w.rng.IntN(1+w.rng.IntN(100)) },
	})
	r.View = r.glue.View
	r.keeper.Self, r.keeper.Vouch, r.keeper.Stamp, r.keeper.Step = p.instance, p.vouch, replica.Stamp, w.cfg.Step
	to := r.outlets()
	r.keeping.turn = func(now clock.Time) clock.Time {
		r.keeper.Turn(now, to)
		w.must(r.keeper.Check())
		return r.keeper.Next()
	}
	var trace raftlog.RaftTracer
	if w.cfg.RaftTrace != nil {
		trace = w.cfg.RaftTrace(group)
	}
	r.core, err = raftlog.NewCore(raftlog.CoreConfig{
		RaftTrace: trace,
		State:     state, Now: p.m.clock(), Tick: replica.RaftTick, ElectionTicks: replica.ElectionTicks,
		HeartbeatTicks: replica.HeartbeatTicks, SilenceTicks: replica.SilenceTicks,
		GapWindow:       []time.Duration{0, time.Second}[w.cfg.Seed/2%2], // a run seldom has two quiet minutes
		EntriesInFlight: 2, Deferrable: r.glue.Deferrable, Queued: r.glue.Queued, Digest: r.glue.Digest, QueueBytes: 1 << 20,
		SnapshotBytes: w.cfg.SnapshotBytes, KeepEntries: w.cfg.KeepEntries,
		Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1})),
	})
	w.must(err)
	w.watch.log.replicaStarts(r.voter, state, fresh)
	r.log.rouse()
	r.keeping.rouse()
	return r
}

// stop ends the replica. A batch that is being written is then saved as a whole or not at all.
func (r *ownReplica) stop() {
	if r.saving != nil && r.p.w.chance(0.5) {
		r.p.w.must(r.store.Save(*r.saving))
		r.p.w.watch.log.saved(r.voter, r.saving)
	}
	r.saving = nil
	r.log.ended, r.keeping.ended = true, true
	r.p.w.watch.voters.stopped(r.voter)
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
		watch.log.applies(r.voter, e)
	case raftlog.Restored:
		r.snap.capture, r.first = nil, false
		watch.steps.appliedStep(r.voter, check.LeaseStep{Kind: check.Stopped})
	case raftlog.LeadBegins:
		r.p.w.note("%v leads group %x in term %d", r.p, r.Group, e.Term)
		watch.steps.appliedStep(r.voter, check.LeaseStep{Kind: check.Leads, Term: e.Term})
	}
	if err := raftlog.Deliver(e, r.glue); err != nil {
		return err
	}
	if n := r.p.w.cfg.Searched; n != 0 && e.Kind == raftlog.Restored { // also the first event of each replica
		r.glue.Machine().BoundSearches(n, n)
	}
	if e.Kind == raftlog.Restored || e.Kind == raftlog.Applied && e.Index%stateEvery == 0 {
		watch.log.compare(r.voter, e.Index)
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
		w.watch.log.saved(r.voter, &batch)
		return true, nil
	}
	took := w.between(d.latency/2, d.latency*2)
	if w.befalls(slowSave, w.odds.slowDisk, r.p.m.name) {
		took += w.between(0, replica.ElectionTimeout)
	}
	r.saving = &batch
	w.after(took, func() {
		if r.saving != &batch || r.log.gone() {
			return
		}
		w.must(r.store.Save(batch))
		w.watch.log.saved(r.voter, &batch)
		r.saving = nil
		if w.befalls(powerFails, w.odds.brittle/8, r.p.m.name) {
			r.p.m.power.crashAndReturn() // the batch is durable, but Stored is never called
			return
		}
		r.log.post(func(clock.Time) { r.core.Stored() })
	})
	return false, nil
}

// RoleChanged implements replica.Host.
func (r *ownReplica) RoleChanged() {
	r.p.w.watch.log.role(r.voter)
	r.p.leaderKnown()
}

// Configured implements replica.Host.
func (r *ownReplica) Configured() { r.p.w.watch.voters.configured(r.voter, r.Configuration()) }

// Answering implements replica.Host.
func (r *ownReplica) Answering(*lockfsm.Result) {}

// Born implements replica.Host.
func (r *ownReplica) Born() clock.Time {
	r.p.w.watch.voters.born(r.voter)
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
	p.w.stats.Retired++
	r.keeping.run() // the keeper notifies the attached clients
	r.stop()
	if p.replica != r {
		return
	}
	for _, v := range r.Others(p.instance) {
		_ = p.send(v.Instance, v.Addr, frame{retired: true})
	}
	p.runs(nil)
	if p.m.disk != nil && errors.Is(err, raftlog.ErrHung) {
		// Its vote waits on the disk, and people start it anew.
		p.w.stats.GivenUp++
		p.later(p.w.between(0, readyWithin/2), func() {
			if !p.leaving {
				p.m.power.restart()
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
	if w.befalls(repeated, w.odds.repeat, r.p.m.name) {
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
		r.p.w.watch.log.sends(r.voter, mine)
		v := r.Place(r.p.core, to)
		f := frame{raft: mine}
		lost := r.p.w.befalls(dropped, r.p.w.odds.drop, r.p.m.name)
		if lost {
			r.p.w.loses(r.p.m.name, r.p.w.names[v.Instance], "lost: %v", f)
		}
		if lost || r.p.send(v.Instance, v.Addr, f) != nil {
			r.log.post(func(clock.Time) { r.core.Unreachable(to) })
		}
	})
	r.outbox = nil
}

func (r *ownReplica) outlets() *keeper.Outlets {
	reply := func(to nodeid.ID, b []byte) error {
		r.p.w.watch.steps.keeperSends(r.voter, b)
		return r.p.reply(to, b)
	}
	return &keeper.Outlets{Propose: r.propose, Confirm: r.confirm, Reply: reply, WallUnixMS: r.p.m.wallUnixMS}
}

func (r *ownReplica) propose(term uint64, blob []byte) bool {
	if r.p.w.befalls(dropped, r.p.w.odds.drop, r.p.m.name) {
		return false
	}
	r.p.w.watch.steps.keeperProposes(r.voter, term, blob)
	r.log.post(func(clock.Time) { r.core.Propose(term, blob) })
	return true
}

func (r *ownReplica) confirm(term, round uint64) {
	r.p.w.watch.steps.round(r.voter, check.RoundAsked, round)
	r.log.post(func(clock.Time) { r.core.Confirm(term, round) })
}

func (r *ownReplica) asked(by keeper.Sender, renewals, commands []byte) {
	r.keeping.post(func(now clock.Time) {
		r.p.w.watch.steps.renewalsCome(r.voter, renewals)
		r.keeper.ReceiveFrom(now, by, renewals, commands)
	})
}

// down reports that a stream to an instance has ended, or that none could be opened.
func (r *ownReplica) down(instance nodeid.ID) {
	r.keeping.post(func(now clock.Time) { r.keeper.Down(now, instance) })
	r.peerLost(instance)
}

// raft passes the raft messages of a frame to the log if their sender is a member of the group. It
// notifies a sender that is not in the configuration.
func (r *ownReplica) raft(f frame) {
	p := r.p
	if !r.Speaks(p.core, f.from.raft, f.from.instance) {
		if p.removedPeers.Due(f.from.instance, p.foundingNow()) {
			p.w.note("%v tells %x that it is in no configuration", p, f.from.instance)
			p.ofLife(func(time.Duration) { p.core.RemovedPeer(f.from.instance, f.from.addr) })
		}
		return
	}
	for _, m := range f.raft {
		if f.from.raft != 0 && m.GetFrom() == f.from.raft && m.GetTo() == r.ID {
			r.step(m)
		}
	}
}

// Other events of the run happen between the steps of a snapshot.

// hungFor is a little longer than the minute after which a replica gives its disk up.
const hungFor = 70 * time.Second

type snapshotting struct {
	order   raftlog.Take
	capture raftlog.Capture // the capture that is being taken; nil means none
}

// Take implements raftlog.Shell.
func (r *ownReplica) Take(order raftlog.Take) error {
	c, err := r.glue.Snapshot()
	r.snap.order, r.snap.capture = order, c
	r.stepSnapshot(c)
	return err
}

// stepSnapshot schedules the next step of a snapshot. The step is skipped if a Restore has ended
// the snapshot by then.
func (r *ownReplica) stepSnapshot(c raftlog.Capture) {
	r.aside(0, func() {
		switch {
		case r.snap.capture != c:
			r.p.w.stats.Ended++
		case !c.Step():
			r.stepSnapshot(c)
		default:
			r.snap.capture = nil
			order := r.snap.order
			r.aside(0, func() { r.putTogether(order, c) })
		}
	})
}

// putTogether passes a complete snapshot to the log, even if a Restore has ended the snapshot
// after the capture's last step. In that case, the log ignores the snapshot.
func (r *ownReplica) putTogether(order raftlog.Take, c raftlog.Capture) {
	stats, before := &r.p.w.stats, r.core.Status()
	if r.core.Snapshotted(order.Index,
		c.AppendTo(order.Header, func() {})); r.core.Status().Snapshots == before.Snapshots {
		stats.Ended++
		return
	}
	stats.Snapshots++
	stats.Between += int(before.Applied - order.Index)
}

// Prepare implements raftlog.Shell. A crash before the snapshot is durable loses the snapshot.
func (r *ownReplica) Prepare(s *raftpb.Snapshot) (done bool, err error) {
	w, disk := r.p.w, r.p.m.disk
	if disk == nil {
		r.prepared = s
		return true, nil
	}
	took := w.between(0, 10*disk.latency)
	if w.befalls(hungSnapshot, w.odds.hungSnap, r.p.m.name) {
		took += w.between(0, hungFor)
		w.stats.HungSnapshots++
	}
	r.aside(took, func() {
		r.prepared = s
		if w.befalls(powerFails, w.odds.brittle/8, r.p.m.name) {
			r.p.m.power.crashAndReturn() // the snapshot is durable, but no batch refers to it
			return
		}
		r.core.Prepared()
	})
	return false, nil
}

// aside calls the callback in a later turn of the log's owner, after the given time and a random
// delay.
func (r *ownReplica) aside(took time.Duration, then func()) {
	w, most := r.p.w, 20*time.Millisecond
	if w.chance(0.1) {
		most = 4 * replica.ElectionTimeout
	}
	w.after(took+w.between(0, most), func() { r.log.post(func(clock.Time) { then() }) })
}

// SendSnapshot implements raftlog.Shell. It always reports the result to the log.
func (r *ownReplica) SendSnapshot(m *raftpb.Message) {
	w := r.p.w
	w.stats.SnapshotsSent++
	from, to, term := r.p.identity(), m.GetTo(), m.GetTerm()
	v := r.Place(r.p.core, to)
	report := func(ok bool) { r.log.post(func(clock.Time) { r.core.SnapshotSent(to, term, ok) }) }
	w.after(w.net.hop()+w.between(0, 20*time.Millisecond), func() {
		target := w.net.at(v.Addr)
		if target == nil || w.ports[target] == nil || !w.net.linked(r.p.m, target) ||
			w.befalls(dropped, w.odds.drop, r.p.m.name) || w.now < target.pausedUntil {
			w.after(w.between(0, time.Second), func() { report(false) })
			return
		}
		if !w.ports[target].to.snapshot(from, to, m) {
			report(false)
			return
		}
		w.after(w.net.hop(), func() { report(true) })
	})
}

// dataOnly returns the number of keys in the state that have data and no request.
func (r *ownReplica) dataOnly() (n int) {
	all, _, _ := r.glue.Machine().Walk(lockfsm.Cursor{}, writtenUnder, 1000, 1, 1000)
	for _, l := range all {
		if l.Held+l.Waiting == 0 && l.Data.Revision != 0 {
			n++
		}
	}
	return n
}

// writtenUnder begins the keys with data.
const writtenUnder = "written under "

type keeperInbox struct {
	*actor
	core *keeper.Core
	of   *ownReplica
}

func (k keeperInbox) Role(r keeper.Role) { k.post(func(now clock.Time) { k.core.Role(now, r) }) }

func (k keeperInbox) Leads(l keeper.Leadership) {
	k.post(func(now clock.Time) { k.core.Leads(now, l) })
}

func (k keeperInbox) Applied(result *lockfsm.Result) {
	results := []lockfsm.Result{result.Clone()}
	k.post(func(now clock.Time) { k.core.Applied(now, results) })
}

func (k keeperInbox) Yield(id lockfsm.SessionID, n lockfsm.Number) {
	k.post(func(now clock.Time) { k.core.Yield(now, id, n) })
}

func (k keeperInbox) Confirmed(term, round uint64) {
	k.post(func(now clock.Time) {
		k.of.p.w.watch.steps.round(k.of.voter, check.RoundConfirmed, round)
		k.core.Confirmed(now, term, round)
	})
}

func (k keeperInbox) Searched(term uint64, found lockfsm.Search) {
	k.post(func(now clock.Time) { k.core.Searched(now, term, found) })
}

func (k keeperInbox) ProposeAdopt(term uint64, ttl time.Duration, settings []byte, budgets session.Budgets) {
	k.post(func(now clock.Time) { k.core.ProposeAdopt(now, term, ttl, settings, budgets) })
}

func (k keeperInbox) ProposeRaise(term uint64, version uint32) {
	k.post(func(now clock.Time) { k.core.ProposeRaise(now, term, version) })
}
