package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

// mostOwn is the largest number of sessions that the program of a process may have open. It is
// small, so that some cannot be opened.
const mostOwn = 4

const freeStays = 2 // the largest number of free stays of a process

// proc simulates a process with a Node, from its start to its end.
type proc struct {
	w    *world
	m    *machine
	dead bool

	stream int // number of its stream in the recorded history

	instance nodeid.ID
	group    uint64

	member bool // the instance is a member of group

	cluster      actor // owns core
	core         *cluster.Core
	saved        uint64 // revision of the state of founding on the disk
	removedPeers cluster.RemovedPeers

	sessions client.Set[*ownClient]
	opened   int // how many sessions its program has begun to open
	leaving  bool

	replica *ownReplica // may be nil
	insider *insider    // nil for a real process

	links   map[nodeid.ID][]*end
	dialing map[nodeid.ID][]frame
	backOff map[nodeid.ID]time.Duration
}

func (m *machine) newProc() *proc {
	m.w.streams++
	return &proc{
		w: m.w, m: m, instance: nodeidtest.ID(m.w.id()), stream: m.w.streams,
		links: map[nodeid.ID][]*end{}, dialing: map[nodeid.ID][]frame{}, backOff: map[nodeid.ID]time.Duration{},
	}
}

func (m *machine) start() *proc {
	w := m.w
	p := m.newProc()
	m.told = w.told
	cfg := founding.Config{Name: m.name, Addr: m.addr, Settings: w.cfg.settings(), Rules: lockfsm.RulesVersion}
	if d := m.disk; d != nil {
		d.lives++
		cfg.Durable, cfg.Life, cfg.Boot, cfg.Stored = true, d.lives, d.lives, d.state
		if d.state != nil && d.state.Phase != founding.Newborn {
			p.instance = d.state.Instance
		}
	}
	cfg.Instance = p.instance
	if m.instance != p.instance {
		w.watch.foundings.EndedEverywhere(nodeidtest.Number(m.instance))
		m.instance = p.instance
	}
	m.proc = p
	w.watch.names[p.instance] = m.name
	w.note("%s starts as %x at %s", m.name, p.instance, m.addr)
	w.line.begin(timeline.Runs, w.page(), m.name, "runs")
	p.core = cluster.NewCore(cluster.CoreConfig{Founding: cfg, Zone: m.zone, Gossips: cfg.Settings.Founds(m.name),
		OwnState: p})
	p.cluster = actor{p: p, turn: p.clusterTurn}
	p.sessions.First, p.sessions.Most = p.newClient(w.cfg.TTL), mostOwn
	if !p.persist() {
		return p
	}
	p.gossip()
	for range w.cfg.Callers {
		w.after(w.between(0, time.Second), func() { p.sessions.First.caller(nil) })
	}
	return p
}

// crash ends the process. Unless the power has failed, the kernel closes its streams.
func (m *machine) crash(power bool) {
	p := m.proc
	if p == nil {
		return
	}
	m.w.note("%s crashes, power failure: %v", m.name, power)
	m.w.watch.died(p)
	p.dead = true
	m.proc = nil
	m.w.line.end(m.w.page(), m.name, "runs")
	m.w.line.process(p.stream, m.w.page())
	if r := p.replica; r != nil {
		r.stop()
	}
	if !power {
		p.hangUp()
	}
}

func (p *proc) identity() identity {
	if p.insider != nil {
		return p.insider.says
	}
	id := identity{instance: p.instance, group: p.group, addr: p.m.addr}
	if p.replica != nil {
		id.raft = p.replica.ID
	}
	return id
}

func (p *proc) alive(instance nodeid.ID) bool { return !p.dead && p.instance == instance }

func (p *proc) String() string {
	return fmt.Sprintf("%s/%04x", p.m.name, nodeidtest.Number(p.instance)&0xffff)
}

// foundingNow returns the time since the beginning of the run, by the machine's clock.
func (p *proc) foundingNow() time.Duration { return time.Duration(p.m.clock() - p.m.origin) }

func (w *world) random() founding.Random {
	r := founding.Random{Instance: nodeidtest.ID(w.id()), Group: w.id(), Spread: w.rng.Uint64()}
	for i := range r.Raft {
		r.Raft[i] = w.id()
	}
	return r
}

func (w *world) newNonce() (n lockfsm.Nonce) {
	w.nonce++
	for i := range 8 {
		n[i] = byte(w.nonce >> (8 * i))
	}
	n[15] = 1
	return n
}

// frame handles a frame that has passed the checks of the transport.
func (p *proc) frame(e *end, f frame) {
	if p.insider != nil {
		p.insider.frame(f)
		return
	}
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
	case asks:
		r.asked(f.from.instance, f.renewals, f.commands)
	}
	if len(f.replies) > 0 {
		p.sessions.Receive(f.from.instance, f.replies)
	}
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

func (p *proc) later(d time.Duration, f func()) {
	p.w.after(d, func() {
		switch until := p.m.pausedUntil; {
		case p.dead:
		case p.w.now < until:
			p.later(until-p.w.now, f)
		default:
			f()
		}
	})
}

// ownClient owns the client's core of one session of a process: that of the process itself, or one
// that its program has opened.
type ownClient struct {
	p      *proc
	traced string  // its name in the trace of lease steps
	own    *opened // nil for the session of the process itself

	owner    actor // owns core
	core     *client.Core
	phase    client.Phase
	deadline clock.Time // published deadline of the lease
	safe     clock.Time // published time at which the lease enters jeopardy
	ttl      time.Duration
	stays    *stay.Set
	kept     map[*stay.Request]*keptStay // the granted requests of stays
	expected clock.Time                  // last deadline for which the watch has scheduled a check
	breaks   int                         // how often the session lost its attachment

	calls []*call // calls that have not ended, in the order in which they were made
}

// opened is a session that a program has opened.
type opened struct {
	number  int
	closing bool
}

// closes reports whether the program has begun to close the session.
func (s *ownClient) closes() bool { return s.own != nil && s.own.closing }

// some returns one of the sessions of a process.
func (p *proc) some() *ownClient {
	all := p.sessions.List()
	return all[p.w.opening.IntN(len(all))]
}

func (s *ownClient) String() string {
	if s.own == nil {
		return s.p.String()
	}
	return fmt.Sprintf("%v, session %d of its program", s.p, s.own.number)
}

func (s *ownClient) status() client.Status { return s.core.Status(s.p.m.clock()) }

// calls returns the calls in all sessions.
func (p *proc) calls() (all []*call) {
	for _, s := range p.sessions.List() {
		all = append(all, s.calls...)
	}
	return all
}

func (p *proc) held() (count int) {
	for _, s := range p.sessions.List() {
		count += s.held()
	}
	return count
}
