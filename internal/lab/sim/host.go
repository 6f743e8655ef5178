package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// host is a machine with the process that runs on it.
type host struct {
	*machine
	w    *site
	proc *proc       // may be nil
	then func(*proc) // called when a process has started
}

func newHost(w *site, m *machine) *host {
	h := &host{machine: m, w: w, then: func(*proc) {}}
	m.power = h
	return h
}

func (m *host) start() *proc {
	w := m.w
	p := newProc(w, m.machine)
	m.told = w.told
	cfg := founding.Config{Name: m.name, Addr: m.addr, Settings: w.cfg.settings(), Rules: lockfsm.RulesVersion}
	if p.begins = m.begin(); m.disk != nil {
		d := m.disk
		cfg.Durable, cfg.Life, cfg.Boot, cfg.Stored = true, d.lives, d.lives, d.state
		if d.state != nil && d.state.Phase != founding.Newborn {
			p.instance = d.state.Instance
		}
	}
	cfg.Instance = p.instance
	if m.instance != p.instance {
		w.watch.voters.foundings.EndedEverywhere(nodeidtest.Number(m.instance))
		m.instance = p.instance
	}
	m.proc, w.ports[m.machine], w.watch.running[m.id] = p, p.port, p.life
	w.names[p.instance] = m.name
	w.note("%s starts as %x at %s", m.name, p.instance, m.addr)
	w.line.Begin(timeline.Runs, w.page(), m.name, "runs")
	p.core = cluster.NewCore(cluster.CoreConfig{Founding: cfg, Zone: m.zone, Gossips: cfg.Settings.Founds(m.name),
		OwnState: p})
	p.cluster = actor{p: p.life, turn: p.clusterTurn}
	p.sessions.First, p.sessions.Most = newClient(p, w.cfg.TTL), mostOwn
	p.sessions.First.core.Claims(p.begins.Since)
	p.former = m.former()
	p.relist()
	p.persist()
	return p
}

// crash ends the process. Unless the power has failed, the kernel closes its streams.
func (m *host) crash(power bool) {
	p := m.proc
	if p == nil {
		return
	}
	m.w.note("%s crashes, power failure: %v", m.name, power)
	if power {
		m.boots++
	}
	m.w.watch.died(p.life)
	p.dead = true
	m.proc, m.w.watch.running[m.id] = nil, nil
	delete(m.w.ports, m.machine)
	m.w.line.End(timeline.Runs, m.w.page(), m.name, "runs")
	m.w.line.process(p.stream, m.w.page())
	if r := p.replica; r != nil {
		r.stop()
	}
	if !power {
		p.hangUp()
	}
}

func (m *host) wipe() {
	m.w.note("%s loses its disk", m.name)
	m.w.watch.voters.foundings.EndedEverywhere(nodeidtest.Number(m.instance))
	*m.disk = disk{latency: m.disk.latency}
}

// loseDisk wipes the disk of a machine, whose process crashes.
func (m *host) loseDisk() {
	m.crash(true)
	m.wipe()
	m.w.after(m.w.between(0, 2*time.Second), m.ensureUp)
}

// crashAndReturn implements power.
func (m *host) crashAndReturn() {
	m.crash(true)
	m.w.after(m.w.between(50*time.Millisecond, 5*time.Second), m.ensureUp)
}

// restart implements power.
func (m *host) restart() {
	m.crash(false)
	m.ensureUp()
}

func (m *host) ensureUp() {
	if m.proc == nil && !m.gone {
		m.then(m.start())
	}
}

const settlePoll = 100 * time.Millisecond

// whenReady calls the callback when Node.Ready would return, or after the given time at the
// latest. Node.Ready returns when the session is attached, the grace has ended, and no change of
// the voters is due, or only the return of a voter that no instance can replace.
func (m *host) whenReady(within time.Duration, then func()) {
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
			if c != nil && c.Known && (!c.Due || c.Report.AwaitsReturn) {
				end()
				return
			}
			w.after(settlePoll, look)
		})
	}
	look()
}

func (m *host) recover(group uint64) {
	p := m.proc
	if p == nil {
		return
	}
	p.cluster.post(func(clock.Time) {
		if r := p.replica; r != nil && r.glue.Machine() != nil {
			// a revision without its lower 21 bits is a time in Unix milliseconds
			p.core.Founding.Floor(int64(r.glue.Machine().Revision() >> 21))
		}
		if err := p.core.Founding.Recover(p.foundingNow(), group); err != nil {
			p.w.note("%v does not recover: %v", p, err)
			return
		}
		p.w.note("%v gives group %x up", p, group)
		p.w.stats.Recovered++
		p.w.watch.voters.gaveUp[group] = true
	})
}

// strange reports whether operators must empty the directory of the instance. There are three
// conditions. The instance waits for an empty directory. Its replica is not needed, see
// fleet.needs. All voters that it knows have been replaced.
func (m *host) strange(needed bool) bool {
	p := m.proc
	if m.disk == nil || p == nil || needed ||
		!strings.Contains(p.core.Founding.Waiting(), "empty its directory") {
		return false
	}
	return !slices.ContainsFunc(p.core.Voters(), func(v cluster.Voter) bool {
		return !v.Learner && slices.ContainsFunc(m.w.net.machines,
			func(o *machine) bool { return o.instance == v.Instance })
	})
}
