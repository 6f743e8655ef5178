package sim

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// insider is a process that has the group's secret and its own identity, and sends false messages.
// It reports configurations that do not exist, asks instances to start replicas, reports running
// replicas as retired, and gossips. It redirects clients to itself and serves them from a state in
// which every key is free. It sends commands that attach or open the sessions of other instances.
// It does not become a voter and sends nothing to an instance without a group, because mortise
// trusts every holder of the secret in these two respects.
type insider struct {
	w      *fleet
	p      *port
	says   identity         // what it claims when a stream begins; a real peer can verify only the instance
	keeper *keeper.Core     // keeper of the group that it invents
	locks  *lockfsm.Machine // locks of the same group
	index  uint64
	seen   []lockfsm.SessionInfo // sessions of the real group
}

const (
	insiderTerm  = 1 << 40 // higher than the term of every real leader
	insiderPause = 400 * time.Millisecond
)

// infiltrate starts the insider on a machine that the nemesis does not touch.
func infiltrate(w *fleet) *insider {
	m := newMachine(w.world, len(w.machines))
	m.disk = nil
	p := newPort(w.site, m)
	locks, err := lockfsm.New(lockfsm.Charter{
		Group: w.id(), FoundedUnixMS: m.wallUnixMS(), Rules: lockfsm.RulesVersion, SessionTTL: w.cfg.TTL,
		Limits: w.cfg.Limits,
	})
	w.must(err)
	i := &insider{w: w, p: p, locks: locks, keeper: keeper.NewCore()}
	p.to, w.ports[m], w.net.hidden, w.watch.log.opened = i, p, m, i.opened
	i.apply(lockfsm.Command{Kind: lockfsm.EndGrace}.Append(lockfsm.Command{Kind: lockfsm.Born}.Append(nil)))
	i.keeper.Role(m.clock(), keeper.Role{Term: insiderTerm, Leading: true, Leader: i.target()})
	i.keeper.Leads(m.clock(), keeper.Leadership{Term: insiderTerm, Born: true, GraceOver: true, BornAt: m.clock(),
		Rules: lockfsm.RulesVersion})
	w.after(w.between(0, 5*time.Second), i.lie)
	return i
}

func (i *insider) target() nodeid.Endpoint {
	return nodeid.Endpoint{ID: i.p.instance, Addr: i.p.m.addr}
}

func (i *insider) lie() {
	w := i.w
	w.after(w.between(0, insiderPause), i.lie)
	i.serve()
	to := w.watch.running[w.any().id]
	if to == nil || to.core.Founding.Phase() == founding.Newborn {
		return
	}
	at, voters := i.configuration(to)
	i.p.group = to.group
	i.says = identity{instance: i.p.instance, group: to.group, raft: voters[w.rng.IntN(len(voters))].Raft,
		addr: i.addr()}
	w.note("the insider lies to %v", to)
	switch w.rng.IntN(7) {
	case 0:
		i.ask(to, founding.AppendPush(nil, founding.Push{To: to.instance, Group: to.group, At: at,
			Voters: voters}))
	case 1:
		i.ask(to, founding.AppendPrepare(nil, founding.Prepare{
			To: to.instance, Group: to.group, Raft: w.id(), Term: insiderTerm, At: at, Voters: voters,
		}))
	case 2:
		for _, q := range i.liar(to).Tick(to.foundingNow()+time.Minute, to.m.wallUnixMS(), w.random()).Questions {
			i.ask(to, q.Body)
			break
		}
	case 3:
		i.redirect(to)
	case 4:
		i.steal(to)
	case 5:
		i.send(to, frame{retired: true})
		if links := i.p.links[to.instance]; len(links) > 0 && w.chance(0.1) {
			links[0].close()
		}
	case 6:
		r := to.core.Founding.Raft()
		i.send(to, frame{raft: []*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: &i.says.raft, To: &r,
			Term: new(uint64(insiderTerm))}}})
	}
}

// addr returns the address that the insider claims, which is sometimes the address of another
// machine.
func (i *insider) addr() string {
	if i.w.chance(0.3) {
		return i.w.any().addr
	}
	return i.p.m.addr
}

// configuration returns a false configuration: that of the group, but with voters replaced, changed
// or left out, and with a higher number.
func (i *insider) configuration(to *life) (at uint64, voters []founding.Voter) {
	w := i.w
	for _, v := range to.core.Voters() {
		switch w.rng.IntN(4) {
		case 0:
			v.Instance, v.Addr = i.p.instance, i.addr()
		case 1:
			continue
		case 2:
			v.Raft, v.Addr, v.Life = w.id(), i.addr(), v.Life+uint64(w.rng.IntN(1000))
		}
		voters = append(voters, v)
	}
	if len(voters) == 0 || w.chance(0.3) {
		voters = []founding.Voter{{Raft: w.id(), Instance: i.p.instance, Addr: i.addr(), Life: 1}}
	}
	return max(to.core.At(), 1) + uint64(w.rng.Int64N([]int64{1, 5, 1 << 50}[w.rng.IntN(3)])), voters
}

// liar returns the founding core that the insider claims to have when it sends to a process.
// Usually the core belongs to a member of that process's group. Before healing, it sometimes
// belongs to a member of a new group, which supersedes that of the process.
func (i *insider) liar(to *life) *founding.Core {
	w := i.w
	group, supersedes := to.group, []uint64(nil)
	if !w.calm && w.chance(0.2) {
		group, supersedes = w.id(), []uint64{to.group}
	}
	at, voters := i.configuration(to)
	settings := w.cfg.settings()
	c := founding.New(founding.Config{
		Instance: i.p.instance, Name: w.any().name, Addr: i.addr(), Settings: settings, Rules: lockfsm.RulesVersion,
		Durable: w.chance(0.5), Life: 1 + uint64(w.rng.IntN(100)),
		Stored: &founding.State{Instance: i.p.instance, Phase: founding.Member, Group: group, Settings: settings,
			At: at, Voters: voters, Supersedes: supersedes},
	})
	c.Tick(to.foundingNow(), to.m.wallUnixMS(), w.random())
	// 30 s later the time for the core's first queries is over
	c.Tick(to.foundingNow()+30*time.Second, to.m.wallUnixMS(), w.random())
	c.Leader(to.foundingNow()+30*time.Second, !w.calm && w.chance(0.5))
	return c
}

func (i *insider) ask(to *life, body []byte) {
	w, m, from := i.w, i.w.host(to.m), founding.Asker{Instance: i.p.instance, Addr: i.addr()}
	w.after(w.net.hop(), func() {
		if at := m.proc; at != nil && at.life == to && w.now >= m.pausedUntil {
			at.answer(from, query{body: body}, func(reply) {})
		}
	})
}

// answer implements receiver.
func (i *insider) answer(from founding.Asker, q query, then func(reply)) {
	p := i.w.ports[i.w.net.at(from.Addr)]
	switch {
	case q.status != nil:
		then(reply{status: cluster.StatusReply{VoterStatus: &cluster.VoterStatus{MayStop: true, AllLeaving: true,
			Known: true}}})
	case q.probe:
		then(reply{})
	case p == nil || p.core == nil || p.core.Founding.Phase() == founding.Newborn:
	default:
		if b := i.liar(p.life).Ask(p.foundingNow()+time.Minute, p.m.wallUnixMS(), from, q.body); b != nil {
			then(reply{body: b})
		}
	}
}

func (i *insider) send(to *life, f frame) { _ = i.p.send(to.instance, to.m.addr, f) }

// redirect sends a client a reply that names the insider as leader, although the client has sent
// no request.
func (i *insider) redirect(to *life) {
	now := i.p.m.clock()
	k := keeper.NewCore()
	k.Role(now, keeper.Role{Term: insiderTerm, Leader: i.target()})
	k.ReceiveFrom(now, keeper.Sender{ID: to.instance}, nil, nil)
	i.turn(k)
}

// steal sends a command to an instance that may lead. The command attaches the session of another
// instance, or opens it again.
func (i *insider) steal(to *life) {
	w := i.w
	if l := w.leader(); l != nil && l.glue.Machine() != nil && w.chance(0.5) {
		i.seen = slices.DeleteFunc(l.glue.Machine().Sessions(), func(s lockfsm.SessionInfo) bool { return s.Gone })
	}
	if len(i.seen) == 0 {
		return
	}
	s := i.seen[w.rng.IntN(len(i.seen))]
	if w.calm || w.chance(0.7) {
		i.send(to, frame{commands: lockfsm.Command{
			Kind: lockfsm.Attach, Session: s.ID, Epoch: s.Epoch + 1 + lockfsm.Epoch(w.rng.IntN(10)), Number: 1 << 30,
			Nonce: s.Nonce,
		}.Append(nil)})
		return
	}
	record := s.Record
	if w.chance(0.5) {
		record = nil
	}
	i.send(to, frame{commands: lockfsm.Command{Kind: lockfsm.Open, Nonce: s.Nonce, TTL: s.TTL,
		Record: record}.Append(nil)})
}

// opened is called when the real group has opened a session. It makes the insider open a session
// with the same nonce and reply to the client.
func (i *insider) opened(id lockfsm.SessionID) {
	l := i.w.leader()
	if l == nil {
		return
	}
	at := slices.IndexFunc(l.glue.Machine().Sessions(), func(s lockfsm.SessionInfo) bool { return s.ID == id })
	if at < 0 {
		return
	}
	s := l.glue.Machine().Sessions()[at]
	i.keeper.ReceiveFrom(i.p.m.clock(), keeper.Sender{ID: s.Opener.Instance}, nil,
		lockfsm.Command{Kind: lockfsm.Open, Nonce: s.Nonce, TTL: s.TTL}.Append(nil))
	i.serve()
}

// identity implements receiver.
func (i *insider) identity() identity { return i.says }

// down implements receiver.
func (i *insider) down(nodeid.ID) {}

// snapshot implements receiver.
func (i *insider) snapshot(identity, uint64, *raftpb.Message) bool { return false }

// frame implements receiver.
func (i *insider) frame(_ *end, f frame) {
	i.keeper.ReceiveFrom(i.p.m.clock(), keeper.Sender{ID: f.from.instance}, f.renewals, f.commands)
	i.serve()
}

// serve runs turns of the insider's keeper, and applies the commands of its group immediately.
func (i *insider) serve() { i.turn(i.keeper) }

func (i *insider) turn(k *keeper.Core) {
	now, then := i.p.m.clock(), []func(){}
	to := &keeper.Outlets{
		WallUnixMS: i.p.m.wallUnixMS, Reply: i.reply,
		Propose: func(_ uint64, blob []byte) bool {
			then = append(then, func() { k.Applied(now, i.apply(blob)) })
			return true
		},
		Confirm: func(term, round uint64) { then = append(then, func() { k.Confirmed(now, term, round) }) },
	}
	for k.Turn(now, to); len(then) > 0; k.Turn(now, to) {
		then[0]()
		then = then[1:]
	}
}

func (i *insider) apply(blob []byte) (results []lockfsm.Result) {
	i.index++
	i.locks.ApplyEntry(i.index, insiderTerm, blob, func(r *lockfsm.Result) { results = append(results, r.Clone()) })
	return results
}

func (i *insider) reply(to nodeid.ID, b []byte) error {
	for p := range i.w.procs() {
		if p.instance == to && p.group != 0 {
			i.p.group, i.says = p.group, identity{instance: i.p.instance, group: p.group, addr: i.p.m.addr}
			i.send(p.life, frame{replies: b})
		}
	}
	return nil
}

func (i *insider) gossip(to *life) gossip.Meta {
	said := gossip.Meta{Instance: i.p.instance, Group: to.group, Addr: i.addr(), At: to.core.At() +
		uint64(i.w.rng.Int64N(1<<50))}
	if i.w.chance(0.5) {
		if p := i.w.any().proc; p != nil {
			said.Instance = p.instance
		}
	}
	if i.w.chance(0.2) {
		said.Group = i.w.id()
	}
	return said
}
