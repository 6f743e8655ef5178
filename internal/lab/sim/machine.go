package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
)

// machine is a place where a process can run.
type machine struct {
	w    *world
	id   int
	name string
	addr string
	zone string
	dns  string // the address to which its name resolves; after a move it changes later than addr

	rate   float64       // rate of its boot-time clock
	origin clock.Time    // time of its boot-time clock at the beginning of the run
	skew   time.Duration // error of its wall clock
	// nothing runs before this time, as in a suspended process
	pausedUntil time.Duration

	told int64 // MaxSessionBytes with which the process was started; zero means the default

	boots int  // how often its power has failed
	gone  bool // nothing runs on the machine until operators start it

	disk     *disk     // nil means memory mode
	instance nodeid.ID // ID of the last incarnation
	run      runDir
	power    power
}

// power is what a part of a process can bring about on its machine.
type power interface {
	crashAndReturn() // the power fails, and returns later
	restart()        // people start the process anew
}

// disk is the durable data of a machine, without data that is still being written.
type disk struct {
	state     *founding.State
	lives     uint64
	row       cluster.Row
	log       *raftlog.MemoryStore // log of the replica with the raft ID id
	group, id uint64
	latency   time.Duration // average time of a sync
}

// runDir is the run directory of a machine, in memory.
type runDir struct {
	boot int       // of its writer
	last nodeid.ID // of the last incarnation that has joined a group; zero if there is none
}

// former returns the instance of an earlier process that has certainly ended, or zero.
func (m *machine) former() nodeid.ID {
	if m.run.boot != m.boots {
		return nodeid.ID{}
	}
	return m.run.last
}

func newMachine(w *world, i int) *machine {
	m := &machine{
		w: w, id: i, name: fmt.Sprintf("n%d", i), addr: fmt.Sprintf("10.0.0.%d:1", i+1),
		rate: 1 + w.cfg.Drift*(2*w.rng.Float64()-1), origin: clock.Time(w.between(time.Minute, 100*time.Hour)),
	}
	if i < 2 { // two machines always have the slowest and the fastest clock
		m.rate = 1 + w.cfg.Drift*float64(2*i-1)
	}
	m.dns, m.zone, m.gone = m.addr, fmt.Sprintf("z%d", i%max(w.cfg.Zones, 1)), i >= w.cfg.Machines-w.cfg.Late
	m.skew = w.between(-w.cfg.slack()/2, w.cfg.slack()/2)
	if w.cfg.Durable {
		m.disk = &disk{latency: w.between(100*time.Microsecond, 8*time.Millisecond)}
	}
	return m
}

// clock returns the time of the machine's boot-time clock, which also runs while the machine is
// paused.
func (m *machine) clock() clock.Time {
	return m.origin + clock.Time(float64(m.w.now)*m.rate)
}

func (m *machine) global(t clock.Time) time.Duration {
	return time.Duration(float64(t-m.origin) / m.rate)
}

func (m *machine) wallUnixMS() int64 { return 1_790_000_000_000 + (m.w.now + m.skew).Milliseconds() }

// move gives the machine a new address. Its name resolves to the old address for a while.
func (m *machine) move() {
	m.address(fmt.Sprintf("10.%d.%d.%d:1", 1+m.w.rng.IntN(250), m.w.rng.IntN(250), m.id+1))
}

func (m *machine) address(addr string) {
	m.addr = addr
	m.w.note("%s will be at %s", m.name, addr)
	m.w.after(m.w.between(0, 3*time.Second), func() { m.dns = addr })
}

// openLog returns the log of a raft ID, and reports whether the log is new.
func (m *machine) openLog(group, id uint64) (store *raftlog.MemoryStore, fresh bool) {
	if m.disk == nil {
		return raftlog.NewMemoryStore(), true
	}
	d := m.disk
	if d.log == nil || d.group != group || d.id != id {
		d.log, d.group, d.id = raftlog.NewMemoryStore(), group, id
		return d.log, true
	}
	return d.log, false
}

// begin returns the number of the next start of a process, and which earlier ones have ended.
func (m *machine) begin() cluster.Beginning {
	d := m.disk
	if d == nil {
		return cluster.Beginning{Life: 1}
	}
	d.lives++
	site := fmt.Sprintf("boot %d of %s", m.boots, m.name)
	d.row = d.row.Next(site, d.lives)
	return cluster.Beginning{Life: nodeid.Start(d.lives, site), Since: nodeid.Start(d.row.Ended(d.lives), site)}
}

// needed reports whether the machine's disk has a removed replica whose vote may still be needed.
func (m *machine) needed() bool { return m.disk.state != nil && m.disk.state.Lingers != 0 }
