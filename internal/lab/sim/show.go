package sim

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Show is a run for people to watch: three machines, whose programs take turns on one lock, and
// write to a store that compares tokens. It has no faults of its own. People cause faults by Do. It
// is a function of its seed and of the times and arguments of Do: how often and how far Pass goes
// does not change it.
//
// A Show belongs to one goroutine. As for Run, crypto/rand must be seeded before.
type Show struct {
	w     *fleet
	told  int                          // how many events of the history have been told
	lines []Line                       // since the last call of Lines
	names map[lockfsm.SessionID]string // of the machines of all sessions
	leads string                       // the instance that led last
	store Store
	count counts
	zero  lockfsm.Token     // one below the first token of the run
	over  map[showCall]bool // calls that know that their lock is lost
	cut   [ShowMachines]bool
	slow  [ShowMachines]bool
}

// ShowMachines is the number of machines of a Show.
const ShowMachines = 3

const (
	showKey    = "key-0"
	showTTL    = 5 * time.Second
	showPause  = 8 * time.Second // longer than the TTL, so that a paused holder loses its lock
	writeEvery = 700 * time.Millisecond
	slowSync   = 300 * time.Millisecond // of a slow disk
	quickSync  = 2 * time.Millisecond
)

// Act is what people do to a machine.
type Act byte

// The acts. Their letters are in addresses that people share, so they never change.
const (
	Kill  Act = 'k' // the process ends like by kill -9
	Start Act = 's' // the process starts again, with the same directory
	Cut   Act = 'c' // nothing gets to the machine or from it, or everything does again
	Pause Act = 'p' // the process is stopped for 8 s
	Disk  Act = 'd' // the disk becomes slow, or quick again
)

// Line is a sentence about what has happened.
type Line struct {
	At      float64 `json:"at"` // seconds since the beginning
	Machine string  `json:"machine"`
	Kind    string  `json:"kind"` // act, leads, grant, unlock, lost, ended or refused
	Text    string  `json:"text"`
}

// Store is a resource that refuses writes with a lower token than it has seen.
type Store struct {
	By      string        `json:"by"` // the machine that wrote last
	Token   lockfsm.Token `json:"token,string"`
	Writes  int           `json:"writes"`
	Refused int           `json:"refused"`
}

type counts struct{ granted, lost, leaders int }

// showCall is a call in the history.
type showCall struct {
	stream int
	op     uint64
}

// View is the state of a Show.
type View struct {
	At       float64       `json:"at"` // seconds since the beginning
	Machines []MachineView `json:"machines"`
	Leader   string        `json:"leader"` // empty if no voter leads
	// The state of the lock, as the leader has it; without a leader there is none.
	Holder string        `json:"holder"`
	Token  lockfsm.Token `json:"token,string"`
	Queue  []string      `json:"queue"`
	Store  Store         `json:"store"`
	Broken string        `json:"broken"` // the first broken rule
}

// MachineView is one machine.
type MachineView struct {
	Name   string  `json:"name"`
	Up     bool    `json:"up"`
	Paused float64 `json:"paused"` // for how many more seconds
	Cut    bool    `json:"cut"`
	Slow   bool    `json:"slow"`
	Role   string  `json:"role"` // leader, voter, none or, if it does not run, empty
	Term   uint64  `json:"term"`
	Lease  float64 `json:"lease"` // remaining seconds, by its own clock
	// Call is what its program does: holds, waits or nothing. Token is that of the lock which the
	// program believes to hold.
	Call  string        `json:"call"`
	Token lockfsm.Token `json:"token,string"`
}

// NewShow returns the Show of a seed, in which no time has passed.
func NewShow(seed uint64) *Show {
	w := prepare(Config{Seed: seed, Heal: true, Machines: ShowMachines, Voters: ShowMachines, Zones: 1,
		Founders: []string{"n0", "n1", "n2"}, Durable: true, TTL: showTTL, Drift: 0.005,
		Latency: 500 * time.Microsecond, SnapshotBytes: 1 << 20, KeepEntries: 1000, Limits: lockfsm.DefaultLimits(),
		Callers: 1, Keys: 1, Think: 2 * time.Second, Hold: 4 * time.Second}, func(*proc) {})
	for _, m := range w.machines {
		m.disk.latency = quickSync
		w.after(w.between(0, time.Second), m.ensureUp)
	}
	return &Show{w: w, names: map[lockfsm.SessionID]string{}, over: map[showCall]bool{}, lines: []Line{}}
}

// Pass lets time pass until a moment, counted from the beginning, or until a rule is broken.
func (s *Show) Pass(until time.Duration) {
	s.w.pass(time.Hour+until, func() bool { s.look(); return false })
}

// look tells what the last step of the run has brought about.
func (s *Show) look() {
	w := s.w
	for ; s.told < len(w.watch.history); s.told++ {
		s.tell(&w.watch.history[s.told])
	}
	if l := w.leader(); l != nil && l.p.m.name != s.leads {
		s.leads = l.p.m.name
		s.count.leaders++
		s.say(s.leads, "leads", "%s leads, in term %d", s.leads, l.Role().Term)
	}
}

func (s *Show) tell(e *history.Event) {
	s.nameSessions()
	switch e.Kind {
	case history.Return:
		if e.Outcome != history.Granted {
			return
		}
		s.count.granted++
		s.say(e.Node, "grant", "%s holds the lock, with token %d", e.Node, s.token(e.Token))
		for p := range s.w.procs() {
			for _, c := range p.calls() {
				if p.stream == e.Stream && c.id == e.Op {
					s.writeLater(c)
				}
			}
		}
	case history.Unlock:
		if !s.over[showCall{e.Stream, e.Op}] {
			s.say(e.Node, "unlock", "%s unlocks", e.Node)
		}
	case history.Lost:
		s.count.lost++
		s.over[showCall{e.Stream, e.Op}] = true
		s.say(e.Node, "lost", "%s knows that it has lost the lock", e.Node)
	case history.End:
		s.ends(e)
	}
}

// ends tells why a hold has ended, unless its holder has unlocked. Each voter records the end.
func (s *Show) ends(e *history.Event) {
	whys := map[history.How]string{history.ByExpire: "its lease has run out", history.ByClose: "its process has ended"}
	why := whys[e.How]
	if l := s.w.leader(); why != "" && e.Token != 0 && l != nil && e.Node == l.p.m.name {
		who := s.names[e.Session]
		for _, noted := range l.glue.Machine().Ends() { // a claim of the next start has a reason there
			if noted.Token == e.Token && noted.How != nil && len(noted.How.Reason) > 0 {
				why = string(noted.How.Reason)
			}
		}
		s.say(who, "ended", "the leader takes the lock from %s: %s", who, why)
	}
}

// writeLater lets a holder write while it holds. The program does not look at its lease before it
// writes: a write that was due during a pause is sent right after the pause.
func (s *Show) writeLater(c *call) {
	c.p.later(writeEvery, func() {
		if c.stage != holds {
			return
		}
		o := &s.w.watch.calls
		accepted, err := o.register.Write(showKey, c.caller(), c.token, o.beliefs.Believes(showKey, c.caller()))
		s.w.must(err)
		if name := c.p.m.name; accepted {
			s.store.By, s.store.Token = name, s.token(c.token)
			s.store.Writes++
		} else {
			s.store.Refused++
			s.say(name, "refused", "the store refuses a write of %s with token %d, since %s has written with token %d",
				name, s.token(c.token), s.store.By, s.store.Token)
		}
		s.writeLater(c)
	})
}

// token returns a token as a Show tells it: counted from the first one of the run on, so that
// people can read it. Zero stays zero.
func (s *Show) token(t lockfsm.Token) lockfsm.Token {
	if t == 0 {
		return 0
	}
	if s.zero == 0 {
		s.zero = t - 1
	}
	return t - s.zero
}

func (s *Show) say(machine, kind, format string, args ...any) {
	s.lines = append(s.lines, Line{s.w.page().Seconds(), machine, kind, fmt.Sprintf(format, args...)})
}

// Lines returns what has happened since the last call. The result is not nil.
func (s *Show) Lines() []Line {
	lines := s.lines
	s.lines = []Line{}
	return lines
}

// Do does an act to a machine now. An act that changes nothing, like the end of a process that does
// not run, is none. It reports whether there are such an act and such a machine.
func (s *Show) Do(a Act, machine int) bool {
	if machine < 0 || machine >= len(s.w.machines) {
		return false
	}
	w, m := s.w, s.w.machines[machine]
	switch a {
	case Kill:
		if m.proc != nil {
			s.say(m.name, "act", "%s is killed", m.name)
			m.crash(false)
		}
	case Start:
		if m.proc == nil {
			s.say(m.name, "act", "%s starts again", m.name)
			m.ensureUp()
		}
	case Cut:
		s.cut[machine] = !s.cut[machine]
		s.relink()
		s.say(m.name, "act", "%s is %s", m.name, map[bool]string{true: "cut off", false: "linked again"}[s.cut[machine]])
	case Pause:
		if w.now >= m.pausedUntil {
			s.say(m.name, "act", "%s is stopped for %v", m.name, showPause)
			m.pausedUntil = w.now + showPause
		}
	case Disk:
		s.slow[machine] = !s.slow[machine]
		m.disk.latency = map[bool]time.Duration{true: slowSync, false: quickSync}[s.slow[machine]]
		s.say(m.name, "act", "the disk of %s is %s", m.name,
			map[bool]string{true: "slow", false: "quick again"}[s.slow[machine]])
	default:
		return false
	}
	return true
}

// relink cuts all links of the machines that are cut off, and joins the others.
func (s *Show) relink() {
	for i, a := range s.w.machines {
		for j, b := range s.w.machines {
			switch {
			case i == j:
			case s.cut[i] || s.cut[j]:
				s.w.net.sever(a.machine, b.machine)
			default:
				s.w.net.join(a.machine, b.machine)
			}
		}
	}
}

// View returns the present state. It does not change the run.
func (s *Show) View() View {
	w := s.w
	s.nameSessions()
	v := View{At: w.page().Seconds(), Store: s.store, Broken: w.fault, Queue: []string{}}
	for i, m := range w.machines {
		one := MachineView{Name: m.name, Up: m.proc != nil, Cut: s.cut[i], Slow: s.slow[i],
			Paused: max(m.pausedUntil-w.now, 0).Seconds()}
		if p := m.proc; p != nil {
			one.Role, one.Term = roleOf(p)
			one.Lease = max(p.sessions.First.leaseLeft(), 0).Seconds()
			one.Call, one.Token = callOf(p)
			one.Token = s.token(one.Token)
		}
		v.Machines = append(v.Machines, one)
	}
	if l := w.leader(); l != nil {
		v.Leader = l.p.m.name
		if info, ok := l.glue.Machine().Inspect(showKey, ShowMachines); ok {
			for _, q := range info.Queue {
				if q.Token != 0 {
					v.Holder, v.Token = s.names[q.Session], s.token(q.Token)
				} else {
					v.Queue = append(v.Queue, s.names[q.Session])
				}
			}
		}
	}
	return v
}

// nameSessions notes which machines the present sessions belong to.
func (s *Show) nameSessions() {
	for p := range s.w.procs() {
		s.names[p.sessions.First.status().Session] = p.m.name
	}
}

func roleOf(p *proc) (role string, term uint64) {
	if p.replica == nil {
		return "none", 0
	}
	if r := p.replica.Role(); r.Leading {
		return "leader", r.Term
	} else {
		return "voter", r.Term
	}
}

func callOf(p *proc) (does string, token lockfsm.Token) {
	for _, c := range p.calls() {
		switch {
		case c.stage == holds && c.believes():
			return "holds", c.token
		case c.stage == waits:
			does = "waits"
		}
	}
	return does, 0
}

// End ends all faults, lets the programs finish, and returns what the judges say in one line. It is
// called once, and ends the Show.
func (s *Show) End() string {
	at, refused := s.w.page(), s.store.Refused
	for _, m := range s.w.machines {
		m.disk.latency = quickSync
	}
	r := s.w.finish()
	verdict := "no rule was broken"
	if r.Fault != "" {
		verdict = "a rule was broken: " + r.Fault
	}
	c := s.count
	return fmt.Sprintf("seed %d, %v: leaders %d, locks granted %d, lost %d, writes refused %d; %s; run %016x",
		s.w.cfg.Seed, at.Round(time.Millisecond), c.leaders, c.granted, c.lost, refused, verdict, r.Hash)
}
