package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// scriptedNet is a Net whose questions a test answers. It counts those that are under way.
type scriptedNet struct {
	gossip.Net // an instance that does not gossip needs none
	answer     func(ctx context.Context) ([]byte, error)

	mu     sync.Mutex // guards the rest
	flying map[string]int
	asked  map[string]int
	most   int // questions under way at a time
	double int // the same, to one address
}

func (n *scriptedNet) Ask(ctx context.Context, addr string, _ nodeid.ID, _ []byte) ([]byte, nodeid.ID, error) {
	n.mu.Lock()
	n.flying[addr]++
	n.asked[addr]++
	n.most, n.double = max(n.most, len(n.flying)), max(n.double, n.flying[addr])
	n.mu.Unlock()
	time.Sleep(time.Millisecond)
	b, err := n.answer(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flying[addr]--; n.flying[addr] == 0 {
		delete(n.flying, addr)
	}
	return b, nodeid.ID{}, err
}

func (n *scriptedNet) Consult(ctx context.Context, _ string, _ nodeid.ID, _ Consultation) (Advice, error) {
	_, err := n.answer(ctx)
	return Advice{}, err
}

func (n *scriptedNet) Probe(ctx context.Context, _ string, _ nodeid.ID) error {
	_, err := n.answer(ctx)
	return err
}

// idleOwner is an instance without its goroutine, which does not gossip: the test has the turns.
func idleOwner(t *testing.T, net *scriptedNet) *Cluster {
	t.Helper()
	net.flying, net.asked = map[string]int{}, map[string]int{}
	f := newFleet(t)
	cfg := f.config(0, 3)
	cfg.Key, cfg.Member, cfg.Net = fleetKeys()[1], true, net
	cfg.Host = &node{f: f, port: f.net.listen(cfg.Advertise)}
	c := &Cluster{cfg: cfg.withDefaults(), in: newInbox()}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	c.publish()
	return c
}

// pass lets time pass, and carries out what is posted meanwhile.
func (c *Cluster) pass(d time.Duration) {
	for end := time.Now().Add(d); ; time.Sleep(askWithin / 4) {
		for synctest.Wait(); ; synctest.Wait() {
			items := c.in.take()
			for _, it := range items {
				if c.in.lives(it) {
					it.do()
				}
			}
			if len(items) == 0 {
				break
			}
		}
		if !time.Now().Before(end) {
			return
		}
	}
}

// Each round of questions has all places: an owner that counts on asks no question any more before long. All are asked, whatever becomes of
// those before them.
func TestEachRoundOfQuestionsHasAllPlaces(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) ([]byte, error){
		"answered":                   func(context.Context) ([]byte, error) { return []byte("x"), nil },
		"answered after a while":     func(context.Context) ([]byte, error) { time.Sleep(askWithin / 2); return []byte("x"), nil },
		"answered by nothing":        func(context.Context) ([]byte, error) { return nil, nil },
		"refused":                    func(context.Context) ([]byte, error) { return nil, ErrRefused },
		"a stranger":                 func(context.Context) ([]byte, error) { return nil, &ForeignError{Why: "another secret"} },
		"another instance":           func(context.Context) ([]byte, error) { return nil, ErrOther },
		"silence with a reason":      func(context.Context) ([]byte, error) { return nil, &SilentError{Why: "no secret"} },
		"silence":                    func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
		"an answer with an error":    func(context.Context) ([]byte, error) { return []byte("x"), errCut },
		"silence without an end":     func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, nil },
		"an answer behind the bound": func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return []byte("x"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &scriptedNet{answer: answer}
				c := idleOwner(t, net)
				const addrs, twice = 2*asksMax + 3, 2
				for round := 1; round <= 4; round++ {
					for i := range addrs * twice {
						c.put(founding.Question{ID: uint64(i), Addr: addrOf(i % addrs)})
					}
					c.pass(addrs * twice / asksMax * 2 * askWithin)
					if o := &c.own; o.busy != 0 || len(o.asking)+len(o.backlog) != 0 {
						t.Fatalf("round %d leaves %d places taken, the addresses %v and %d questions", round, o.busy, o.asking, len(o.backlog))
					}
					for i := range addrs {
						if n := net.asked[addrOf(i)]; n != twice*round {
							t.Fatalf("in %d rounds %s was asked %d times, want %d", round, addrOf(i), n, twice*round)
						}
					}
				}
				if net.most != asksMax || net.double != 1 {
					t.Errorf("%d questions were under way, %d of them to one address; want %d and 1", net.most, net.double, asksMax)
				}
			})
		})
	}
}

// A restart in place begins a life that nothing of the one before reaches, each time: with a key of its own, no question that still waits,
// and deaf to what is reported late.
func TestEachRestartInPlaceBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := idleOwner(t, &scriptedNet{answer: func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }})
		lives := map[nodeid.ID]bool{c.own.key.ID(): true}
		for range 4 {
			c.own.back = true
			for i := range 2 * asksMax {
				c.put(founding.Question{ID: uint64(i), Addr: addrOf(i)})
			}
			late := false
			c.in.postOfLife(func() { late = true })
			next := c.random().Instance
			c.carryOut(founding.Event{Kind: founding.Restarted, Instance: next, Text: "lost"})
			if c.own.key.ID() != next || lives[next] {
				t.Fatalf("the life %v has the key of %v; before there were %v", next, c.own.key.ID(), lives)
			}
			lives[next] = true
			if c.own.back || len(c.own.backlog) > 0 {
				t.Errorf("a new life is back: %v; %d questions of the one before wait", c.own.back, len(c.own.backlog))
			}
			if c.pass(2 * askWithin); late || c.own.busy != 0 {
				t.Errorf("what an old life reported late was taken: %v; %d places are taken", late, c.own.busy)
			}
			if host := c.cfg.Host.(*node); host.instance != next {
				t.Errorf("the host was told of %v, want %v", host.instance, next)
			}
		}
	})
}

// hangingHost is a host of which one call hangs, until it is freed.
type hangingHost struct {
	*node
	at   int // which call
	free chan struct{}
	n    int
}

func (h *hangingHost) hang() {
	if h.n++; h.n == h.at {
		<-h.free
	}
}

func (h *hangingHost) Bound(c founding.Charter, raft uint64) { h.node.Bound(c, raft); h.hang() }
func (h *hangingHost) AllBound(group uint64)                 { h.node.AllBound(group); h.hang() }
func (h *hangingHost) Member(group uint64, voters []Voter)   { h.node.Member(group, voters); h.hang() }
func (h *hangingHost) Voters(voters []Voter)                 { h.node.Voters(voters); h.hang() }

// A call of the host that hangs is given up by Close, and what it held up is neither said nor asked when it returns after all.
func TestAHostThatHangsIsToldNothingAfterClose(t *testing.T) {
	for at := 1; at <= 3; at++ {
		t.Run(fmt.Sprint("call ", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				host := &hangingHost{at: at, free: make(chan struct{})}
				n := f.startWith(f.config(0, 3), func(n *node) Host { host.node = n; return host })
				f.start(f.config(1, 3))
				f.start(f.config(2, 3))
				f.raft(3 * time.Second)
				n.HasLeader(true) // it waits in the inbox
				began := time.Now()
				if err := n.Close(); !errors.Is(err, ErrHung) || time.Since(began) != closeWaitMax {
					t.Fatalf("Close returns %v after %v", err, time.Since(began))
				}
				told := n.calls()
				f.net.tape()
				close(host.free)
				time.Sleep(time.Minute)
				if got := n.calls(); got != told || strings.Count(got, ", ") != at-1 {
					t.Errorf("its host was told %q before Close and %q in the end", told, got)
				}
				f.net.mu.Lock()
				defer f.net.mu.Unlock()
				for _, h := range f.net.heard {
					if h.from == addrOf(0) {
						t.Errorf("it asks %s a question after Close", h.to)
					}
				}
			})
		})
	}
}

// Whatever fails, once: a group is founded, an instance joins it, a voter that is lost is replaced, and the leader is found, in about the
// time that it takes when nothing fails.
func TestOneCallThatFailsHoldsUpNothing(t *testing.T) {
	const soon, late = 5 * time.Second, 12 * time.Second // a replica that was perhaps prepared is waited for
	for what, row := range map[string]struct {
		calls  int64 // how many of them are tried
		within time.Duration
	}{
		"lookup": {3, soon}, "stream": {3, soon}, "question": {4, soon}, "prepare": {1, late}, "announcement": {1, soon}, "probe": {1, soon},
		"consultation": {2, soon},
	} {
		for n := int64(1); n <= row.calls; n++ {
			t.Run(fmt.Sprint(what, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t)
					defer f.stop()
					var left atomic.Int64
					left.Store(n)
					f.net.fails = func(which string) bool { return which == what && left.Add(-1) == 0 }
					f.names("all.example", "10.0.0.1", "10.0.0.2", "10.0.0.3")
					for i := range 4 {
						if i == 3 {
							f.raft(2500 * time.Millisecond) // the last one joins a group
						}
						cfg := f.config(i, 3)
						cfg.Join = []string{"all.example:7947"}
						f.start(cfg)
					}
					f.raft(2500 * time.Millisecond)
					g := f.newGroup()
					if !f.allSeeAll() {
						t.Error("not all are seen")
					}
					dead := f.nodes[1].place()
					for _, n := range f.nodes {
						n.follows(g.leader)
					}
					f.nodes[1].stop()
					g.run(row.within)
					for _, n := range f.nodes {
						if _, old := n.Voter(dead.Raft); old || len(n.Status().Voters) != 3 {
							t.Errorf("%s knows %+v after the loss of %x", n.cfg.Name, n.Status().Voters, dead.Raft)
						}
						n.consults(g.leader, 2*time.Second)
					}
					if left.Load() > 0 {
						t.Errorf("no %s has failed", what)
					}
				})
			})
		}
	}
}
