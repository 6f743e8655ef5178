package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/replica"
)

// nemesis causes one fault after another, with pauses between them.
type nemesis struct {
	w       *fleet
	wipes   int
	rolling bool // a rolling restart is under way
	lurking int  // how many more changes of the voters trigger a crash
}

func unleash(w *fleet) *nemesis {
	t := w.cfg.Trouble
	n := &nemesis{w: w, wipes: t.Wipes}
	w.odds = odds{jitter: t.Jitter, repeat: t.Repeat, drop: t.Drop, sluggish: t.Sluggish, brittle: t.Brittle,
		slowDisk: t.SlowDisk, hungSnap: t.HungSnap, claim: t.Claim}
	w.watch.stays.recalled = func(m *machine) { n.disturb(w.host(m)) }
	w.watch.voters.changed = func(first *machine) { n.pounce(w.host(first)) }
	if t.Every > 0 {
		w.after(w.between(0, 2*t.Every), n.strike)
	}
	return n
}

type fault struct {
	name         string
	often, quiet int // weights in a normal and in a quiet run
	do           func(n *nemesis, m, o *host)
}

// faults returns all kinds of faults. In a quiet run, machines only stop and start.
func faults() []fault {
	return []fault{
		{"crash", 2, 1, func(n *nemesis, m, _ *host) { n.crash(m, false) }},
		{"power failure", 2, 1, func(n *nemesis, m, _ *host) { n.crash(m, true) }},
		{"crash of the leader", 1, 1, func(n *nemesis, _, _ *host) {
			n.atLeader(func(l *host) { n.crash(l, n.w.chance(0.5)) })
		}},
		{"short pause", 1, 0, func(n *nemesis, m, _ *host) { n.pause(m, n.w.between(0, n.w.cfg.TTL)) }},
		{"long pause", 1, 0, func(n *nemesis, m, _ *host) { n.pause(m, n.w.between(n.w.cfg.TTL/2, 3*n.w.cfg.TTL)) }},
		{"pause of the leader", 1, 0, func(n *nemesis, _, _ *host) {
			n.atLeader(func(l *host) { n.pause(l, n.w.between(replica.ElectionTimeout/2, 3*n.w.cfg.TTL)) })
		}},
		{"partition", 2, 0, func(n *nemesis, _, _ *host) { n.partition() }},
		{"one way cut", 1, 0, func(n *nemesis, m, o *host) { n.cutOneWay(m, o) }},
		{"cut", 1, 0, func(n *nemesis, m, o *host) { n.cutBothWays(m, o) }},
		{"cut off leader", 1, 0, func(n *nemesis, m, _ *host) { n.atLeader(func(l *host) { n.cutLeader(l, m) }) }},
		{"streams reset", 1, 0, func(n *nemesis, m, _ *host) { n.breakStreams(m) }},
		{"swap of addresses", 1, 0, (*nemesis).swap},
		{"leave and return", 1, 2, func(_ *nemesis, m, _ *host) { m.leaveAndReturn() }},
		{"lost disk", 1, 0, func(n *nemesis, m, _ *host) { n.disk(m) }},
		{"restart of all", 1, 0, func(n *nemesis, _, _ *host) { n.all() }},
		{"restart of the voters", 2, 0, func(n *nemesis, _, _ *host) { n.voters() }},
		{"rolling restart", 2, 3, func(n *nemesis, _, _ *host) { n.roll() }},
		{"flapping", 1, 1, func(n *nemesis, m, _ *host) { n.flap(m) }},
		{"scaling", 2, 1, func(n *nemesis, m, _ *host) { n.scale(m) }},
		{"exodus", 1, 0, func(n *nemesis, _, _ *host) { n.exodus() }},
		{"two crashes", 1, 1, (*nemesis).two},
		{"disaster", 1, 0, func(n *nemesis, _, _ *host) { n.disaster() }},
		{"power failure at a change of the voters", 2, 0, func(n *nemesis, _, _ *host) { n.lurk() }},
		{"outage", 3, 0, func(n *nemesis, _, _ *host) { n.outage() }},
	}
}

func (n *nemesis) strike() {
	w := n.w
	if w.calm {
		return
	}
	w.strike(n.draw)
	if w.chance(0.4) {
		w.after(w.between(0, 4*w.cfg.TTL), n.mend)
	}
	w.after(w.between(0, 2*w.cfg.Trouble.Every), n.strike)
}

func (n *nemesis) draw() (name string, do func()) {
	w := n.w
	var drawn []fault
	for _, b := range faults() {
		often := b.often
		if w.cfg.Quiet {
			often = b.quiet
		}
		drawn = append(drawn, slices.Repeat([]fault{b}, often)...)
	}
	one, m, o := drawn[w.rng.IntN(len(drawn))], w.any(), w.any()
	return one.name + " (" + m.name + ", " + o.name + ")", func() { one.do(n, m, o) }
}

func (n *nemesis) atLeader(do func(*host)) {
	if l := n.w.leader(); l != nil {
		do(n.w.host(l.p.m))
	}
}

func (n *nemesis) mend() {
	n.w.note("the network is whole")
	n.w.net.mend()
}

func (n *nemesis) crash(m *host, power bool) {
	if n.w.calm {
		return
	}
	m.crash(power)
	if n.w.chance(0.3) {
		m.move()
	}
	n.w.after(n.w.between(10*time.Millisecond, 4*n.w.cfg.TTL), m.ensureUp)
}

func (n *nemesis) pause(m *host, d time.Duration) {
	n.w.note("%s stands still for %v", m.name, d)
	m.pausedUntil = max(m.pausedUntil, n.w.now+d)
	n.w.line.Span(timeline.Paused, n.w.page(), n.w.page()+d, m.name, "stands still")
}

// partition cuts the links between two random sides. One machine may reach both sides, because in
// real networks connectivity need not be transitive.
func (n *nemesis) partition() {
	w := n.w
	side := make([]int, len(w.machines))
	for i := range side {
		side[i] = w.rng.IntN(2)
	}
	both, oneWay := w.rng.IntN(2*len(w.machines)), w.chance(0.2)
	w.note("partition %v, %d reaches both sides, one way: %v", side, both, oneWay)
	for i := range side {
		for j := range side {
			if side[i] != side[j] && i != both && j != both && (!oneWay || side[i] == 0) {
				w.net.sever(w.machines[i].machine, w.machines[j].machine)
			}
		}
	}
}

func (n *nemesis) cutOneWay(a, b *host) {
	if a != b {
		n.w.note("nothing gets from %s to %s", a.name, b.name)
		n.w.net.sever(a.machine, b.machine)
	}
}

func (n *nemesis) cutBothWays(a, b *host) {
	n.cutOneWay(a, b)
	n.cutOneWay(b, a)
}

// cutLeader cuts the link from the leader to another machine, and perhaps also the link back.
func (n *nemesis) cutLeader(l, m *host) {
	n.cutOneWay(l, m)
	if n.w.chance(0.5) {
		n.cutOneWay(m, l)
	}
}

// breakStreams closes all streams of a machine, at the ends on that machine.
func (n *nemesis) breakStreams(m *host) {
	if m.proc != nil {
		n.w.note("the streams of %s are reset", m.name)
		m.proc.hangUp()
	}
}

func (n *nemesis) swap(a, b *host) {
	if a == b {
		return
	}
	a.crash(false)
	b.crash(false)
	x, y := a.addr, b.addr
	a.address(y)
	b.address(x)
	n.w.after(n.w.between(0, 2*time.Second), a.ensureUp)
	n.w.after(n.w.between(0, 2*time.Second), b.ensureUp)
}

func (n *nemesis) all() {
	n.w.note("everything is restarted")
	power := n.w.chance(0.5)
	for _, m := range n.w.machines {
		m.crash(power)
		if n.w.chance(0.3) {
			m.move()
		}
		n.w.after(n.w.between(0, 3*time.Second), m.ensureUp)
	}
}

// voters is a fault that restarts all voters so fast that other instances still have leases of the
// old group when a new group can be founded.
func (n *nemesis) voters() {
	n.w.note("all voters are restarted")
	for r := range n.w.replicas() {
		m := n.w.host(r.p.m)
		m.crash(false)
		n.w.after(n.w.between(time.Millisecond, 300*time.Millisecond), m.ensureUp)
	}
}

// disturb is called when a request begins to wait for a stay of the machine. Sometimes it causes a
// fault while the recall is under way.
func (n *nemesis) disturb(m *host) {
	w := n.w
	if w.calm || w.cfg.Quiet {
		return
	}
	n.atLeader(func(l *host) {
		if w.net.blocked(l.machine, m.machine) && !w.net.blocked(m.machine, l.machine) {
			w.stats.Deaf++
		}
	})
	if !w.chance(0.03) {
		return
	}
	w.after(0, func() {
		switch w.rng.IntN(5) {
		case 0:
			n.pause(m, w.between(0, w.cfg.TTL))
		case 1:
			n.breakStreams(m)
		case 2:
			n.atLeader(func(l *host) { n.cutOneWay(l, m) })
			w.after(w.between(0, 4*w.cfg.TTL), n.mend)
		case 3:
			n.atLeader(func(l *host) { n.crash(l, w.chance(0.5)) })
		case 4:
			n.crash(m, w.chance(0.5))
		}
	})
}

// roll restarts one machine after another. If paced is set, it waits each time until the new
// process is ready.
func (n *nemesis) roll() {
	w := n.w
	if n.rolling {
		return
	}
	n.rolling = true
	order := w.rng.Perm(len(w.machines))
	leave, paced, pause := w.chance(0.6), w.cfg.Quiet || w.chance(0.6), w.between(0, 3*time.Second)
	w.note("a rolling restart, with leave: %v, paced: %v", leave, paced)
	var next func()
	next = func() {
		for len(order) > 0 && w.machines[order[0]].proc == nil {
			order = order[1:]
		}
		if w.calm || len(order) == 0 {
			n.rolling = false
			return
		}
		m := w.machines[order[0]]
		order = order[1:]
		back := func() {
			w.after(w.between(50*time.Millisecond, 2*time.Second), func() {
				m.ensureUp()
				if !paced {
					w.after(pause, next)
					return
				}
				m.whenReady(readyWithin, func() { w.after(pause, next) })
			})
		}
		if leave && m.proc != nil {
			m.leave(back)
			return
		}
		m.crash(false)
		back()
	}
	next()
}

const readyWithin = time.Minute

// flap crashes and restarts a machine several times, or cuts it off and heals the links several
// times.
func (n *nemesis) flap(m *host) {
	w := n.w
	period, times, cut := w.between(2*time.Second, 8*time.Second), 4+w.rng.IntN(12), !w.cfg.Quiet && w.chance(0.3)
	w.note("%s flaps %d times, every %v, cut off: %v", m.name, times, period, cut)
	var next func()
	next = func() {
		if times--; times < 0 || w.calm {
			return
		}
		if cut {
			for _, o := range w.machines {
				n.cutBothWays(m, o)
			}
			w.after(period/2, n.mend)
		} else {
			m.crash(w.chance(0.2))
			w.after(w.between(50*time.Millisecond, period/2), m.ensureUp)
		}
		w.after(period, next)
	}
	next()
}

// scale stops a machine, or starts it if scale has stopped it. If Config.Founders is set, scale
// stops only machines that are not founders. Otherwise a stopped machine starts again after a
// while, because a new group needs all machines.
func (n *nemesis) scale(m *host) {
	w := n.w
	lasting := len(w.cfg.Founders) > 0
	if m.gone {
		w.note("%s comes", m.name)
		m.gone = false
		m.ensureUp()
		return
	}
	if lasting && slices.Contains(w.cfg.Founders, m.name) {
		return
	}
	w.note("%s goes", m.name)
	m.gone = true
	if p := m.proc; p != nil && !p.leaving && w.chance(0.7) {
		// ensureUp starts the machine only if m.gone was cleared meanwhile.
		m.leave(func() { w.after(w.between(0, time.Second), m.ensureUp) })
	} else {
		m.crash(w.chance(0.5))
	}
	if !lasting {
		w.after(w.between(10*time.Second, 3*time.Minute), func() {
			m.gone = false
			m.ensureUp()
		})
	}
}

// exodus makes some or all machines leave at the same time, and starts them again.
func (n *nemesis) exodus() {
	all := n.w.chance(0.3)
	n.w.note("some leave at once; all: %v", all)
	for _, m := range n.w.machines {
		if all || n.w.chance(0.5) {
			m.leaveAndReturn()
		}
	}
}

// outage cuts the links between all machines. Then the links heal one by one in a random order.
func (n *nemesis) outage() {
	w := n.w
	long, ended := w.between(0, 6*w.cfg.TTL), w.chance(0.7)
	w.note("all machines are cut from each other for %v, streams end: %v", long, ended)
	var pairs [][2]*host
	for i, a := range w.machines {
		for _, b := range w.machines[:i] {
			pairs = append(pairs, [2]*host{a, b})
			w.net.sever(a.machine, b.machine)
			w.net.sever(b.machine, a.machine)
		}
		if ended && a.proc != nil {
			a.proc.hangUp()
		}
	}
	w.net.dialing = w.between(0, 5*time.Second)
	over := w.now + long
	for _, i := range w.rng.Perm(len(pairs)) {
		a, b := pairs[i][0], pairs[i][1]
		w.after(over-w.now, func() {
			w.net.join(a.machine, b.machine)
			w.net.join(b.machine, a.machine)
		})
		over += w.between(0, 200*time.Millisecond)
	}
	w.after(over-w.now+10*time.Second, func() { w.net.dialing = 0 })
}

// two is a fault: machine a crashes, and machine b crashes some seconds later.
func (n *nemesis) two(a, b *host) {
	n.crash(a, n.w.chance(0.3))
	n.w.after(n.w.between(time.Second, 12*time.Second), func() { n.crash(b, n.w.chance(0.3)) })
}

// lurk makes the power fail at each of the next one to three changes of the voters, when only
// some replicas have applied the change.
func (n *nemesis) lurk() {
	n.w.note("the power will fail at a change of the voters")
	n.lurking = 1 + n.w.rng.IntN(3)
}

// pounce is called with the first machine that has applied a new configuration. If lurk has chosen
// this change, pounce crashes the machine, and perhaps another one.
func (n *nemesis) pounce(first *host) {
	w := n.w
	if n.lurking == 0 || w.calm {
		return
	}
	n.lurking--
	other := w.any()
	w.after(w.between(0, 4*w.net.latency), func() { n.crash(first, true) })
	if w.chance(0.5) {
		w.after(w.between(0, 8*w.net.latency), func() { n.crash(other, true) })
	}
}

// The fault disk wipes the disk of a machine. If Config.Grace is zero, no group may be given up,
// so the fault spares a disk whose loss could cost a group its majority.
func (n *nemesis) disk(m *host) {
	if m.disk == nil || n.wipes == 0 || m.needed() || n.w.cfg.Grace == 0 &&
		!n.w.watch.voters.foundings.MaySpare(nodeidtest.Number(m.instance)) {
		return
	}
	n.wipes--
	m.loseDisk()
}

// disaster wipes the disks of a majority of the voters. Only operators can restore the service.
func (n *nemesis) disaster() {
	l := n.w.leader()
	if l == nil || !l.glue.Machine().Born() || n.wipes == 0 || n.w.cfg.Grace == 0 {
		return
	}
	n.wipes--
	n.w.note("a majority of the disks is lost")
	voters := l.Configuration().Voters
	left := len(voters)/2 + 1
	for r := range n.w.replicas() {
		if left > 0 && slices.Contains(voters, r.ID) {
			left--
			n.w.host(r.p.m).loseDisk()
		}
	}
}
