package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/replica"
)

// nemesis causes one fault after another, with pauses between them.
type nemesis struct {
	w        *world
	sluggish float64
	brittle  float64
	slowDisk float64
	hungSnap float64
	wipes    int
	rolling  bool // a rolling restart is under way
	lurking  int  // how many more changes of the voters trigger a crash
}

func (w *world) unleash() {
	t := w.cfg.Trouble
	w.nemesis = nemesis{w: w, sluggish: t.Sluggish, brittle: t.Brittle, slowDisk: t.SlowDisk, hungSnap: t.HungSnap,
		wipes: t.Wipes}
	w.watch.recalled = w.nemesis.disturb
	w.net.jitter, w.net.repeat, w.net.drop = t.Jitter, t.Repeat, t.Drop
	if t.Every > 0 {
		w.after(w.between(0, 2*t.Every), w.nemesis.strike)
	}
}

type fault struct {
	name         string
	often, quiet int // weights in a normal and in a quiet run
	do           func(n *nemesis, m, o *machine)
}

// faults returns all kinds of faults. In a quiet run, machines only stop and start.
func faults() []fault {
	return []fault{
		{"crash", 2, 1, func(n *nemesis, m, _ *machine) { n.crash(m, false) }},
		{"power failure", 2, 1, func(n *nemesis, m, _ *machine) { n.crash(m, true) }},
		{"crash of the leader", 1, 1, func(n *nemesis, _, _ *machine) {
			n.atLeader(func(l *machine) { n.crash(l, n.w.chance(0.5)) })
		}},
		{"short pause", 1, 0, func(n *nemesis, m, _ *machine) { n.pause(m, n.w.between(0, n.w.cfg.TTL)) }},
		{"long pause", 1, 0, func(n *nemesis, m, _ *machine) { n.pause(m, n.w.between(n.w.cfg.TTL/2, 3*n.w.cfg.TTL)) }},
		{"pause of the leader", 1, 0, func(n *nemesis, _, _ *machine) {
			n.atLeader(func(l *machine) { n.pause(l, n.w.between(replica.ElectionTimeout/2, 3*n.w.cfg.TTL)) })
		}},
		{"partition", 2, 0, func(n *nemesis, _, _ *machine) { n.partition() }},
		{"one way cut", 1, 0, func(n *nemesis, m, o *machine) { n.cutOneWay(m, o) }},
		{"cut", 1, 0, func(n *nemesis, m, o *machine) { n.cutBothWays(m, o) }},
		{"cut off leader", 1, 0, func(n *nemesis, m, _ *machine) { n.atLeader(func(l *machine) { n.cutLeader(l, m) }) }},
		{"streams reset", 1, 0, func(n *nemesis, m, _ *machine) { n.breakStreams(m) }},
		{"swap of addresses", 1, 0, (*nemesis).swap},
		{"leave and return", 1, 2, func(_ *nemesis, m, _ *machine) { m.leaveAndReturn() }},
		{"lost disk", 1, 0, func(n *nemesis, m, _ *machine) { n.disk(m) }},
		{"restart of all", 1, 0, func(n *nemesis, _, _ *machine) { n.all() }},
		{"restart of the voters", 2, 0, func(n *nemesis, _, _ *machine) { n.voters() }},
		{"rolling restart", 2, 3, func(n *nemesis, _, _ *machine) { n.roll() }},
		{"flapping", 1, 1, func(n *nemesis, m, _ *machine) { n.flap(m) }},
		{"scaling", 2, 1, func(n *nemesis, m, _ *machine) { n.scale(m) }},
		{"exodus", 1, 0, func(n *nemesis, _, _ *machine) { n.exodus() }},
		{"two crashes", 1, 1, (*nemesis).two},
		{"disaster", 1, 0, func(n *nemesis, _, _ *machine) { n.disaster() }},
		{"power failure at a change of the voters", 2, 0, func(n *nemesis, _, _ *machine) { n.lurk() }},
		{"outage", 3, 0, func(n *nemesis, _, _ *machine) { n.outage() }},
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

func (n *nemesis) atLeader(do func(*machine)) {
	if l := n.w.leader(); l != nil {
		do(l.p.m)
	}
}

func (n *nemesis) mend() {
	n.w.note("the network is whole")
	n.w.net.mend()
}

func (n *nemesis) crash(m *machine, power bool) {
	if n.w.calm {
		return
	}
	m.crash(power)
	if n.w.chance(0.3) {
		m.move()
	}
	n.w.after(n.w.between(10*time.Millisecond, 4*n.w.cfg.TTL), m.ensureUp)
}

func (n *nemesis) pause(m *machine, d time.Duration) {
	n.w.note("%s stands still for %v", m.name, d)
	m.pausedUntil = max(m.pausedUntil, n.w.now+d)
	n.w.line.span(timeline.Paused, n.w.page(), n.w.page()+d, m.name, "stands still")
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
				w.net.sever(w.machines[i], w.machines[j])
			}
		}
	}
}

func (n *nemesis) cutOneWay(a, b *machine) {
	if a != b {
		n.w.note("nothing gets from %s to %s", a.name, b.name)
		n.w.net.sever(a, b)
	}
}

func (n *nemesis) cutBothWays(a, b *machine) {
	n.cutOneWay(a, b)
	n.cutOneWay(b, a)
}

// cutLeader cuts the link from the leader to another machine, and perhaps also the link back.
func (n *nemesis) cutLeader(l, m *machine) {
	n.cutOneWay(l, m)
	if n.w.chance(0.5) {
		n.cutOneWay(m, l)
	}
}

// breakStreams closes all streams of a machine, at the ends on that machine.
func (n *nemesis) breakStreams(m *machine) {
	if m.proc != nil {
		n.w.note("the streams of %s are reset", m.name)
		m.proc.hangUp()
	}
}

func (n *nemesis) swap(a, b *machine) {
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
		r.p.m.crash(false)
		n.w.after(n.w.between(time.Millisecond, 300*time.Millisecond), r.p.m.ensureUp)
	}
}

// disturb is called when a request begins to wait for a stay of the machine. Sometimes it causes a
// fault while the recall is under way.
func (n *nemesis) disturb(m *machine) {
	w := n.w
	if w.calm || w.cfg.Quiet {
		return
	}
	n.atLeader(func(l *machine) {
		if w.net.blocked(l, m) && !w.net.blocked(m, l) {
			w.watch.stats.Deaf++
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
			n.atLeader(func(l *machine) { n.cutOneWay(l, m) })
			w.after(w.between(0, 4*w.cfg.TTL), n.mend)
		case 3:
			n.atLeader(func(l *machine) { n.crash(l, w.chance(0.5)) })
		case 4:
			n.crash(m, w.chance(0.5))
		}
	})
}

// heal ends all faults for the rest of the run. A paused machine continues only at the end of its
// pause.
func (w *world) heal() {
	w.note("all trouble is over")
	w.calm = true
	w.nemesis = nemesis{w: w}
	w.net.jitter, w.net.repeat, w.net.drop = 0, 0, 0
	w.net.mend()
	for _, m := range w.machines {
		if len(w.cfg.Founders) == 0 {
			m.gone = false // a new group needs all machines
		}
		m.dns = m.addr
		w.after(w.between(0, time.Second), m.ensureUp)
	}
}
