package founding

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// world is a fleet of cores on one goroutine, with a network that delays, loses and cuts, and
// machines that crash and move. Simulated logs elect leaders among reachable voters and commit
// Born. A seed determines the whole run.
type world struct {
	rng    *rand.Rand
	now    time.Duration
	seq    int
	queue  events
	slots  []*slot
	cut    map[[2]int]bool // by direction; tests must not depend on the map order
	loss   float64
	delay  time.Duration // largest one-way delay
	dials  time.Duration // longest time from healing a link until raft is connected
	joined map[[2]int]time.Duration
	groups map[uint64]*group
	order  []*group // in the order of founding
	faults []string // broken invariants
	log    []string // events, printed for a failing seed
	trace  bool

	extraJoin []string
	hushed    bool            // founders get no addresses from gossip
	named     naming          // instances that Join names
	asked     []time.Duration // when each question was asked
	silent    map[string]bool
	wallBase  int64
	plant     string             // deliberate bug in the simulated logs
	rafts     map[uint64]uint64  // random mark of the log that was started under each raft ID
	emptied   map[nodeid.ID]bool // instances whose directory was lost
	brittle   float64            // chance of a crash around each save
	refusals  map[answerKey]bool
	over      map[uint64]bool    // raft IDs whose replicas were stopped for good
	givenUp   map[uint64]bool    // groups that an operator has given up on some instance
	lives     map[nodeid.ID]bool // IDs of all instances so far
	calm      bool               // configurations no longer change
}

// slot is the place of one instance in the fleet: a name, an address that may change, and the
// running process, if any.
type slot struct {
	w        *world
	id       int
	name     string
	addr     string
	dns      string // address to which its name resolves; changes later than addr
	settings Settings
	skew     time.Duration // offset of its wall clock
	life     int           // number of starts; callbacks of an earlier start do nothing
	core     *Core         // nil if the process is down
	ticking  int
	raft     uint64
	charter  *Charter
	joined   uint64
	allBound uint64
	leader   bool
	near     bool   // Join resolves only to slots in reach, like a headless service
	disk     *disk  // nil if it runs in memory
	retired  bool   // its directory cannot be written, so it does not vote
	saved    uint64 // revision that was stored last
	book     Book
	refused  string
	applied  uint64 // last configuration that its replica has applied
	named    uint64 // the last of its raft IDs that was in a configuration known to its core
	at       uint64 // newest configuration known in this incarnation
	floor    int64  // highest token that it has received

	leaderless time.Duration // when the member lost its leader, if it knows none
}

type group struct {
	charter  Charter
	accepted map[nodeid.ID]bool
	term     uint64
	configs  []config // committed configurations; the first is the charter's
	token    int64    // highest granted token, in Unix milliseconds
	born     bool
	bornAt   time.Duration
	leader   nodeid.ID     // ID of the leading instance
	led      time.Duration // when the group last had no leader
	applied  map[nodeid.ID]bool
}

type timed struct {
	at  time.Duration
	seq int
	fn  func()
}

type events []timed

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(timed)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func newWorld(seed uint64, settings ...Settings) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 7)), cut: map[[2]int]bool{}, joined: map[[2]int]time.Duration{},
		delay: 5 * time.Millisecond, groups: map[uint64]*group{},
		silent: map[string]bool{}, wallBase: 1_700_000_000_000, rafts: map[uint64]uint64{},
		emptied:  map[nodeid.ID]bool{},
		refusals: map[answerKey]bool{}, over: map[uint64]bool{}, givenUp: map[uint64]bool{},
		lives: map[nodeid.ID]bool{}, calm: true,
	}
	for i, s := range settings {
		addr := fmt.Sprintf("10.0.0.%d:1", i)
		w.slots = append(w.slots, &slot{w: w, id: i, name: fmt.Sprintf("n%d", i), addr: addr, dns: addr, settings: s})
	}
	w.after(20*time.Millisecond, w.raft)
	return w
}

func (w *world) after(d time.Duration, fn func()) {
	w.seq++
	heap.Push(&w.queue, timed{at: w.now + d, seq: w.seq, fn: fn})
}

func (w *world) run(limit time.Duration, until func() bool) bool {
	end := w.now + limit
	for len(w.queue) > 0 && w.queue[0].at <= end && len(w.faults) == 0 {
		e := heap.Pop(&w.queue).(timed)
		w.now = e.at
		e.fn()
		if until != nil && until() {
			return true
		}
	}
	w.now = max(w.now, min(end, w.now+limit))
	if until == nil || len(w.faults) > 0 {
		w.now = end
	}
	return false
}

func (w *world) note(format string, args ...any) {
	if w.trace {
		w.log = append(w.log, fmt.Sprintf("%8.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *world) random() Random {
	r := Random{Instance: nodeidtest.ID(w.id()), Group: w.id(), Spread: w.rng.Uint64()}
	for i := range r.Raft {
		r.Raft[i] = w.id()
	}
	return r
}

func (w *world) id() uint64 { return w.rng.Uint64()>>16 | 1 }

func (s *slot) wall() int64 { return s.w.wallBase + (s.w.now + s.skew).Milliseconds() }

func (s *slot) start() {
	s.life++
	s.forget()
	if s.disk == nil {
		s.floor = 0
	}
	cfg := Config{Instance: nodeidtest.ID(s.w.id()), Name: s.name, Addr: s.addr, Settings: s.settings, Rules: 1}
	s.load(&cfg)
	s.core = New(cfg)
	s.w.lives[s.core.Instance()] = true
	if !s.persist(nil) {
		return
	}
	s.w.note("%s starts as %x at %s", s.name, s.core.Instance(), s.addr)
	s.resolve()
	s.tick()
}

func (s *slot) crash() {
	s.w.note("%s crashes", s.name)
	s.life++
	s.core = nil
	s.forget()
}

func (s *slot) forget() {
	// a replica with a directory continues later
	if s.raft != 0 && (s.disk == nil || s.core != nil && !s.retired) {
		s.w.over[s.raft] = true
	}
	s.raft, s.charter, s.joined, s.allBound, s.leader = 0, nil, 0, 0, false
	s.book, s.applied, s.at = Book{}, 0, 0
}

func (s *slot) resolve() {
	life := s.life
	var join []Entry
	var gossip []string
	for _, other := range s.w.slots {
		if s.near && !s.w.linked(s, other) {
			continue
		}
		if s.w.joins(other) {
			join = append(join, Entry{Name: other.name + ":1", Addrs: []string{other.dns}, Resolved: s.w.now})
		}
		if !s.settings.founds(s.name) || !other.settings.founds(other.name) {
			continue // only founders use gossip
		}
		if s.w.hushed && len(s.settings.Founders) > 0 {
			continue
		}
		if other.core != nil && !s.w.cut[[2]int{s.id, other.id}] && !s.w.cut[[2]int{other.id, s.id}] {
			gossip = append(gossip, other.addr)
			if other.core.Group() == s.core.Group() && other.core.At() > s.core.At() {
				s.core.Inquire(s.w.now, other.addr)
			}
		}
	}
	for _, addr := range s.w.extraJoin {
		join = append(join, Entry{Name: addr, Addrs: []string{addr}, Resolved: s.w.now})
	}
	if s.settings.Solo {
		join, gossip = nil, nil
	}
	s.core.Places(join, gossip)
	s.w.after(500*time.Millisecond+time.Duration(s.w.rng.Int64N(int64(time.Second))), func() {
		if s.life == life {
			s.resolve()
		}
	})
}

// naming selects which instances are in Join if Founders is set. With Replicas, Join always names
// all instances.
type naming int

const (
	nameFounders naming = iota
	nameAll
	nameOthers
	nameSeed
)

func (w *world) joins(s *slot) bool {
	founds := s.settings.founds(s.name)
	others := slices.ContainsFunc(w.slots, func(o *slot) bool { return !o.settings.founds(o.name) })
	switch {
	case len(s.settings.Founders) == 0 || w.named == nameAll:
		return true
	case w.named == nameOthers && others:
		return !founds
	case w.named == nameSeed:
		return s.id == len(w.slots)-1
	}
	return founds
}

func (s *slot) tick() {
	s.ticking++
	turn, life := s.ticking, s.life
	out := s.core.Tick(s.w.now, s.wall(), s.w.random())
	if !s.persist(&out) {
		return
	}
	s.mustHaveStored("decides")
	s.mustNotForget(out.Events)
	for _, e := range out.Events {
		s.carryOut(e)
	}
	for _, q := range out.Questions {
		s.put(q)
	}
	s.w.after(out.Next-s.w.now, func() {
		if s.life == life && s.ticking == turn {
			s.tick()
		}
	})
}

func (s *slot) carryOut(e Event) {
	w := s.w
	switch e.Kind {
	case BoundTo:
		w.note("%s %x bound to %x raft %x list %d", s.name, s.core.Instance(), e.Group, e.Raft, len(e.Charter.List))
		if s.charter != nil && s.charter.Group != e.Group {
			w.fault("%s is bound to %x and to %x in one life", s.name, s.charter.Group, e.Group)
		}
		s.charter, s.raft = &e.Charter, e.Raft
		s.configure(e.Group, 1, e.Charter.Voters)
		s.open(e.Raft)
		g := w.groupOf(e.Charter)
		if !g.accepted[s.core.Instance()] || s.disk == nil {
			s.mustAccept(&e.Charter)
		}
		if g.accepted[s.core.Instance()] && s.disk == nil {
			w.fault("%s accepted charter %x twice", s.name, e.Group)
		}
		g.accepted[s.core.Instance()] = true
		if e.Charter.Settings.differs(s.settings.normal()) != "" && !s.settings.Solo {
			w.fault("%s accepted other settings", s.name)
		}
	case AllBound:
		s.allBound = e.Group
	case Joined:
		w.note("%s %x member of %x (%s)", s.name, s.core.Instance(), e.Group, e.Text)
		if g := w.groups[e.Group]; g == nil || !g.born {
			w.fault("%s is a member of group %x, which is not born", s.name, e.Group)
		}
		s.joined, s.leaderless = e.Group, w.now
		s.configure(e.Group, e.At, e.Voters)
	case Heard:
		s.hear(e)
	case Prepared:
		w.note("%s %x prepared as %x", s.name, s.core.Instance(), e.Raft)
		if s.raft != 0 && s.raft != e.Raft {
			w.fault("%s runs %x and is to start %x", s.name, s.raft, e.Raft)
		}
		s.raft, s.applied = e.Raft, 0
		s.open(e.Raft)
	case Removed:
		s.removed(e)
	case Barred:
		w.note("%s refuses: %s", s.name, e.Text)
		s.refused, s.raft, s.charter = e.Text, 0, nil
	case Restarted:
		w.note("%s restarts in place as %x: %s", s.name, e.Instance, e.Text)
		s.mustGiveUp(e.Text)
		if w.lives[e.Instance] {
			w.fault("%s begins a new life under the ID %x, which was used before", s.name, e.Instance)
		}
		w.lives[e.Instance] = true
		s.drop()
		s.forget()
	}
}

func (w *world) groupOf(ch Charter) *group {
	g := w.groups[ch.Group]
	if g == nil {
		g = &group{charter: ch, accepted: map[nodeid.ID]bool{}, applied: map[nodeid.ID]bool{},
			configs: []config{{1, ch.Voters}}, token: ch.FoundedUnixMS}
		w.groups[ch.Group] = g
	}
	return g
}

func (w *world) runs(instance nodeid.ID, group uint64) *slot {
	for _, s := range w.slots {
		if s.core != nil && s.core.Instance() == instance && s.core.Group() == group && s.raft != 0 {
			return s
		}
	}
	return nil
}

func (w *world) replica(raft uint64) *slot {
	for _, s := range w.slots {
		if s.core != nil && s.raft == raft {
			return s
		}
	}
	return nil
}

// alive counts the voters of the group whose incarnation has not ended.
func (w *world) alive(g *group) int {
	n := 0
	for _, v := range g.voters() {
		if w.replica(v.Raft) != nil || w.kept(v.Raft, g.charter.Group) {
			n++
		}
	}
	return n
}

func (w *world) describe() string {
	var b strings.Builder
	for _, s := range w.slots {
		if s.core == nil {
			fmt.Fprintf(&b, "%s down\n", s.name)
			continue
		}
		fmt.Fprintf(&b, "%s %x %v group %x leader %v: %s\n", s.name, s.core.Instance(), s.core.Phase(),
			s.core.Group(), s.leader, s.core.Waiting())
	}
	return b.String()
}
