package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// This file tests package election on whole nodes in fake time. The sessions of the nodes have a
// TTL of 2 s.

const (
	electionTTL      = 2 * time.Second
	electionFailover = 3 * time.Second // a generous limit: a failover usually takes one second
)

// office checks that there is at most one leader at a time and that tokens rise. It records the
// leaders.
type office struct {
	t       *testing.T
	mu      sync.Mutex // guards the fields below
	sits    map[string]mortise.Token
	highest mortise.Token
	came    []string
	at      time.Time // when the last leader began
}

func newOffice(t *testing.T) *office { return &office{t: t, sits: map[string]mortise.Token{}} }

func (o *office) enter(who string, token mortise.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sits) > 0 {
		o.t.Errorf("%s leads with %d while there is %v", who, token, o.sits)
	}
	if token <= o.highest {
		o.t.Errorf("%s leads with token %d after %d", who, token, o.highest)
	}
	o.highest, o.at = token, time.Now()
	o.sits[who], o.came = token, append(o.came, who)
}

func (o *office) exit(who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sits, who)
}

func (o *office) who() (string, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.came, " "), o.at
}

func (o *office) until(n int) {
	o.t.Helper()
	for range 6000 {
		o.mu.Lock()
		came := len(o.came)
		o.mu.Unlock()
		if came >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	who, _ := o.who()
	o.t.Fatalf("after a minute only %q have led", who)
}

// candidates runs an election on some nodes. Their requests are queued in the order of the nodes,
// and each candidate leads until its context ends.
type candidates struct {
	stops []context.CancelFunc
	ended []func() error
}

func campaign(t *testing.T, o *office, nodes []*mortise.Node) *candidates {
	c := &candidates{}
	for i, node := range nodes {
		ctx, stop := context.WithCancel(t.Context())
		who := fmt.Sprint(i)
		var run sync.WaitGroup
		var err error
		c.stops, c.ended = append(c.stops, stop), append(c.ended, func() error { run.Wait(); return err })
		run.Go(func() {
			err = election.New(node, "lead", election.Options{}).Run(ctx, "value of "+who,
				func(ctx context.Context, l *election.Leadership) error {
					o.enter(who, l.Token())
					defer o.exit(who)
					<-ctx.Done()
					return ctx.Err()
				})
		})
		time.Sleep(100 * time.Millisecond) // the request is in the queue
		synctest.Wait()
	}
	return c
}

func (c *candidates) stop() {
	for i := range c.stops {
		c.stops[i]()
		c.ended[i]()
	}
}

// TestElectionHandsOver checks that the next candidate leads within milliseconds when a leader is
// asked to end.
func TestElectionHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 3)
		o := newOffice(t)
		watching, unwatch := context.WithCancel(t.Context())
		seen := make([][]string, len(nodes))
		var observers sync.WaitGroup
		for i, node := range nodes {
			observers.Go(func() {
				for leader, err := range election.New(node, "lead", election.Options{}).Observe(watching) {
					if err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						return
					}
					seen[i] = append(seen[i], leader.Name+"="+leader.Value)
				}
			})
		}
		time.Sleep(2 * time.Second)
		c := campaign(t, o, nodes)
		for i := range 2 {
			time.Sleep(2 * time.Second)
			began := time.Now()
			c.stops[i]()
			if err := c.ended[i](); !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v", err)
			}
			o.until(i + 2)
			if _, at := o.who(); at.Sub(began) > 20*time.Millisecond {
				t.Errorf("%d led %v after %d was asked to end", i+1, at.Sub(began), i)
			}
		}
		time.Sleep(2 * time.Second)
		c.stop()
		time.Sleep(2 * time.Second)
		unwatch()
		observers.Wait()
		if who, _ := o.who(); who != "0 1 2" {
			t.Errorf("led in the order %s", who)
		}
		for i, leaders := range seen {
			if got, want := strings.Join(leaders, ", "),
				"=, node-0=value of 0, node-1=value of 1, node-2=value of 2, ="; got != want {
				t.Errorf("the observer on node %d saw %q; want %q", i, got, want)
			}
		}
	})
}

func TestElectionTellsItsObserversAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 3)
		o := election.New(nodes[2], "lead", election.Options{})
		if _, err := nodes[0].Lock(t.Context(), "lead/of another name"); err != nil {
			t.Fatal(err)
		}
		watching, unwatch := context.WithCancel(t.Context())
		type sight struct {
			leader election.Leader
			after  time.Duration
		}
		var seen []sight
		began := time.Now()
		var observer sync.WaitGroup
		observer.Go(func() {
			for leader, err := range o.Observe(watching) {
				if err == nil {
					seen = append(seen, sight{leader, time.Since(began)})
				}
			}
		})
		time.Sleep(time.Second)
		var want []mortise.Token
		e := election.New(nodes[0], "lead", election.Options{})
		for i := range 5 {
			l, err := e.Campaign(t.Context(), fmt.Sprint("short ", i))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, l.Token())
			if err := l.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		unwatch()
		observer.Wait()
		var told []mortise.Token
		for _, s := range seen {
			if s.leader.Token == 0 {
				continue
			}
			told = append(told, s.leader.Token)
			if s.leader.Value != fmt.Sprint("short ", len(told)-1) || s.leader.Name != "node-0" ||
				s.leader.Since.IsZero() || s.after > 1100*time.Millisecond {
				t.Errorf("%+v after %v", s.leader, s.after)
			}
		}
		if fmt.Sprint(told) != fmt.Sprint(want) || seen[0].leader != (election.Leader{}) ||
			seen[len(seen)-1].leader != (election.Leader{}) {
			t.Errorf("told %+v, want %v between two zero leaders", seen, want)
		}
	})
}

func TestElectionSurvivesTheCrashOfItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, f := startNodes(t, 3)
		o := newOffice(t)
		c := campaign(t, o, nodes)
		began := time.Now()
		f.crash(0)
		if err := c.ended[0](); !errors.Is(err, mortise.ErrClosed) {
			t.Errorf("Run on a closed node returned %v", err)
		}
		o.until(2)
		if who, at := o.who(); who != "0 1" || at.Sub(began) > electionTTL+electionFailover {
			t.Errorf("led: %s, the last one after %v", who, at.Sub(began))
		} else {
			t.Logf("the next one led after %v", at.Sub(began))
		}
		c.stop()
	})
}

// TestElectionUnderCuts checks that the leadership of a leader that is cut off ends before the next
// candidate leads.
func TestElectionUnderCuts(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		nodes, f := startNodes(t, 3)
		o := newOffice(t) // fails if there are two leaders at a time
		c := campaign(t, o, nodes)
		for i := range 6 {
			began := time.Now()
			f.isolate(i % 3)
			o.until(i + 2)
			if _, at := o.who(); at.Sub(began) > electionTTL+electionFailover {
				t.Errorf("cut %d: the next one led after %v", i, at.Sub(began))
			}
			f.rejoin(i % 3)
			time.Sleep(20 * time.Second)
		}
		if who, _ := o.who(); who != "0 1 2 0 1 2 0" {
			t.Errorf("led in the order %s", who)
		}
		c.stop()
	})
}

func TestElectionWhenTheLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 3)
		o := newOffice(t)
		c := campaign(t, o, nodes)
		began := time.Now()
		left := make(chan error)
		go func() { left <- nodes[0].Leave(t.Context()) }()
		o.until(2)
		if _, at := o.who(); at.Sub(began) > 50*time.Millisecond {
			t.Errorf("the next one led %v after the leader began to leave", at.Sub(began))
		}
		if err := c.ended[0](); !errors.Is(err, mortise.ErrLeaving) {
			t.Errorf("Run returned %v", err)
		}
		if err := <-left; err != nil {
			t.Error(err)
		}
		c.stop()
	})
}

// TestElectionIsNotEnteredAgain checks that a leader cannot be a candidate again with the context
// of its leadership.
func TestElectionIsNotEnteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := startNodes(t, 1)
		e := election.New(nodes[0], "lead", election.Options{})
		err := e.Run(t.Context(), "a", func(ctx context.Context, l *election.Leadership) error {
			other, err := nodes[0].Lock(ctx, "something else")
			if err != nil {
				return err
			}
			defer other.Unlock(ctx)
			if token, ok := mortise.TokenFrom(ctx); !ok || token != l.Token() {
				t.Errorf("the context has token %d, the leadership %d", token, l.Token())
			}
			if again, err := election.New(nodes[0], "lead", election.Options{}).Campaign(other.Context(ctx),
				"b"); err != election.ErrLeading {
				t.Errorf("%v, %v", again, err)
			}
			if l.Err() != nil {
				t.Errorf("the attempt has cost the leadership: %v", l.Err())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if leader, err := e.Leader(t.Context()); err != nil || leader.Token != 0 {
			t.Errorf("%+v leads, %v", leader, err)
		}
	})
}

// TestElectionFencesADeafLeader cuts off a leader that ignores its context and continues to write.
// The resource must refuse its writes.
func TestElectionFencesADeafLeader(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		nodes, f := startNodes(t, 3)
		o := newOffice(t)
		var mu sync.Mutex
		var highest mortise.Token
		var refused int
		write := func(token mortise.Token) {
			mu.Lock()
			defer mu.Unlock()
			if token < highest {
				refused++
			}
			highest = max(highest, token)
		}
		ctx, stop := context.WithCancel(t.Context())
		var deaf sync.WaitGroup
		turns := 0
		deaf.Go(func() {
			err := election.New(nodes[0], "lead", election.Options{}).Run(ctx, "deaf",
				func(ctx context.Context, l *election.Leadership) error {
					if turns++; turns == 2 {
						return nil
					}
					for range 200 {
						write(l.Token())
						time.Sleep(100 * time.Millisecond)
					}
					if l.Err() == nil {
						t.Error("was not cut off")
					}
					return nil
				})
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		})
		time.Sleep(time.Second)
		f.isolate(0)
		c := campaign(t, o, nodes[1:])
		o.until(1)
		mu.Lock()
		before := refused
		mu.Unlock()
		write(o.highest)
		time.Sleep(5 * time.Second)
		f.rejoin(0)
		time.Sleep(20 * time.Second)
		mu.Lock()
		if before != 0 || refused < 50 {
			t.Errorf("refused %d before another one wrote, and %d in all", before, refused)
		}
		mu.Unlock()
		if turns != 1 {
			t.Errorf("led %d times while another one leads", turns)
		}
		c.stop()
		deaf.Wait()
		if turns != 2 {
			t.Errorf("led %d times", turns)
		}
		stop()
	})
}
