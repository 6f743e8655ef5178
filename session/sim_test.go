package session_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/keeper"
)

// The simulation runs a whole cluster on one goroutine: the cores of clients and keepers, and one
// lockfsm.Machine per voter. Instead of raft it has a log that is correct by construction. A
// deposed leader continues to act as leader for some time. Each seed is one run.

type simConfig struct {
	voters, plain, callers, keys int
	ttl, grace                   time.Duration
	faults                       bool
	drift                        float64
	duplicates                   float64
	long                         float64 // the fraction of locks that are held for a long time
	far                          bool    // high latency
}

type simEvent struct {
	at  time.Duration
	seq int
	run func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(e any)   { *q = append(*q, e.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

type sim struct {
	t      *testing.T
	seed   uint64
	config simConfig
	rand   *rand.Rand
	now    time.Duration
	seq    int
	events simQueue
	nodes  []*simNode
	conns  map[[2]nodeid.ID]*simConn
	faults bool

	term    uint64
	leader  int
	log     []simEntry
	pending [][]byte // batches that were proposed in this term and are not committed

	hungTo    time.Duration // nothing is committed before this time
	starved   map[starving]time.Duration
	believers map[string][]*simCall
	tokens    map[string]lockfsm.Token
	stats     simStats
}

// simStats counts events, to check that a run covers what it is meant to test.
type simStats struct{ granted, failed, lost, cancelled, tries, held, changes, expired, releases int }

type simEntry struct {
	term uint64
	blob []byte
}

type simNode struct {
	s           *sim
	id          nodeid.ID
	rate        float64
	origin      time.Duration
	pausedUntil time.Duration
	deafUntil   time.Duration // until this time a deposed leader gets no log entries
	readsAt     time.Duration // when the node reads the inputs that arrived during a pause
	unread      []func()
	expiring    map[lockfsm.SessionID]bool // sessions that the keeper was expiring after its last turn
	frames      int                        // sent by the client
	client      *client.Core
	keeper      *keeper.Core
	toClient    []func(now clock.Time)
	toKeeper    []func(now clock.Time)
	kicked      bool
	deadline    clock.Time
	nonce       byte
	machine     *lockfsm.Machine
	applied     int
	role        keeper.Role
	bornAt      clock.Time
	live        int
	timer       int // the number of the last timer, so that older timers are ignored
}

type simConn struct {
	gen     int
	up      bool
	since   time.Duration    // when the connection was opened
	stuckTo time.Duration    // no message arrives before this time
	silence [2]time.Duration // for each direction, no message arrives before this time
	last    [2]time.Duration
	late    time.Duration // delayed messages arrive by this time
}

type simCall struct {
	node    *simNode
	req     client.Request
	key     string
	token   lockfsm.Token
	begun   time.Duration
	ended   bool
	left    bool
	settled bool
}

func newSim(t *testing.T, seed uint64, config simConfig) *sim {
	s := &sim{t: t, seed: seed, config: config, rand: rand.New(rand.NewPCG(seed, 7)),
		conns: make(map[[2]nodeid.ID]*simConn), leader: -1}
	s.starved = make(map[starving]time.Duration)
	s.believers, s.tokens = make(map[string][]*simCall), make(map[string]lockfsm.Token)
	s.now = time.Second
	targets := make([]nodeid.Endpoint, config.voters)
	for i := range targets {
		targets[i] = nodeid.Endpoint{ID: nodeidtest.ID(uint64(i + 1)), Addr: fmt.Sprint("v", i+1)}
	}
	for i := range config.voters + config.plain {
		n := &simNode{s: s, id: nodeidtest.ID(uint64(i + 1)), rate: 1 + config.drift*(2*s.rand.Float64()-1),
			origin: time.Duration(s.rand.Int64N(int64(time.Hour)))}
		if i < 2 { // both ends of the range are always covered
			n.rate = 1 + config.drift*float64(2*i-1)
		}
		n.expiring = make(map[lockfsm.SessionID]bool)
		n.client = client.NewCore(n.clock(), config.ttl)
		if i < config.voters {
			n.keeper = keeper.NewCore()
			n.keeper.Step = int(seed % 3) // one or two sessions per turn, or as many as in production
			m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1,
				SessionTTL: config.ttl, Grace: config.grace, Limits: lockfsm.DefaultLimits()})
			if err != nil {
				t.Fatal(err)
			}
			n.machine = m
		}
		s.nodes = append(s.nodes, n)
		n.client.GiveNonce(n.newNonce())
		n.client.Rebind(n.clock(), []byte(fmt.Sprint("record of ", n.id)), targets)
		n.kick()
	}
	return s
}

func (n *simNode) newNonce() lockfsm.Nonce {
	n.nonce++
	return lockfsm.Nonce{n.id[nodeid.Size-1], n.nonce, 1}
}

// clock is the node's boot-time clock. Each node's clock has its own rate, and it runs during
// pauses.
func (n *simNode) clock() clock.Time {
	return clock.Time(float64(n.s.now)*n.rate) + clock.Time(n.origin)
}

func (n *simNode) global(t clock.Time) time.Duration {
	return time.Duration(float64(t-clock.Time(n.origin)) / n.rate)
}

func (s *sim) after(d time.Duration, run func()) {
	s.seq++
	heap.Push(&s.events, simEvent{at: s.now + d, seq: s.seq, run: run})
}

func (s *sim) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.rand.Int64N(int64(b-a)+1))
}

func (s *sim) chance(p float64) bool { return s.rand.Float64() < p }

func (s *sim) runUntil(end time.Duration) {
	for s.events.Len() > 0 && s.events[0].at <= end {
		e := heap.Pop(&s.events).(simEvent)
		s.now = e.at
		e.run()
	}
	s.now = end
}

func (n *simNode) kick() {
	if !n.kicked {
		n.kicked = true
		n.s.after(n.s.between(0, 30*time.Microsecond), n.turn)
	}
}

func (n *simNode) turn() {
	if n.s.now < n.pausedUntil {
		n.s.after(n.pausedUntil-n.s.now, n.turn)
		return
	}
	n.kicked = false
	now := n.clock()
	n.clientTurn(now)
	if n.keeper != nil {
		n.keeperTurn(now)
	}
	next := n.client.Next()
	if n.keeper != nil {
		if k := n.keeper.Next(); next == 0 || k != 0 && k.Before(next) {
			next = k
		}
	}
	n.timer++
	if next == 0 {
		return
	}
	timer := n.timer
	n.s.after(max(n.global(next)-n.s.now, 0)+time.Microsecond, func() {
		if timer == n.timer { // otherwise a later turn has set another timer
			n.kick()
		}
	})
}

func (n *simNode) clientTurn(now clock.Time) {
	if n.client.WantsNonce() {
		n.client.GiveNonce(n.newNonce())
	}
	inbox := n.toClient
	n.toClient = nil
	for _, in := range inbox {
		in(now)
	}
	if n.client.WantsNonce() {
		n.client.GiveNonce(n.newNonce())
	}
	n.client.Tick(now)
	out := n.client.Flush(now)
	n.outcomes(out)
	if len(out.Renewals)+len(out.Commands) > 0 {
		renewals, commands := out.Renewals, append(out.Commands, n.later()...)
		sent := n.s.send(n, out.To.ID, func(to *simNode) {
			if to.keeper != nil {
				to.keeperInput(func(now clock.Time) { to.keeper.ReceiveFrom(now, keeper.Sender{ID: n.id}, renewals, commands) })
			}
		})
		if !sent {
			n.client.SendFailed(now)
		}
	}
	if out.More {
		n.kick()
	}
	if err := n.client.Check(); err != nil {
		n.s.fail("client %d: %v", n.id, err)
	}
	n.mustBelieveNoLonger()
}

func (n *simNode) clientInput(f func(clock.Time)) { n.input(&n.toClient, f) }

func (n *simNode) keeperInput(f func(clock.Time)) { n.input(&n.toKeeper, f) }

// input appends to an inbox. The inputs of a paused node are buffered until its first turn after
// the pause, or longer.
func (n *simNode) input(inbox *[]func(clock.Time), f func(clock.Time)) {
	if n.s.now < n.readsAt || len(n.unread) > 0 {
		if n.unread = append(n.unread, func() { *inbox = append(*inbox, f) }); len(n.unread) == 1 {
			n.s.after(n.readsAt-n.s.now, n.read)
		}
		return
	}
	*inbox = append(*inbox, f)
	n.kick()
}

func (n *simNode) read() {
	if n.s.now < n.readsAt {
		n.s.after(n.readsAt-n.s.now, n.read)
		return
	}
	for _, f := range n.unread {
		f()
	}
	n.unread = nil
	n.kick()
}

func (n *simNode) pause(d time.Duration) {
	n.pausedUntil = n.s.now + d
	if n.readsAt = 0; n.s.chance(0.5) {
		n.readsAt = n.pausedUntil + n.s.between(0, 20*time.Millisecond)
	}
}

func (n *simNode) keeperTurn(now clock.Time) {
	inbox := n.toKeeper
	n.toKeeper = nil
	for _, in := range inbox {
		in(now)
	}
	n.keeper.Tick(now)
	n.mustExpireNoneAlive()
	if term, blob := n.keeper.Proposal(int64(n.s.now / time.Millisecond)); blob != nil {
		n.keeper.Proposed(n.s.propose(n, term, blob))
	}
	if term, round, ok := n.keeper.Round(); ok {
		n.s.confirm(n, term, round)
	}
	for _, r := range n.keeper.Replies() {
		all := true
		for _, frame := range r.Frames {
			n.mustRefuseNone(frame)
			all = all && n.s.send(n, r.Peer, func(to *simNode) {
				to.clientInput(func(now clock.Time) { to.client.Receive(now, n.id, frame) })
			})
		}
		n.keeper.Replied(now, r.Peer, all)
	}
	if err := n.keeper.Check(); err != nil {
		n.s.fail("keeper %d: %v", n.id, err)
	}
}

func (s *sim) conn(a, b nodeid.ID) *simConn {
	if nodeid.Compare(a, b) > 0 {
		a, b = b, a
	}
	key := [2]nodeid.ID{a, b}
	c := s.conns[key]
	if c == nil {
		c = &simConn{}
		s.conns[key] = c
	}
	return c
}

// send sends a message on the stream, which keeps the order of messages. arrive is called when the
// message arrives, and never if the stream breaks first.
func (s *sim) send(from *simNode, to nodeid.ID, arrive func(to *simNode)) bool {
	if nodeidtest.Number(to) < 1 || nodeidtest.Number(to) > uint64(len(s.nodes)) {
		return false
	}
	target := s.nodes[nodeidtest.Number(to)-1]
	if from == target {
		arrive(target)
		return true
	}
	c := s.conn(from.id, to)
	if !c.up {
		if s.now < c.stuckTo {
			if s.chance(0.5) {
				s.after(s.between(0, 100*time.Millisecond), func() { s.down(from, to) })
				return true // queued while the stream is being opened, and lost
			}
			return false
		}
		c.up, c.since = true, s.now
		c.gen++
	}
	if s.faults && s.chance(0.002) {
		return false // the queue is full
	}
	way := wayTo(from.id, to)
	delay := s.between(50*time.Microsecond, 2*time.Millisecond)
	if s.config.far {
		delay = s.between(20*time.Millisecond, 120*time.Millisecond)
	}
	if s.faults && s.chance(0.01) {
		delay += s.between(0, 300*time.Millisecond)
	}
	at := max(s.now+delay, c.last[way], c.stuckTo, c.silence[way])
	c.last[way] = at
	if at-s.now > 500*time.Millisecond {
		c.late = at
	}
	gen := c.gen
	deliver := func() {
		if c.up && c.gen == gen {
			arrive(target)
		}
	}
	s.after(at-s.now, deliver)
	if s.faults && s.chance(s.config.duplicates) {
		s.after(at-s.now, deliver)
	}
	return true
}

func wayTo(from, to nodeid.ID) int {
	if nodeid.Compare(from, to) > 0 {
		return 1
	}
	return 0
}

// silence delays the messages from one node to another, in one direction.
func (s *sim) silence(from, to *simNode, d time.Duration) {
	s.conn(from.id, to.id).silence[wayTo(from.id, to.id)] = s.now + d
}

// breakConn ends a stream. Messages in flight are lost, and the two nodes detect the end at
// different times.
func (s *sim) breakConn(a, b *simNode, deadFor time.Duration) {
	c := s.conn(a.id, b.id)
	if deadFor > 0 {
		c.stuckTo = s.now + deadFor
	}
	if !c.up {
		return
	}
	c.up = false
	s.after(s.between(0, 50*time.Millisecond), func() { s.down(a, b.id) })
	s.after(s.between(0, 50*time.Millisecond), func() { s.down(b, a.id) })
}

func (s *sim) down(n *simNode, peer nodeid.ID) {
	n.clientInput(func(now clock.Time) { n.client.Down(now, peer) })
	if n.keeper != nil {
		n.keeperInput(func(now clock.Time) { n.keeper.Down(now, peer) })
	}
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("MORTISE_SEED=%d: at %v: %s", s.seed, s.now, fmt.Sprintf(format, args...))
}
