package client

import (
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

var errNoLink = errors.New("no link")

// world is a few clients and one or two keepers in a synctest bubble. They are connected by
// function calls, and the log commits immediately.
type world struct {
	t       *testing.T
	clock   clock.Clock
	clients map[nodeid.ID]*Client
	keepers map[nodeid.ID]*keeper.Keeper

	mu      sync.Mutex // guards the following fields
	machine *lockfsm.Machine
	index   uint64
	term    uint64
	leader  nodeid.ID
	cut     map[nodeid.ID]bool // instances whose frames are dropped in both directions
	onReply func()             // called before a reply is delivered
	onSend  func()             // called without the mutex before a client's frame is delivered

	refuse atomic.Pointer[func(what string) bool] // whether a call of "send", "propose" or "reply" is refused
}

func (w *world) refuses(what string) bool {
	f := w.refuse.Load()
	return f != nil && (*f)(what)
}

const worldTTL = 6 * time.Second

const worldFounded = 1_700_000_000_000 // in Unix milliseconds

func newWorld(t *testing.T, clients int, keepers ...nodeid.ID) *world {
	return newWorldOf(t, lockfsm.RulesVersion, clients, keepers...)
}

// newWorldOf is like newWorld, with a version of the rules.
func newWorldOf(t *testing.T, rules uint32, clients int, keepers ...nodeid.ID) *world {
	m, err := lockfsm.New(lockfsm.Charter{
		Group: 1, FoundedUnixMS: worldFounded, Rules: rules, SessionTTL: worldTTL,
		Limits: lockfsm.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: clock.Monotonic(), machine: m, clients: make(map[nodeid.ID]*Client),
		keepers: make(map[nodeid.ID]*keeper.Keeper), cut: make(map[nodeid.ID]bool)}
	began := w.clock.Now()
	var targets []nodeid.Endpoint
	for _, k := range keepers {
		targets = append(targets, nodeid.Endpoint{ID: k})
		w.keepers[k] = keeper.New(keeper.Config{
			Clock: w.clock,
			Outlets: keeper.Outlets{
				Propose:    func(term uint64, blob []byte) bool { return w.propose(k, term, blob) },
				Confirm:    func(term, round uint64) { w.confirm(k, term, round) },
				Reply:      func(to nodeid.ID, b []byte) error { return w.reply(k, to, b) },
				WallUnixMS: func() int64 { return worldFounded + 1 + w.clock.Now().Sub(began).Milliseconds() },
			},
		})
	}
	for i := range clients {
		w.bind(nodeidtest.ID(uint64(100+i)), w.clock, targets)
	}
	return w
}

func (w *world) bind(id nodeid.ID, by clock.Clock, targets []nodeid.Endpoint) {
	c := w.newClient(id, by)
	c.Rebind([]byte{id[nodeid.Size-1]}, targets)
}

func (w *world) newClient(id nodeid.ID, by clock.Clock) *Client {
	w.mu.Lock()
	before := w.clients[id]
	w.mu.Unlock()
	if before != nil {
		before.Close()
	}
	c := New(Config{
		Clock: by, TTL: worldTTL, Stays: 100, StayIdle: time.Second, Random: func(b []byte) { rand.Read(b) },
		Send: func(to nodeid.Endpoint, renewals, commands []byte) error {
			return w.send(id, to.ID, renewals, commands)
		},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[id] = c
	return c
}

func (w *world) leap() *jumpClock {
	j := &jumpClock{Clock: w.clock}
	w.bind(nodeidtest.ID(100), j, []nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
	return j
}

// holdUp stops client 100's goroutine in the middle of a turn until goOn is called.
func (w *world) holdUp() (goOn func()) {
	stopped, ends := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() {
		close(stopped)
		<-ends
	})
	w.mu.Lock()
	w.onSend = stop
	w.mu.Unlock()
	w.clients[nodeidtest.ID(100)].Leaving()
	<-stopped
	return sync.OnceFunc(func() { close(ends) })
}

func (w *world) send(from, to nodeid.ID, renewals, commands []byte) error {
	w.mu.Lock()
	onSend := w.onSend
	w.mu.Unlock()
	if onSend != nil {
		onSend()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keepers[to]
	if k == nil || w.cut[from] || w.cut[to] || w.refuses("send") {
		return errNoLink
	}
	k.ReceiveFrom(keeper.Sender{ID: from}, renewals, commands)
	return nil
}

func (w *world) reply(from, to nodeid.ID, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[to]
	if c == nil || w.cut[from] || w.cut[to] || w.refuses("reply") {
		return errNoLink
	}
	if w.onReply != nil {
		w.onReply()
	}
	c.Receive(from, b)
	return nil
}

func (w *world) propose(k nodeid.ID, term uint64, blob []byte) bool {
	if w.refuses("propose") {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if term == w.term && k == w.leader {
		w.index++
		w.machine.ApplyEntry(w.index, term, blob, func(r *lockfsm.Result) { w.keepers[k].Applied(r) })
	}
	return true
}

func (w *world) confirm(k nodeid.ID, term, round uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term == w.term && k == w.leader {
		w.keepers[k].Confirmed(term, round)
	}
}

// elect makes a keeper the leader. Zero means that no keeper leads.
func (w *world) elect(leader nodeid.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term++
	w.leader = leader
	for id, k := range w.keepers {
		k.Role(keeper.Role{Term: w.term, Leading: id == leader, Leader: nodeid.Endpoint{ID: leader}})
	}
	if leader.IsZero() {
		return
	}
	born := w.machine.Born()
	w.keepers[leader].Leads(keeper.Leadership{Term: w.term, Sessions: w.machine.Sessions(), Born: born,
		GraceOver: w.machine.GraceOver(), BornAt: w.clock.Now(), Rules: w.machine.Charter().Rules})
	w.keepers[leader].AllBound()
}

func (w *world) close() {
	for _, c := range w.clients {
		c.Close()
	}
	for _, k := range w.keepers {
		k.Close()
	}
}

func (w *world) isolate(p nodeid.ID, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[p] = cut
}

func (w *world) counts() lockfsm.Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Counts()
}

func (w *world) empty() {
	w.t.Helper()
	synctest.Wait()
	if c := w.counts(); c.Entries+c.Waiters+c.Locks != 0 {
		w.t.Errorf("the group is left with %+v", c)
	}
	for id, c := range w.clients {
		if s := c.Status(); s.Requests+s.Waiting+s.Held != 0 {
			w.t.Errorf("client %d is left with %+v", id, s)
		}
	}
}

func (w *world) lock(c nodeid.ID, key string) *Hold {
	w.t.Helper()
	h, err := w.clients[c].Acquire(w.t.Context(), key, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}
