package sim

import (
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
)

// mostOwn is the largest number of sessions that the program of a process may have open. It is
// small, so that some cannot be opened.
const mostOwn = 4

const freeStays = 2 // the largest number of free stays of a process

// proc simulates a process with a Node, from its start to its end.
type proc struct {
	*port

	cluster      actor  // owns core
	saved        uint64 // revision of the state of founding on the disk
	removedPeers cluster.RemovedPeers

	sessions client.Set[*ownClient]
	opened   int // how many sessions its program has begun to open

	replica *ownReplica // may be nil
	begins  cluster.Beginning
	former  nodeid.ID // see machine.former, when the process started
}

func newProc(w *site, m *machine) *proc {
	p := &proc{port: newPort(w, m)}
	p.to = p
	return p
}

// relist records the sessions for the watch.
func (p *proc) relist() {
	p.leases = nil
	for _, s := range p.sessions.List() {
		p.leases = append(p.leases, s.lease)
	}
}

// runs sets the replica of the process, or nil.
func (p *proc) runs(r *ownReplica) {
	if p.replica, p.voter = r, nil; r != nil {
		p.voter = r.voter
	}
}

// callSome starts the callers.
func (p *proc) callSome() {
	for range p.w.cfg.Callers {
		p.w.after(p.w.between(0, time.Second), func() { p.sessions.First.caller(nil) })
	}
}

func (p *proc) identity() identity {
	id := identity{instance: p.instance, life: p.begins.Life, group: p.group, addr: p.m.addr}
	if p.replica != nil {
		id.raft = p.replica.ID
	}
	return id
}

// frame handles a frame that has passed the checks of the transport.
func (p *proc) frame(e *end, f frame) {
	words := len(f.renewals)+len(f.commands)+len(f.replies) > 0
	if p.group == 0 || p.group != f.from.group {
		if words {
			e.close()
		}
		return
	}
	r := p.replica
	if r != nil && len(f.raft) > 0 {
		r.raft(f)
	}
	if r != nil && f.retired {
		r.peerLost(f.from.instance)
		p.ofLife(func(now time.Duration) { p.core.PeerLost(now, f.from.instance) })
	}
	switch asks := len(f.renewals)+len(f.commands) > 0; {
	case asks && r == nil:
		_ = p.send(f.from.instance, "", frame{replies: session.NoVoter()})
	case asks && p.strays(f):
	case asks:
		r.asked(keeper.Sender{ID: f.from.instance, Life: f.from.life}, f.renewals, f.commands)
	}
	if len(f.replies) > 0 {
		p.sessions.Receive(f.from.instance, f.replies)
	}
}

// strays lets a frame with a claim come late, or again, when perhaps a later start of its sender
// runs. Sometimes the power of the sender fails before, so that this start claims nothing and the
// session of the earlier one is left. A stream is not that late, but the keeper must tolerate it.
// It reports whether the frame does not come now.
func (p *proc) strays(f frame) bool {
	w := p.w
	if !claims(f.commands) || !w.befalls(strayClaim, w.odds.claim, p.m.name) {
		return false
	}
	w.stats.StrayClaims++
	w.after(w.between(0, 2*w.cfg.TTL), func() {
		if r := p.replica; !p.dead && r != nil && p.group == f.from.group {
			r.asked(keeper.Sender{ID: f.from.instance, Life: f.from.life}, nil, f.commands)
		}
	})
	for _, m := range w.net.machines {
		if m.instance == f.from.instance && w.chance(0.5) {
			w.after(w.between(0, w.cfg.TTL/2), func() {
				if !w.calm && m.instance == f.from.instance {
					m.power.crashAndReturn()
				}
			})
		}
	}
	return w.chance(0.7)
}

// claims reports whether commands have an Attach that claims the end of an earlier start.
func claims(commands []byte) bool {
	for len(commands) > 0 {
		one, rest, err := lockfsm.Next(commands)
		if err != nil {
			return false // the insider sends anything
		}
		commands = rest
		if c, err := lockfsm.Decode(one); err == nil && c.Kind == lockfsm.Attach && (c.Since != 0 || len(c.Former) > 0) {
			return true
		}
	}
	return false
}

// some returns one of the sessions of a process.
func (p *proc) some() *ownClient {
	all := p.sessions.List()
	return all[p.w.opening.IntN(len(all))]
}

func (p *proc) held() (count int) {
	for _, s := range p.sessions.List() {
		count += s.held()
	}
	return count
}

// ofLife runs f in a turn of the cluster's owner, unless this incarnation has ended before that
// turn.
func (p *proc) ofLife(f func(now time.Duration)) {
	instance := p.instance
	p.cluster.post(func(clock.Time) {
		if p.alive(instance) {
			f(p.foundingNow())
		}
	})
}

// Question implements cluster.Owner.
func (p *proc) Question(q founding.Question) {
	asked := p.foundingNow()
	p.put(q.Addr, q.To, query{body: q.Body}, func(now time.Duration, outcome founding.Outcome, r reply) {
		p.core.Result(now, asked, q, outcome, r.from, r.body)
	})
}

// Task implements cluster.Owner.
func (p *proc) Task(e cluster.Task) {
	p.put(e.Addr, e.To, query{body: e.Body, probe: e.Body == nil, status: e.Query},
		func(now time.Duration, outcome founding.Outcome, r reply) {
			if e.Query != nil {
				p.core.StatusReplied(now, e, r.status, outcome == founding.Answered)
			} else {
				p.core.Done(now, e, outcome, r.from, r.body)
			}
		})
}

// queryStatus queries the leader for the status of the voters, and calls the callback with the
// answer, or with nil if no answer arrives within the given time.
func (p *proc) queryStatus(q cluster.Inquiry, within time.Duration, then func(*cluster.VoterStatus)) {
	q.Caller = then
	p.cluster.post(func(clock.Time) { p.core.Inquire(&q) })
	p.later(within, func() {
		p.cluster.post(func(clock.Time) {
			if p.core.GiveUp(&q) {
				then(nil)
			}
		})
	})
}

// put sends a query to the instance at an address. If to is zero, any instance may answer. The
// cluster's owner calls the callback once, after a second at the latest. Meanwhile this instance
// may have begun another incarnation, and the one that is asked may hear a question of the earlier
// one.
func (p *proc) put(addr string, to nodeid.ID, q query, then func(time.Duration, founding.Outcome, reply)) {
	w, asker := p.w, founding.Asker{Instance: p.instance, Addr: p.m.addr}
	answered := false
	finish := func(outcome founding.Outcome, r reply) {
		if answered || p.dead {
			return
		}
		answered = true
		p.cluster.post(func(clock.Time) {
			if p.instance != asker.Instance {
				w.stats.AnsweredLate++
			}
			then(p.foundingNow(), outcome, r)
		})
	}
	w.after(time.Second, func() { finish(founding.Silent, reply{}) })
	w.after(w.net.hop(), func() {
		m := w.net.at(addr)
		switch {
		case m == nil:
			w.after(w.net.hop(), func() { finish(founding.Refused, reply{}) })
		case !w.net.linked(p.m, m) || w.now < m.pausedUntil || w.befalls(dropped, w.odds.drop, p.m.name):
		case w.ports[m] == nil:
			w.after(w.net.hop(), func() { finish(founding.Refused, reply{}) })
		case !to.IsZero() && to != w.ports[m].instance:
			other := w.ports[m].instance
			w.after(w.net.hop(), func() { finish(founding.Other, reply{from: other}) })
		default:
			from := w.ports[m].instance
			if !p.alive(asker.Instance) {
				w.stats.AskedLate++
			}
			w.ports[m].to.answer(asker, q, func(r reply) {
				if r.from = from; w.ports[m] == nil || w.ports[m].instance != from {
					return // the incarnation that was asked has ended
				}
				if w.net.linked(p.m, m) {
					w.after(w.net.hop(), func() { finish(founding.Answered, r) })
				}
			})
		}
	})
}

// answer answers a query. It stores the state of founding before it sends an answer that binds
// this instance.
func (p *proc) answer(from founding.Asker, q query, then func(reply)) {
	p.ofLife(func(time.Duration) {
		switch {
		case q.status != nil:
			then(reply{status: p.core.ReplyStatus(p.foundingNow(), *q.status, p.w.id())})
			return
		case q.probe:
			then(reply{})
			return
		}
		b := p.core.Ask(p.foundingNow(), p.m.wallUnixMS(), from, q.body)
		if p.persist() && b != nil {
			then(reply{body: b})
		}
	})
}

func (p *proc) clusterTurn(clock.Time) clock.Time {
	next := p.core.Turn(p.foundingNow(), p.m.wallUnixMS(), p.w.random(), p.w.id(), p.w.rng.Uint64(), p)
	return p.m.origin + clock.Time(next)
}

// Store implements cluster.Owner.
func (p *proc) Store(*founding.Output) { p.persist() }

// persist makes the state of founding durable, and reports whether the process still runs. The
// power may fail immediately before or after.
func (p *proc) persist() bool {
	brittle := p.w.odds.brittle
	if d := p.m.disk; d == nil || p.saved == p.core.Founding.Revision() {
		brittle = 0
	} else if !p.w.befalls(powerFails, brittle, p.m.name) {
		state := p.core.Founding.State()
		d.state, p.saved = &state, p.core.Founding.Revision()
	} else {
		p.m.power.crashAndReturn()
		return false
	}
	p.w.watch.voters.binds(p.life)
	if p.w.befalls(powerFails, brittle, p.m.name) {
		p.m.power.crashAndReturn()
	}
	return !p.dead
}

// Ended implements cluster.Owner.
func (p *proc) Ended() bool { return p.dead }

// Carry implements cluster.Owner. The next Survey shows the result of the step.
func (p *proc) Carry(c lead.Carry) {
	r, step := p.replica, c.Step
	if r == nil {
		return
	}
	p.w.note("%v changes the voters: %v %x, promote %x, demote %x, remove %x: %s", p, step.Kind, step.ID,
		step.Promote, step.Demote, step.Remove, step.Why)
	p.w.watch.voters.carries(r.voter, step)
	if change, changes := replica.Change(step, c.About); changes {
		r.log.post(func(clock.Time) { r.core.Change(c.Term, change) })
	} else if step.Kind == voters.Transfer {
		r.log.post(func(clock.Time) { _ = r.core.Transfer(step.ID) })
	}
}

// Gossip implements cluster.Owner. It reports success immediately.
func (p *proc) Gossip(addr string) { p.core.Gossiped(addr) }

// Told implements cluster.Owner.
func (p *proc) Told(told cluster.Told) {
	told.Inquiry.Caller.(func(*cluster.VoterStatus))(&told.VoterStatus)
}

// Dismiss implements cluster.Owner.
func (p *proc) Dismiss(raft uint64) {
	if r := p.replica; r != nil && r.ID == raft {
		p.w.note("%v ends its replica %x", p, r.ID)
		p.stopReplica()
		p.leaderKnown()
	}
	inbox{p}.Retired(raft)
}

// Tell implements cluster.Owner.
func (p *proc) Tell(events []founding.Event) {
	for _, e := range events {
		if p.carryOut(e); p.dead {
			return
		}
	}
}

func (p *proc) carryOut(e founding.Event) {
	r := p.replica
	switch e.Kind {
	case founding.BoundTo:
		p.bound(e)
	case founding.AllBound:
		if r != nil {
			r.keeping.post(r.keeper.AllBound)
		}
	case founding.Joined:
		p.w.note("%v is a member of group %x", p, e.Group)
		p.group, p.member = e.Group, true
		p.follows(e.Group)
		p.sessions.Rebind(p.record().Encode(), p.record().OwnSession().Encode(), replica.Targets(e.Voters))
	case founding.Heard:
		p.sessions.SetTargets(replica.Targets(e.Voters))
		if r != nil {
			r.glue.TellKeeper()
		}
	case founding.Restarted:
		p.w.note("%v restarts in place as %x: %s", p, e.Instance, e.Text)
		p.restartInPlace(e.Instance)
	case founding.Prepared:
		p.w.note("%v is prepared for group %x as %x", p, e.Group, e.Raft)
		p.stopReplica()
		p.runs(joinReplica(p, e.Group, e.Raft))
		p.group = e.Group
	case founding.Removed: // the replica runs until Dismiss is called
		p.w.note("%v is removed: replica %x", p, e.Raft)
		if r == nil || r.ID != e.Raft {
			inbox{p}.Retired(e.Raft)
		}
	case founding.Barred:
		p.w.broken("%v is barred though no directory was copied: %s", p, e.Text)
	}
}

// follows stores this incarnation in the run directory, and claims that the former one has ended.
func (p *proc) follows(group uint64) {
	if !p.w.cfg.RunDirs {
		return
	}
	p.m.run = runDir{p.m.boots, p.instance}
	claim := session.ClaimFormer(p.w.keys[p.former], group, p.instance)
	s := p.sessions.First
	s.inClient(func(clock.Time) { s.core.Follows(claim) })
}

func (p *proc) bound(e founding.Event) {
	p.w.note("%v is bound to group %x as %x", p, e.Group, e.Raft)
	p.group = e.Group
	if e.Raft == 0 {
		return
	}
	r, fresh := foundReplica(p, e.Charter, e.Raft)
	if fresh && p.core.Founding.Phase() == founding.Member {
		p.w.broken("%v is a member and its log is gone", p)
	}
	p.runs(r)
	if len(e.Charter.Voters) == 1 {
		r.log.post(func(clock.Time) { r.core.Campaign() })
	}
}

// restartInPlace ends the old incarnation and begins a new one. The locks of the old incarnation
// end first.
func (p *proc) restartInPlace(instance nodeid.ID) {
	p.w.watch.voters.leaves(p.life)
	p.sessions.Rebind(nil, nil, nil)
	p.w.watch.voters.foundings.EndedEverywhere(nodeidtest.Number(p.instance))
	p.m.instance = instance
	p.w.names[instance] = p.m.name
	p.stopReplica()
	if d := p.m.disk; d != nil {
		d.log, d.group, d.id = nil, 0, 0
	}
	p.hangUp()
	p.instance, p.group, p.member = instance, 0, false
	clear(p.dialing)
	clear(p.backOff)
}

func (p *proc) stopReplica() {
	if r := p.replica; r != nil {
		r.stop()
		p.runs(nil)
	}
}

// Facts implements cluster.OwnState.
func (p *proc) Facts() (f voters.Facts, term uint64, leads bool) {
	r := p.replica
	if r == nil {
		return f, 0, false
	}
	own := replica.Own{Settings: p.own(), Durable: p.w.cfg.Durable, Leaving: p.leaving}
	f, term, leads = r.glue.Facts(p.m.clock(), own, &r.survey, p.linked)
	for _, o := range f.Replicas {
		if o.Instance.IsZero() {
			p.w.broken("%v surveys %x, which its configuration does not name", p, o.ID)
			return f, 0, false
		}
	}
	return f, term, leads
}

// Guide implements cluster.OwnState.
func (p *proc) Guide() nodeid.ID { return p.sessions.First.status().Asked }

// Leader implements cluster.OwnState.
func (p *proc) Leader() (instance nodeid.ID, addr string) {
	t := p.view().LeaderOr(p.core, p.sessions.First.status().Leader)
	return t.ID, t.Addr
}

func (p *proc) view() *replica.View {
	if p.replica == nil {
		return nil
	}
	return p.replica.View
}

// linked reports whether instance is this instance, or has a stream with this instance.
func (p *proc) linked(instance nodeid.ID) bool {
	return instance == p.instance || len(p.links[instance]) > 0
}

func (p *proc) leaderKnown() {
	known := p.view().KnowsLeader(p.sessions.First.phase == client.Attached)
	p.ofLife(func(now time.Duration) { p.core.Founding.Leader(now, known) })
}

// hear passes the present results of gossip, and the resolved names of the setting Join, to the
// core.
func (p *proc) hear(join []founding.Entry, news []gossip.News) {
	now := p.foundingNow()
	p.core.Resolved(now, join, nil)
	for _, name := range slices.Sorted(maps.Keys(p.core.Peers())) {
		if !slices.ContainsFunc(news, func(n gossip.News) bool { return n.Name == name }) {
			p.core.Seen(now, gossip.News{Name: name})
		}
	}
	for _, n := range news {
		p.core.Seen(now, n)
	}
}

func (p *proc) own() replica.Settings {
	own := replica.FoundedWith(p.w.cfg.settings())
	if p.m.told != 0 {
		own.SessionBytes, own.GroupBytes = p.m.told, p.m.told
	}
	return own
}

// record returns what this instance reports about itself when it opens its session.
func (p *proc) record() replica.Record {
	own := p.own()
	return replica.Record{
		Instance: p.instance.String(), Name: p.m.name, Zone: p.m.zone, Addr: p.m.addr, Rules: lockfsm.RulesVersion,
		Settings: own.Named(), Founders: own.Founders,
	}
}

// reply sends replies of the keeper to the client of an instance. It opens no stream, because the
// instance that sent the request has one.
func (p *proc) reply(to nodeid.ID, b []byte) error {
	if to == p.instance {
		p.sessions.Receive(to, b)
		return nil
	}
	return p.send(to, "", frame{replies: b})
}

// vouch compares the record of a new session with the instance and the address that the connection
// proves.
func (p *proc) vouch(from nodeid.ID, _ *capability.Capability, b []byte) bool {
	addr := p.m.addr
	if from != p.instance {
		links := p.links[from]
		if len(links) == 0 {
			return false
		}
		addr = links[len(links)-1].other.p.m.addr
	}
	return replica.Proof{Instance: from, Addr: addr}.Vouch(b)
}

// down reports that a stream to an instance has ended, or that none could be opened.
func (p *proc) down(instance nodeid.ID) {
	p.w.mark('d', nodeidtest.Number(p.instance), nodeidtest.Number(instance))
	p.sessions.Down(instance)
	if r := p.replica; r != nil {
		r.down(instance)
	}
	inbox{p}.Look()
}

// snapshot implements receiver.
func (p *proc) snapshot(from identity, to uint64, m *raftpb.Message) bool {
	r := p.replica
	if r == nil || p.group != from.group || r.ID != to || !r.Speaks(p.core, from.raft, from.instance) {
		return false
	}
	r.step(m)
	return true
}

// inbox posts to the inbox of the cluster's owner. It implements replica.Cluster.
type inbox struct{ p *proc }

func (i inbox) Voter(raft uint64) (founding.Voter, bool) { return i.p.core.Voter(raft) }

func (i inbox) Look() { i.p.cluster.post(func(clock.Time) { i.p.core.Look() }) }

func (i inbox) Log(raft uint64, log founding.Log) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Log(now, raft, log) })
}

func (i inbox) Configured(group, at uint64, voters []founding.Voter) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Configured(now, group, at, voters) })
}

func (i inbox) Applied(group uint64, applied founding.Configuration) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Applied(now, group, applied) })
}

func (i inbox) BornApplied(group uint64) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Born(now, group) })
}

func (i inbox) Adopt(group uint64, s founding.Settings) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Founding.Adopt(now, group, s) })
}

func (i inbox) Retired(raft uint64) {
	i.p.ofLife(func(now time.Duration) { i.p.core.Retired(now, raft) })
}
