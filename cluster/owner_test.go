package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// scriptedNet is a Net whose answers come from the test. It counts the questions under way.
type scriptedNet struct {
	gossip.Net // nil: an instance that does not gossip needs none
	answer     func(ctx context.Context) ([]byte, error)

	mu     sync.Mutex // guards the fields below
	flying map[string]int
	asked  map[string]int
	most   int // highest number of questions under way
	double int // highest number of questions under way to one address
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

func (n *scriptedNet) QueryStatus(ctx context.Context, _ string, _ nodeid.ID, _ StatusQuery) (StatusReply, error) {
	_, err := n.answer(ctx)
	return StatusReply{}, err
}

func (n *scriptedNet) Probe(ctx context.Context, _ string, _ nodeid.ID) error {
	_, err := n.answer(ctx)
	return err
}

// idleOwner returns an instance that has no owner goroutine and does not gossip. The test runs the
// turns.
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

// pass advances the time, and carries out posted items.
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

// TestEachRoundOfQuestionsHasAllPlaces checks that every question frees its slot. If slots were
// lost, the owner would soon stop asking.
func TestEachRoundOfQuestionsHasAllPlaces(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) ([]byte, error){
		"answered": func(context.Context) ([]byte, error) { return []byte("x"), nil },
		"answered after a while": func(context.Context) ([]byte, error) {
			time.Sleep(askWithin / 2)
			return []byte("x"), nil
		},
		"answered by nothing": func(context.Context) ([]byte, error) { return nil, nil },
		"refused":             func(context.Context) ([]byte, error) { return nil, ErrRefused },
		"a stranger": func(context.Context) ([]byte, error) {
			return nil,
				&ForeignError{Why: "secret"}
		},
		"another instance": func(context.Context) ([]byte, error) { return nil, ErrOther },
		"silence with a reason": func(context.Context) ([]byte, error) {
			return nil,
				&SilentError{Why: "no secret"}
		},
		"silence":                 func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
		"an answer with an error": func(context.Context) ([]byte, error) { return []byte("x"), errCut },
		"silence without an end":  func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, nil },
		"an answer behind the bound": func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return []byte("x"),
				nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &scriptedNet{answer: answer}
				c := idleOwner(t, net)
				const addrs, twice = 2*maxAsks + 3, 2
				for round := 1; round <= 4; round++ {
					for i := range addrs * twice {
						c.put(founding.Question{ID: uint64(i), Addr: addrOf(i % addrs)})
					}
					c.pass(addrs * twice / maxAsks * 2 * askWithin)
					if o := &c.own; o.busy != 0 || len(o.asking)+len(o.backlog) != 0 {
						t.Fatalf("round %d leaves %d places taken, %v and %d questions", round, o.busy, o.asking,
							len(o.backlog))
					}
					for i := range addrs {
						if n := net.asked[addrOf(i)]; n != twice*round {
							t.Fatalf("in %d rounds %s was asked %d times, want %d", round, addrOf(i), n, twice*round)
						}
					}
				}
				if net.most != maxAsks || net.double != 1 {
					t.Errorf("%d questions were under way, %d of them to one address; want %d and 1", net.most,
						net.double, maxAsks)
				}
			})
		})
	}
}

// TestEachRestartInPlaceBeginsAnew checks that a new incarnation has a new key and no waiting
// questions, and drops late reports.
func TestEachRestartInPlaceBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
		c := idleOwner(t, &scriptedNet{answer: silent})
		lives := map[nodeid.ID]bool{c.own.key.ID(): true}
		for range 4 {
			c.own.back = true
			for i := range 2 * maxAsks {
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

// closingHost is a host with a directory. During one of its calls the instance is closed, and Close
// returns ErrHung. The closingHost records later calls.
type closingHost struct {
	*node
	at    int // number of that call
	n     int
	late  []string
	close func()
}

func (h *closingHost) called(what string) {
	if h.n++; h.n == h.at {
		h.close()
	} else if h.n > h.at {
		h.late = append(h.late, what)
	}
}

func (h *closingHost) Bound(c founding.Charter, raft uint64) {
	h.node.Bound(c, raft)
	h.called("bound")
}
func (h *closingHost) AllBound(group uint64) { h.node.AllBound(group); h.called("all bound") }
func (h *closingHost) Member(group uint64, voters []Voter) {
	h.node.Member(group, voters)
	h.called("member")
}
func (h *closingHost) Voters(voters []Voter) { h.node.Voters(voters); h.called("voters") }
func (h *closingHost) Prepared(group, raft uint64) {
	h.node.Prepared(group, raft)
	h.called("prepared")
}
func (h *closingHost) Removed(raft uint64) { h.node.Removed(raft); h.called("removed") }

func (h *closingHost) Carry(term uint64, step voters.Step, about Voter) {
	h.node.Carry(term, step, about)
	h.called("carry")
}

func (h *closingHost) Facts() (voters.Facts, uint64, bool) {
	if h.n > h.at {
		h.late = append(h.late, "facts")
	}
	return h.node.Facts()
}

type closingDisk struct {
	*disk
	host *closingHost
}

func (d closingDisk) Save(changes map[string][]byte) error {
	err := d.disk.Save(changes)
	if d.host.Cluster != nil { // it is nil while Start saves
		d.host.called("save")
	}
	return err
}

// TestNothingIsSaidAfterClose checks that Close does not wait for a call that hangs. When that
// call returns later, nothing is sent, stored or asked, since the host may no longer exist.
func TestNothingIsSaidAfterClose(t *testing.T) {
	for _, again := range []bool{false, true} { // a first start, or a start with a stored group
		for at := range 3 {
			t.Run(fmt.Sprint("call ", at, " again ", again), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t)
					defer f.stop()
					d := closingDisk{disk: newDisk(), host: &closingHost{at: at + 1}}
					cfg := f.config(0, 3)
					cfg.Records = d.disk
					if again {
						f.start(cfg)
					}
					for i := 1; i < 3; i++ {
						f.start(newDisk().durable(f.config(i, 3)))
					}
					if f.raft(3 * time.Second); again {
						f.oneGroup()
						f.nodes[0].stop()
					}
					cfg.Records = d
					n := f.startWith(cfg, func(n *node) (Host, Net) { d.host.node = n; return d.host, n.port })
					closed := make(chan error, 1)
					d.host.close = func() {
						go func() { closed <- n.Close() }()
						time.Sleep(maxCloseWait + time.Second)
					}
					n.in.post(func() {}) // waits until n.Cluster is set
					f.raft(3 * time.Second)
					if d.host.n <= at {
						t.Fatalf("only %d calls", d.host.n)
					}
					if err := <-closed; !errors.Is(err, ErrHung) {
						t.Errorf("Close returns %v", err)
					}
					f.net.tape()
					f.raft(10 * time.Second)
					if len(d.host.late) > 0 {
						t.Errorf("called after Close: %v", d.host.late)
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
}

// TestOneCallThatFailsHoldsUpNothing makes one call fail. A group is founded, an instance joins it,
// a lost voter is replaced, and the leader is found in about the usual time.
func TestOneCallThatFailsHoldsUpNothing(t *testing.T) {
	slow.UnderRace(t)
	const soon, late = 5 * time.Second, 12 * time.Second // 12 s include the wait for a Prepare
	for what, row := range map[string]struct {
		calls  int64 // number of tested calls
		within time.Duration
	}{
		"lookup": {3, soon}, "stream": {3, soon}, "question": {4, soon}, "prepare": {1, late},
		"announcement": {1, soon}, "probe": {1, soon}, "status query": {2, soon},
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
						n.mustQuery(g.leader, 2*time.Second)
					}
					if left.Load() > 0 {
						t.Errorf("no %s has failed", what)
					}
				})
			})
		}
	}
}

func TestTheInboxIsNotReadOnAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		n := f.start(f.config(0, 3))
		busy, hangs, ran := make(chan struct{}), make(chan struct{}), false
		n.in.post(func() { <-busy })
		synctest.Wait()
		n.in.post(func() { <-hangs }) // one turn takes both items
		n.in.post(func() { ran = true })
		close(busy)
		synctest.Wait()
		if err := n.Close(); !errors.Is(err, ErrHung) {
			t.Errorf("Close returns %v", err)
		}
		close(hangs)
		<-n.done
		if ran {
			t.Error("what came behind a call that hung was done after Close")
		}
	})
}

// TestLooksDoNotPileUp checks that many calls of Look cause only one input of a turn.
func TestLooksDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := idleOwner(t, &scriptedNet{})
		for turn := range 3 {
			for range 100 {
				c.Look()
			}
			if n := len(c.in.items); n != 1 {
				t.Fatalf("turn %d: 100 calls are %d inputs", turn, n)
			}
			if c.pass(0); !c.own.core.wanted {
				t.Fatalf("turn %d: the core is not told", turn)
			}
			c.own.core.wanted = false
		}
	})
}

type dismissedHost struct {
	*node
	ended []uint64
}

func (h *dismissedHost) Dismissed(raft uint64) { h.ended = append(h.ended, raft) }

func TestADismissedReplicaIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := idleOwner(t, &scriptedNet{})
		host := &dismissedHost{node: c.cfg.Host.(*node)}
		c.cfg.Host = host
		for raft := range uint64(3) { // 0 means none
			(&Acts{Dismissed: raft}).carry(hands{c})
		}
		if !slices.Equal(host.ended, []uint64{1, 2}) {
			t.Errorf("its host was told to end %v", host.ended)
		}
	})
}

// TestWhatAQuestionCameToIsSaid checks that a peer that does not answer is never reported as a
// foreign program, and that a known reason is reported.
func TestWhatAQuestionCameToIsSaid(t *testing.T) {
	for name, row := range map[string]struct {
		answer []byte
		err    error
		says   string
		not    string
	}{
		"silence":                {err: errCut, says: addrOf(1), not: "another program"},
		"silence without a word": {says: addrOf(1), not: "another program"},
		"silence with a reason":  {err: &SilentError{Why: "no secret"}, says: "no secret", not: "another program"},
		"a stranger":             {err: ErrForeign, says: "another program"},
		"a stranger by a reason": {err: &ForeignError{Why: "it has another secret"}, says: "it has another secret"},
		"refused":                {err: ErrRefused, says: "listens at", not: "another program"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.stop()
				cfg := f.config(0, 2)
				n := f.startWith(cfg, func(n *node) (Host, Net) { return n, answeringNet{n.port, row.answer, row.err} })
				time.Sleep(5 * time.Second)
				if got := n.Status().Waiting; !strings.Contains(got, row.says) ||
					row.not != "" && strings.Contains(got, row.not) {
					t.Errorf("it says %q, want %q in it", got, row.says)
				}
			})
		})
	}
}

type answeringNet struct {
	*fakePort
	answer []byte
	err    error
}

func (n answeringNet) Ask(context.Context, string, nodeid.ID, []byte) ([]byte, nodeid.ID, error) {
	time.Sleep(time.Millisecond)
	return n.answer, nodeid.ID{}, n.err
}

func TestACharterHasWhatItsFoundersAreConfiguredWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Rules = 7
			f.start(cfg)
		}
		f.raft(2 * time.Second)
		f.oneGroup()
		ch, ttl := f.nodes[0].charter, f.nodes[0].cfg.Settings.SessionTTL
		if ch.Rules != 7 || len(ch.List) != 3 || ch.Settings.SessionTTL != ttl {
			t.Errorf("%+v", ch)
		}
	})
}

// TestWhatTheLogSaysIsAnswered checks that an instance's answers contain the log's reports about
// its replica. Other instances use these reports to decide whether a leader can be elected.
func TestWhatTheLogSaysIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.net.tape()
		group := f.born(3)
		n, raft := f.nodes[0], f.nodes[0].raft
		question := f.net.played(kindWhoIs, "", "")[0].question
		said := map[string]bool{}
		for _, tell := range []func(){
			func() {},
			func() { n.HasLeader(false) },
			func() { n.Log(raft, founding.Log{Term: 3, LastTerm: 2, LastIndex: 77}) },
			func() { n.Applied(group, founding.Configuration{At: 9, Voters: n.Status().Voters[:1]}) },
		} {
			tell()
			answer := n.Answer(Asker{Instance: f.nodes[1].instance, Addr: addrOf(1)}, question)
			if answer == nil || said[string(answer)] {
				t.Errorf("it answers % x, as before", answer)
			}
			said[string(answer)] = true
		}
	})
}

func TestStatusQueriesThatWereGivenUpEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		n := f.nodes[0]
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if _, err := n.QueryStatus(ctx); !errors.Is(err, ErrNoLeader) {
				t.Fatal(err)
			}
			cancel()
		}
		if left := asked(n.Cluster, n.in.post, func() int { return len(n.own.core.inquiries.list) }); left != 0 {
			t.Errorf("%d queries go on without their callers", left)
		}
	})
}

func TestAnInstanceThatDoesNotGossipLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := idleOwner(t, &scriptedNet{})
		c.Leave(t.Context(), false)
		c.pass(time.Second)
	})
}
