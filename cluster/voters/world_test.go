package voters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// world simulates processes and their group. It has no raft: a change is committed as soon as the
// needed majorities are up. The leader learns late and incompletely which replicas are up or
// silent, or have ended. The seed determines the run.
type world struct {
	rng       *rand.Rand
	now       time.Duration
	settings  Settings
	procs     []*proc
	replicas  map[nodeid.ReplicaID]*replica
	config    Config
	flight    *flight
	leader    nodeid.ReplicaID
	since     time.Duration // when the leader began to lead
	gone      time.Duration // when the last leader stopped leading
	term      int           // number of leaders so far
	questions []question
	lastID    nodeid.ReplicaID
	lastInst  uint64
	used      map[nodeid.ReplicaID]bool // was ever in a configuration
	lookAt    time.Duration
	applied   time.Duration // when the last change was applied
	struck    time.Duration // when the last event happened
	seen      string
	changes   int
	fault     string
	trace     []string
	quiet     bool // the leader does not change and no replica is lost
	careful   bool // no majority is lost, and leavers wait as long as necessary
	uncounted bool // losses are not counted
	mute      bool // a cut process never refuses connections
	fickle    bool // each change of the voters is followed by a change of the leader
}

// proc is one process. A restart in memory mode makes a new one.
type proc struct {
	who          nodeid.ID
	name, zone   string
	alive        bool
	cut          bool
	leaving      time.Duration // zero means that the process does not leave
	diedAt       time.Duration
	sessionUntil time.Duration
	announced    bool // the process has ended, and its address refuses connections
	reconciler   Reconciler
	asked        question // the last Prepare that the process answered
}

// question is a question of a leader that is under way: a Prepare or a probe.
type question struct {
	term     int
	by       *proc
	id       nodeid.ReplicaID
	instance nodeid.ID
	probe    bool
}

type replica struct {
	of       *proc
	runs     bool // the replica's data exist
	caughtAt time.Duration
	heard    time.Duration
}

type flight struct {
	step  Step
	joint bool
}

const tick = 100 * time.Millisecond

func newWorld(seed uint64, n int, settings Settings, zones []string) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 11)), now: time.Hour, settings: settings,
		replicas: map[nodeid.ReplicaID]*replica{},
		used:     map[nodeid.ReplicaID]bool{}, lastID: 1}
	for i := range n {
		w.start(fmt.Sprint("n", i), zones[i%len(zones)])
	}
	for _, p := range w.procs { // the first voters: as many as may vote, but an odd number
		if (len(settings.Founders) == 0 || slices.Contains(settings.Founders, p.name)) &&
			len(w.config.Voters) < odd(min(settings.Voters, n)) {
			id := w.newReplica(p)
			w.config.Voters = append(w.config.Voters, id)
			w.used[id] = true
		}
	}
	w.config.Voters = w.config.Voters[:odd(len(w.config.Voters))]
	w.elect()
	return w
}

func (w *world) start(name, zone string) *proc {
	w.lastInst++
	p := &proc{who: nodeidtest.ID(w.lastInst), name: name, zone: zone, alive: true}
	for _, old := range w.procs {
		if old.name == name {
			old.announced = true
		}
	}
	w.procs = append(w.procs, p)
	return p
}

func (w *world) newReplica(p *proc) nodeid.ReplicaID {
	w.lastID++
	w.replicas[w.lastID] = &replica{of: p, runs: true, caughtAt: w.now, heard: w.now}
	return w.lastID
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) up(id nodeid.ReplicaID) bool {
	r := w.replicas[id]
	return r.runs && r.of.alive && !r.of.cut
}

func (w *world) majority(ids []nodeid.ReplicaID) bool {
	n := 0
	for _, id := range ids {
		if w.up(id) {
			n++
		}
	}
	return len(ids) == 0 || n > len(ids)/2
}

// crash kills a process. In memory mode its data are lost.
func (w *world) crash(p *proc) {
	p.alive, p.diedAt = false, w.now
	for _, r := range w.replicas {
		if r.of == p && !w.settings.Durable {
			r.runs = false
		}
	}
}

// elect makes a replica the leader if possible: it is in the configuration and has the log, and the
// majorities are up.
func (w *world) elect() {
	w.leader = 0
	if !w.majority(w.config.Voters) || !w.majority(w.config.Outgoing) {
		return
	}
	able := slices.DeleteFunc(slices.Clone(w.config.Voters), func(id nodeid.ReplicaID) bool {
		return !w.up(id) ||
			w.replicas[id].caughtAt > w.now
	})
	if len(able) == 0 {
		return
	}
	if w.flight != nil && !w.flight.joint && w.chance(0.5) {
		w.flight = nil // the change was not in the new leader's log
	}
	w.lead(able[w.rng.IntN(len(able))])
}

func (w *world) lead(id nodeid.ReplicaID) {
	w.leader, w.since, w.seen = id, w.now, ""
	w.term++
	w.reconciler().Begin()
}

func (w *world) reconciler() *Reconciler { return &w.replicas[w.leader].of.reconciler }

func (w *world) facts() Facts {
	f := Facts{Self: w.leader, Settings: w.settings, Config: w.config, Pending: w.flight != nil}
	for _, id := range slices.Concat(w.config.Voters, w.config.Learners) {
		r := w.replicas[id]
		silent := w.now - max(r.heard, w.since)
		f.Replicas = append(f.Replicas, Replica{ID: id, Instance: r.of.who, Addr: r.of.name, Linked: r.of.alive &&
			!r.of.cut, Settled: w.now > w.applied+300*time.Millisecond,
			CaughtUp: r.caughtAt <= w.now, Full: r.caughtAt <= w.now && r.heard == w.now,
			Active: silent < 500*time.Millisecond && (r.heard > w.since || id == w.leader), SilentFor: silent})
	}
	for _, p := range w.procs {
		if p.sessionUntil > w.now {
			r := Registered{Instance: p.who, Name: p.name, Addr: p.name, Zone: p.zone, Leaving: p.leaving > 0,
				Reachable: p.alive && !p.cut, Session: true, Order: nodeidtest.Number(p.who)}
			if w.uncounted {
				r.Name = ""
			}
			f.Registered = append(f.Registered, r)
		}
	}
	return f
}

func (w *world) view() View {
	if w.leader == 0 {
		return View{}
	}
	return w.reconciler().view
}
