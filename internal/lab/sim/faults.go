package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/session/client"
)

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
			m.proc.leave(back)
			return
		}
		m.crash(false)
		back()
	}
	next()
}

const readyWithin = time.Minute

const settlePoll = 100 * time.Millisecond

// whenReady calls the callback when Node.Ready would return, or after the given time at the
// latest. Node.Ready returns when the session is attached, the grace has ended, and no change of
// the voters is due.
func (m *machine) whenReady(within time.Duration, then func()) {
	w, over := m.w, false
	end := func() {
		if !over {
			over = true
			then()
		}
	}
	until := w.now + within
	w.after(within, end)
	var look func()
	look = func() {
		p := m.proc
		if over || p == nil {
			return
		}
		if st := p.sessions.First.status(); st.Phase != client.Attached || st.GraceUntil != 0 {
			w.after(settlePoll, look)
			return
		}
		p.queryStatus(cluster.Inquiry{Own: true}, until-w.now, func(c *cluster.VoterStatus) {
			if c != nil && c.Known && !c.Due {
				end()
				return
			}
			w.after(settlePoll, look)
		})
	}
	look()
}

// flap crashes and restarts a machine several times, or cuts it off and heals the links several
// times.
func (n *nemesis) flap(m *machine) {
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
func (n *nemesis) scale(m *machine) {
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
		p.leave(func() { w.after(w.between(0, time.Second), m.ensureUp) })
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
	var pairs [][2]*machine
	for i, a := range w.machines {
		for _, b := range w.machines[:i] {
			pairs = append(pairs, [2]*machine{a, b})
			w.net.sever(a, b)
			w.net.sever(b, a)
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
			w.net.join(a, b)
			w.net.join(b, a)
		})
		over += w.between(0, 200*time.Millisecond)
	}
	w.after(over-w.now+10*time.Second, func() { w.net.dialing = 0 })
}

// two is a fault: machine a crashes, and machine b crashes some seconds later.
func (n *nemesis) two(a, b *machine) {
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
func (n *nemesis) pounce(first *machine) {
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
func (n *nemesis) disk(m *machine) {
	if m.disk == nil || n.wipes == 0 || m.needed() || n.w.cfg.Grace == 0 &&
		!n.w.watch.foundings.MaySpare(nodeidtest.Number(m.instance)) {
		return
	}
	n.wipes--
	n.wipe(m)
}

// needed reports whether the machine's disk has a removed replica whose vote may still be needed.
func (m *machine) needed() bool { return m.disk.state != nil && m.disk.state.Lingers != 0 }

func (n *nemesis) wipe(m *machine) {
	m.crash(true)
	m.wipe()
	n.w.after(n.w.between(0, 2*time.Second), m.ensureUp)
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
			n.wipe(r.p.m)
		}
	}
}
