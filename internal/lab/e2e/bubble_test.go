package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/outside"
)

// fleet is a set of whole nodes on a network in memory, inside a synctest bubble. Gossip, gRPC and
// raft are real, and the time is fake.
type fleet struct {
	t     *testing.T
	net   *memnet.Network
	nodes []*node              // nil if the node has crashed
	alter func(*outside.World) // changes the World of every node, if set
	begun func(*node)          // called with every node that starts, if set

	tapes    []*tapeFile // the histories of the nodes, judged at the end
	unjudged bool        // the test separates clocks or groups, or a node records nothing

	seconds seconds
	variety variety
}

// bubble runs a test in fake time. At a merge one of eight such tests runs with the race detector,
// and all of them without it. A goroutine that is left at the end fails the test. If f skips the
// test, nothing after the bubble runs.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	slow.Eighth(t)
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		f(t)
	})
	if skipped {
		t.SkipNow()
	}
}

func host(i int) string    { return fmt.Sprintf("10.0.0.%d", i+1) }
func address(i int) string { return host(i) + ":7947" }

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, net: memnet.New()}
	f.seconds.begin(t)
	f.variety.begin(t)
	t.Cleanup(func() {
		f.secondsEnd()
		for i := range f.nodes {
			f.close(i)
		}
		f.judge()
	})
	return f
}

func (f *fleet) config(i, n int) mortise.Config {
	c := mortise.Config{
		Name: fmt.Sprintf("node-%d", i), Bind: address(i), Replicas: n, SessionTTL: 2 * time.Second, Grace: -1,
		Insecure: true,
		Logger:   slog.New(slog.NewTextHandler(f.t.Output(), nil)).With("node", i),
	}
	c.History = new(tapeFile)
	for j := range n {
		c.Join = append(c.Join, address(j))
	}
	return c
}

func (f *fleet) world(i int) outside.World {
	e := realWorld()
	e.Listen = func(a string) (net.Listener, error) { return f.net.Listen(a) }
	e.Dial = f.net.Dialer(host(i))
	e.Resolve = func(_ context.Context, h string) ([]string, error) { return []string{h}, nil }
	e.Clock = clock.Monotonic()
	if f.alter != nil {
		f.alter(&e)
	}
	return e
}

func (f *fleet) start(i int, c mortise.Config) *node {
	f.t.Helper()
	f.variety.change(&c)
	if tape, ours := c.History.(*tapeFile); ours {
		f.tapes = append(f.tapes, tape)
	} else {
		f.unjudged = true
	}
	n, err := start(f.t.Context(), c, f.world(i))
	if err != nil {
		f.t.Fatal(err)
	}
	for len(f.nodes) <= i {
		f.nodes = append(f.nodes, nil)
	}
	f.nodes[i] = n
	if f.begun != nil {
		f.begun(n)
	}
	return n
}

func startFleet(t *testing.T, n int, change ...func(*mortise.Config)) *fleet {
	t.Helper()
	f := newFleet(t)
	for i := range n {
		c := f.config(i, n)
		for _, apply := range change {
			apply(&c)
		}
		f.start(i, c)
	}
	f.ready()
	return f
}

func (f *fleet) ready() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Minute)
	defer cancel()
	for _, n := range f.nodes {
		if n == nil {
			continue
		}
		if err := n.Ready(ctx); err != nil {
			f.t.Fatalf("%s: %v\n%v", n.config.Name, err, n.Status())
		}
	}
	f.secondsReady()
}

func (f *fleet) close(i int) {
	if n := f.nodes[i]; n != nil {
		f.nodes[i] = nil
		if err := n.Close(); err != nil {
			f.t.Errorf("close %s: %v", n.config.Name, err)
		}
	}
}

// crash ends node i like the end of its process: its connections are reset, and no message
// announces its end.
func (f *fleet) crash(i int) {
	defer f.secondsBeside()
	f.net.Crash(host(i))
	f.close(i)
}

// isolate cuts a node off from all other nodes. rejoin ends the cut.
func (f *fleet) isolate(i int) { f.each(i, f.net.Cut) }
func (f *fleet) rejoin(i int)  { f.each(i, f.net.Heal) }

func (f *fleet) each(i int, do func(a, b string)) {
	defer f.secondsBeside()
	for j := range f.nodes {
		if j != i {
			do(host(i), host(j))
		}
	}
}

func (f *fleet) leader() int {
	f.t.Helper()
	for range 1000 {
		for i, n := range f.nodes {
			if n != nil && n.Status().Leading {
				return i
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.t.Fatal("there is no leader after 20 s")
	return -1
}

func (f *fleet) follower() int {
	leader := f.leader()
	for i, n := range f.nodes {
		if n != nil && i != leader {
			return i
		}
	}
	f.t.Fatal("no follower lives")
	return -1
}

func (f *fleet) lock(i int, key string) *mortise.Lock {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	l, err := f.nodes[i].Lock(ctx, key)
	if err != nil {
		f.t.Fatalf("node %d: %v", i, err)
	}
	return l
}

func unlock(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// leftover counts what a node still keeps of calls that have ended.
func (n *node) leftover() int {
	left := n.Client.Status().Requests
	if r := n.Replica(); r != nil {
		c := r.Counts()
		left += c.Locks + c.Entries + c.Waiters
	}
	return left
}

func (f *fleet) nothingLeft() {
	f.t.Helper()
	time.Sleep(30 * time.Second) // all cancelled requests have been removed
	synctest.Wait()
	for i, n := range f.nodes {
		if n == nil {
			continue
		}
		if left := n.leftover(); left != 0 {
			f.t.Errorf("node %d keeps %d things of calls that are over: client %+v", i, left, n.Client.Status())
		}
		if r := n.Replica(); r != nil && r.Role().Leading {
			if got, want := r.Keeper.Status().Attachments, f.sessions(); got > want {
				f.t.Errorf("the leader has %d attachments for %d sessions", got, want)
			}
		}
	}
}

// sessions returns how many sessions the nodes that live have, without those that a test has
// opened.
func (f *fleet) sessions() int { return f.living() + f.seconds.opened(f.nodes) }

func (f *fleet) living() int {
	living := 0
	for _, n := range f.nodes {
		if n != nil {
			living++
		}
	}
	return living
}

// tapeFile is a history in memory. It is read after its node was closed.
type tapeFile struct{ bytes.Buffer }

func (f *fleet) judge() {
	if f.unjudged {
		return
	}
	var events []history.Event
	for _, tape := range f.tapes {
		var err error
		if events, err = history.Read(events, &tape.Buffer); err != nil {
			f.t.Error(err)
		}
	}
	if err := history.Judge(events, history.Options{Settle: 5 * time.Minute}); err != nil {
		f.t.Error(err)
	}
}

func wantIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}
