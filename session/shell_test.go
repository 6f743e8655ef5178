package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

var errNoLink = errors.New("no link")

// world is a few clients and one or two keepers in a bubble, over a network of plain calls and a log that commits at once.
type world struct {
	t       *testing.T
	clock   clock.Clock
	clients map[Peer]*Client
	keepers map[Peer]*Keeper

	mu      sync.Mutex // guards what follows
	machine *lockfsm.Machine
	index   uint64
	term    uint64
	leader  Peer
	cut     map[Peer]bool // nothing gets through to or from it
	onReply func()        // runs before a reply is delivered
}

const worldTTL = 6 * time.Second

func newWorld(t *testing.T, clients int, keepers ...Peer) *world {
	m, err := lockfsm.New(lockfsm.Charter{
		Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1, SessionTTL: worldTTL, Limits: lockfsm.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: clock.Monotonic(), machine: m, clients: make(map[Peer]*Client), keepers: make(map[Peer]*Keeper), cut: make(map[Peer]bool)}
	var targets []Target
	for _, k := range keepers {
		targets = append(targets, Target{Peer: k})
		w.keepers[k] = NewKeeper(KeeperConfig{
			Clock: w.clock, Propose: func(term uint64, blob []byte) bool { return w.propose(k, term, blob) },
			Confirm: func(term, round uint64) { w.confirm(k, term, round) }, Reply: func(to Peer, b []byte) error { return w.reply(k, to, b) },
			WallUnixMS: func() int64 { return 1 },
		})
	}
	for i := range clients {
		id := Peer(100 + i)
		w.clients[id] = w.newClient(id)
		w.clients[id].Rebind([]byte{byte(i)}, targets)
	}
	return w
}

func (w *world) newClient(id Peer) *Client {
	return NewClient(ClientConfig{
		Clock: w.clock, TTL: worldTTL, Random: func(b []byte) { rand.Read(b) },
		Send: func(to Target, renewals, commands []byte) error { return w.send(id, to.Peer, renewals, commands) },
	})
}

func (w *world) send(from, to Peer, renewals, commands []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keepers[to]
	if k == nil || w.cut[from] || w.cut[to] {
		return errNoLink
	}
	k.Receive(from, renewals, commands)
	return nil
}

func (w *world) reply(from, to Peer, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[to]
	if c == nil || w.cut[from] || w.cut[to] {
		return errNoLink
	}
	if w.onReply != nil {
		w.onReply()
	}
	c.Receive(from, b)
	return nil
}

func (w *world) propose(k Peer, term uint64, blob []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term == w.term && k == w.leader {
		w.index++
		w.machine.ApplyEntry(w.index, term, blob, func(r lockfsm.Result) { w.keepers[k].Applied(r) })
	}
	return true
}

func (w *world) confirm(k Peer, term, round uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if term == w.term && k == w.leader {
		w.keepers[k].Confirmed(term, round)
	}
}

// elect makes a keeper the leader; 0 for none.
func (w *world) elect(leader Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term++
	w.leader = leader
	for id, k := range w.keepers {
		k.Role(Role{Term: w.term, Leading: id == leader, Leader: Target{Peer: leader}})
	}
	if leader == 0 {
		return
	}
	born := w.machine.Born()
	w.keepers[leader].Leads(Leadership{Term: w.term, Sessions: w.machine.Sessions(), Born: born, GraceOver: w.machine.GraceOver(), BornAt: w.clock.Now()})
	if !born {
		w.keepers[leader].ProposeBorn(w.term)
	}
}

func (w *world) close() {
	for _, c := range w.clients {
		c.Close()
	}
	for _, k := range w.keepers {
		k.Close()
	}
}

func (w *world) isolate(p Peer, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[p] = cut
}

func (w *world) counts() lockfsm.Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Counts()
}

// empty checks that nothing is left of any call, anywhere.
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

func (w *world) lock(c Peer, key string) *Hold {
	w.t.Helper()
	h, err := w.clients[c].Acquire(w.t.Context(), key, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func TestShellLockAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1, 2)
		defer w.close()
		w.elect(1)
		a := w.lock(100, "x")
		if a.Key() != "x" || a.Token() == 0 || a.Err() != nil {
			t.Fatalf("%q, token %d, %v", a.Key(), a.Token(), a.Err())
		}
		got := make(chan *Hold)
		go func() {
			h, err := w.clients[101].Acquire(context.Background(), "x", false)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		synctest.Wait()
		_, err := w.clients[101].Acquire(t.Context(), "x", true)
		var held *HeldError
		if !errors.As(err, &held) || held.Token != a.Token() || held.Waiters != 1 || len(held.Record) != 1 {
			t.Fatalf("try: %v", err)
		}
		done := a.Done()
		for range 2 { // again is the same
			if err := a.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		<-a.Done()
		if a.Err() != ErrReleased {
			t.Errorf("after Release: %v", a.Err())
		}
		b := <-got
		if b.Token() <= a.Token() {
			t.Errorf("token %d after %d", b.Token(), a.Token())
		}
		if err := b.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.empty()
	})
}

// Release always releases; ctx bounds only the wait. Without a leader the confirmation comes when there is one.
func TestShellReleaseWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		w.elect(1)
		h := w.lock(100, "x")
		ended, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		w.elect(0)
		if err := h.Release(ended); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Fatalf("release: %v", err)
		}
		if h.Err() != ErrReleased {
			t.Errorf("err: %v", h.Err())
		}
		w.elect(1)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.empty()
	})
}

// Without a leader a call ends with its context, at once, and says so.
func TestShellContextEndsWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		_, err := w.clients[100].Acquire(ctx, "x", false)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(before))
		}
		if _, err := w.clients[100].Acquire(ctx, "x", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		before = time.Now()
		if _, err := w.clients[100].Acquire(t.Context(), "x", true); err != ErrNoLeader || time.Since(before) > time.Second {
			t.Fatalf("try: %v after %v", err, time.Since(before)) // one of the two seconds is over
		}
		w.empty()
	})
}

// A client that is cut off loses its locks at its own deadline, before anybody else can have them, and is told.
func TestShellLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		defer w.close()
		w.elect(1)
		h := w.lock(100, "x")
		start := time.Now()
		w.isolate(100, true)
		w.keepers[1].Down(100)
		w.clients[100].Down(1)
		next := make(chan time.Duration)
		go func() {
			h, err := w.clients[101].Acquire(context.Background(), "x", false)
			if err != nil {
				t.Error(err)
			} else {
				h.Release(context.Background())
			}
			next <- time.Since(start)
		}()
		time.Sleep(worldTTL - worldTTL/50 - time.Millisecond)
		if h.Err() != nil || w.clients[100].Status().Lease != Jeopardy {
			t.Fatalf("%v, %v", h.Err(), w.clients[100].Status().Lease)
		}
		<-h.Done()
		lost := time.Since(start)
		if !errors.Is(h.Err(), ErrLost) || !errors.Is(h.Release(t.Context()), ErrLost) {
			t.Errorf("err %v", h.Err())
		}
		granted := <-next
		if lost >= granted || granted > worldTTL+time.Second {
			t.Errorf("lost after %v, granted to another after %v", lost, granted)
		}
		w.isolate(100, false)
		if err := w.clients[100].WaitAttached(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.lock(100, "x").Release(t.Context())
		w.empty()
	})
}

// jumpClock is the bubble's clock and a leap of the test's.
type jumpClock struct {
	clock.Clock
	leap clock.Manual
}

func (j *jumpClock) Now() clock.Time { return j.Clock.Now().Add(j.leap.Now().Sub(0)) }

// The process was stopped past its deadline: the first call of Err says so, before any timer has fired or any goroutine has run; and
// nothing that the goroutine reads afterwards makes the hold look held again.
func TestShellErrIsExactAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		defer w.close()
		leaping := &jumpClock{Clock: w.clock}
		w.clients[100].Close()
		w.clock = leaping
		w.clients[100] = w.newClient(100)
		w.clients[100].Rebind(nil, []Target{{Peer: 1}})
		w.elect(1)
		h, fresh := w.lock(100, "x"), w.lock(100, "y")
		synctest.Wait()
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		leaping.leap.Advance(worldTTL)
		if err := h.Err(); !errors.Is(err, ErrLost) {
			t.Fatalf("first call after the pause: %v", err)
		}
		<-h.Done()
		leaping.leap.Advance(-worldTTL) // as if the goroutine had read the clock before the pause and published a renewal after it
		w.clients[100].rouse()
		synctest.Wait()
		if fresh.Err() != nil {
			t.Fatalf("the other hold, which nobody asked about: %v", fresh.Err())
		}
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatal("a lost hold is held again")
		}
		if err := h.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("release: %v", err)
		}
		if c := w.counts(); c.Entries != 1 {
			t.Errorf("what was lost is still in the group: %+v", c)
		}
		fresh.Release(t.Context())
		w.empty()
	})
}

// A renewal in the inbox that is read after the deadline revives no hold that existed, whatever the order of the goroutines.
func TestShellLateRenewalRevivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		defer w.close()
		leaping := &jumpClock{Clock: w.clock}
		w.clients[100].Close()
		w.clock = leaping
		w.clients[100] = w.newClient(100)
		w.clients[100].Rebind(nil, []Target{{Peer: 1}})
		w.elect(1)
		h := w.lock(100, "x")
		time.Sleep(worldTTL/3 - time.Millisecond)
		// The renewal leaves in a millisecond and is acknowledged at once; the process stops with the answer in its inbox.
		stops := sync.OnceFunc(func() { leaping.leap.Advance(worldTTL) })
		w.mu.Lock()
		w.onReply = stops
		w.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if !h.over.Load() {
			t.Fatal("the goroutine has not found that the deadline has passed")
		}
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatalf("err %v", h.Err())
		}
		w.lock(100, "z").Release(t.Context()) // the client goes on
		if !errors.Is(h.Err(), ErrLost) {
			t.Fatalf("err %v", h.Err())
		}
		w.empty()
	})
}

// 200 callers cancel at random moments while the leader changes. Afterwards nothing is left anywhere.
func TestShellCancelStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 1, 2, 3)
		defer w.close()
		w.elect(1)
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				for round := range 10 {
					var b [2]byte
					rand.Read(b[:])
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(b[0])*time.Millisecond)
					h, err := w.clients[Peer(100+i%3)].Acquire(ctx, fmt.Sprint("k", i%5), b[1] < 50)
					if err == nil {
						time.Sleep(time.Duration(b[1]) * time.Microsecond)
						if round%2 == 0 {
							err = h.Release(ctx)
						} else {
							err = h.Release(context.Background())
						}
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrHeld) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		for i := range 10 {
			time.Sleep(100 * time.Millisecond)
			w.elect(Peer(i % 4)) // 0: nobody
		}
		w.elect(2)
		group.Wait()
		time.Sleep(time.Second)
		w.empty()
	})
}

func TestShellCloseInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"unbound":   func(w *world) { w.clients[100].Close(); w.clients[100] = w.newClient(100) },
		"no leader": func(w *world) { time.Sleep(time.Second) },
		"cut off":   func(w *world) { w.isolate(1, true); time.Sleep(time.Second) },
		"attached":  func(w *world) { w.elect(1); time.Sleep(time.Second) },
		"orphaned":  func(w *world) { w.elect(1); time.Sleep(time.Second); w.elect(0); time.Sleep(time.Second) },
		"closed session": func(w *world) {
			w.elect(1)
			if err := w.clients[100].CloseSession(context.Background()); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, 1)
				prepare(w)
				c := w.clients[100]
				results := make(chan error, 4)
				go func() { _, err := c.Acquire(context.Background(), "x", false); results <- err }()
				go func() { _, err := c.Acquire(context.Background(), "x", false); results <- err }()
				go func() { results <- c.WaitReady(context.Background()) }()
				go func() { _, err := c.Acquire(context.Background(), "y", true); results <- err }()
				synctest.Wait()
				w.close()
				w.close()
				for range 4 {
					if err := <-results; err != nil && !errors.Is(err, ErrClosed) && err != ErrNoLeader {
						t.Error(err)
					}
				}
				for _, f := range []func() error{
					func() error { _, err := c.Acquire(context.Background(), "x", false); return err },
					func() error { return c.WaitAttached(context.Background()) },
					func() error { return c.CloseSession(context.Background()) },
				} {
					if err := f(); err != ErrClosed {
						t.Errorf("after Close: %v", err)
					}
				}
				c.Receive(1, []byte{1})
				c.Down(1)
				c.Leaving()
				w.keepers[1].Receive(1, nil, []byte{1})
				w.keepers[1].Applied(lockfsm.Result{Kind: lockfsm.Born})
			})
		})
	}
}

// Close with held locks: they are lost to their holders and not closed in the group, since the code that held them may still run.
func TestShellCloseKeepsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		w.elect(1)
		h, released := w.lock(100, "x"), w.lock(100, "y")
		w.elect(0)
		result := make(chan error)
		go func() { result <- released.Release(context.Background()) }()
		synctest.Wait()
		w.clients[100].Close()
		if err := <-result; err != ErrClosed {
			t.Errorf("a release without confirmation: %v", err)
		}
		if !errors.Is(h.Err(), ErrLost) || !errors.Is(h.Release(t.Context()), ErrLost) {
			t.Errorf("err %v", h.Err())
		}
		if c := w.counts(); c.Sessions != 1 || c.Entries != 2 {
			t.Errorf("%+v", c)
		}
		w.close()
	})
}

func TestShellCloseSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		defer w.close()
		w.elect(1)
		h := w.lock(100, "x")
		if err := w.clients[100].CloseSession(t.Context()); err != ErrStillHeld {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			h.Release(context.Background())
		}()
		if err := w.clients[100].WaitReleased(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clients[100].Leaving()
		w.elect(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.clients[100].CloseSession(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.elect(1)
		if err := w.clients[100].CloseSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.clients[100].Acquire(t.Context(), "x", false); err != ErrClosed {
			t.Error(err)
		}
		if c := w.counts(); c.Sessions != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// Rebind, the restart in place: locks are lost, calls that wait are served in the new life.
func TestShellRebind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1)
		defer w.close()
		w.elect(1)
		h, other := w.lock(100, "x"), w.lock(101, "y")
		got := make(chan *Hold)
		go func() {
			h, err := w.clients[100].Acquire(context.Background(), "y", false)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		synctest.Wait()
		w.clients[100].Rebind([]byte("again"), []Target{{Peer: 1}})
		<-h.Done()
		if !errors.Is(h.Err(), ErrLost) {
			t.Error(h.Err())
		}
		other.Release(t.Context())
		next := <-got
		if next.Err() != nil {
			t.Fatal(next.Err())
		}
		next.Release(t.Context())
		time.Sleep(worldTTL + time.Second) // the old life's session ends with its lease
		w.empty()
		if c := w.counts(); c.Sessions != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// A peer that sends without end is not allowed to fill our memory.
func TestShellKeeperInboxIsBounded(t *testing.T) {
	t.Parallel()
	k := &Keeper{wake: make(chan struct{}, 1)} // its goroutine has no turn
	for range inboxBytes/(1<<20) + 10 {
		k.Receive(5, nil, make([]byte, 1<<20))
	}
	if k.inbox.bytes > inboxBytes {
		t.Errorf("%d bytes wait", k.inbox.bytes)
	}
	if in := k.inbox.inputs[len(k.inbox.inputs)-1]; in.kind != keeperDropped || in.peer != 5 || in.commands != nil {
		t.Errorf("%+v", in)
	}
}
