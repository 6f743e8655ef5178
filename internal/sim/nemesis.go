package sim

import "time"

// nemesis does bad things, one blow after another, with pauses between them.
type nemesis struct {
	w        *world
	sluggish float64
	brittle  float64
	slowDisk float64
	wipes    int
	rolling  bool // a rolling restart is under way
	lurking  int  // how many changes of the voters it has yet to strike at
}

// unleash begins the trouble.
func (w *world) unleash() {
	t := w.cfg.Trouble
	w.nemesis = nemesis{w: w, sluggish: t.Sluggish, brittle: t.Brittle, slowDisk: t.SlowDisk, wipes: t.Wipes}
	w.net.jitter, w.net.repeat, w.net.drop = t.Jitter, t.Repeat, t.Drop
	if t.Every > 0 {
		w.after(w.between(0, 2*t.Every), w.nemesis.strike)
	}
}

// quietBlows are those of strike in which a machine only goes and comes.
var quietBlows = [...]int{0, 2, 4, 15, 15, 20, 20, 20, 22, 23, 26}

// strike does one bad thing and comes back later.
func (n *nemesis) strike() {
	w := n.w
	if w.calm {
		return
	}
	m, o := w.machines[w.rng.IntN(len(w.machines))], w.machines[w.rng.IntN(len(w.machines))]
	blow := w.rng.IntN(33)
	if w.cfg.Quiet {
		blow = quietBlows[w.rng.IntN(len(quietBlows))]
	}
	if blow < 20 {
		n.fault(blow, m, o)
	} else {
		n.operate(blow, m, o)
	}
	if w.chance(0.4) {
		w.after(w.between(0, 4*w.cfg.TTL), n.mend)
	}
	w.after(w.between(0, 2*w.cfg.Trouble.Every), n.strike)
}

// fault is one of the things that happen by themselves.
func (n *nemesis) fault(blow int, m, o *machine) {
	w := n.w
	switch blow {
	case 0, 1:
		n.crash(m, false)
	case 2, 3:
		n.crash(m, true)
	case 4:
		if l := w.leader(); l != nil {
			n.crash(l.p.m, w.chance(0.5))
		}
	case 5:
		n.pause(m, w.between(0, w.cfg.TTL))
	case 6:
		n.pause(m, w.between(w.cfg.TTL/2, 3*w.cfg.TTL))
	case 7:
		if l := w.leader(); l != nil {
			n.pause(l.p.m, w.between(electionTimeout/2, 3*w.cfg.TTL))
		}
	case 8, 9:
		n.partition()
	case 10:
		n.cutOneWay(m, o)
	case 11:
		n.cutOneWay(m, o)
		n.cutOneWay(o, m)
	case 12:
		if l := w.leader(); l != nil && l.p.m != m {
			n.cutOneWay(l.p.m, m)
			if w.chance(0.5) {
				n.cutOneWay(m, l.p.m)
			}
		}
	case 13:
		n.breakStreams(m)
	case 14:
		n.swap(m, o)
	case 15:
		m.leaveAndReturn()
	case 16:
		n.disk(m)
	case 17:
		n.all()
	case 18, 19:
		n.voters()
	}
}

// operate is one of those that people do to a cluster, machines that fail one after another, or an
// outage of the whole network.
func (n *nemesis) operate(blow int, m, o *machine) {
	switch blow {
	case 20, 21:
		n.roll()
	case 22:
		n.flap(m)
	case 23, 24:
		n.scale(m)
	case 25:
		n.exodus()
	case 26:
		n.two(m, o)
	case 27:
		n.disaster()
	case 28, 29:
		n.lurk()
	case 30, 31, 32:
		n.outage()
	}
}

// mend heals the network for now.
func (n *nemesis) mend() {
	n.w.note("the network is whole")
	clear(n.w.net.cut)
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
}

// partition cuts the machines into two sides, which may both reach a third: not everything that is cut is transitive.
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
				w.net.cut[[2]int{i, j}] = true
			}
		}
	}
}

func (n *nemesis) cutOneWay(a, b *machine) {
	if a != b {
		n.w.note("nothing gets from %s to %s", a.name, b.name)
		n.w.net.cut[[2]int{a.id, b.id}] = true
	}
}

// breakStreams resets the streams of a machine, at one end each.
func (n *nemesis) breakStreams(m *machine) {
	if m.proc != nil {
		n.w.note("the streams of %s are reset", m.name)
		m.proc.hangUp()
	}
}

// swap lets two machines come back with each other's addresses.
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

// all is what people do who restart everything at once.
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

// voters restarts all voters at once, so fast that others still believe in their locks when a new group can be founded.
func (n *nemesis) voters() {
	n.w.note("all voters are restarted")
	for _, m := range n.w.machines {
		if m.proc != nil && m.proc.replica != nil {
			m.crash(false)
			n.w.after(n.w.between(time.Millisecond, 300*time.Millisecond), m.ensureUp)
		}
	}
}

// leader returns a replica that leads, if any does: the one with the highest term.
func (w *world) leader() *ownReplica {
	var best *ownReplica
	for _, m := range w.machines {
		if m.proc == nil || m.proc.replica == nil || !m.proc.replica.Role().Leading {
			continue
		}
		if r := m.proc.replica; best == nil || r.Role().Term > best.Role().Term {
			best = r
		}
	}
	return best
}

// heal ends all trouble for good.
func (w *world) heal() {
	w.note("all trouble is over")
	w.calm = true
	w.nemesis = nemesis{w: w}
	w.net.jitter, w.net.repeat, w.net.drop = 0, 0, 0
	clear(w.net.cut)
	for _, m := range w.machines {
		m.pausedUntil = 0
		if len(w.cfg.Founders) == 0 {
			m.gone = false // all are needed if a new group has to be founded
		}
		m.dns = m.addr
		w.after(w.between(0, time.Second), m.ensureUp)
	}
}
