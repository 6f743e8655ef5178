package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
)

// unsettled starts four nodes with directories, waits until three vote, and kills a follower that
// votes, dead. The fourth node replaces it after a minute. Until then the first Ready of the other
// voter that follows, n, waits.
func unsettled(t *testing.T, log *lines) (f *fleet, n *node, dead string) {
	f, root := newFleet(t), t.TempDir()
	for i := range 4 {
		c := durableConfig(f, root, i, i)
		c.Replicas = 4
		if log != nil {
			c.Logger = slog.New(slog.NewTextHandler(log, nil))
		}
		f.start(i, c)
	}
	for i := range 4 {
		unlock(t, f.lock(i, "k")) // Ready would remember that the voters were settled
	}
	f.wantVotes(3)
	var followers []int
	for i, n := range f.nodes {
		if s := n.Status(); s.Votes && !s.Leading {
			followers = append(followers, i)
		}
	}
	n, dead = f.nodes[followers[0]], f.nodes[followers[1]].config.Name
	f.crash(followers[1])
	time.Sleep(time.Second) // the leader notices
	return f, n, dead
}

// TestReadyWithoutAReplacement loses a founder with a directory for good, and starts another
// instance within the minute after which the founder counts as dead. No instance can replace the
// founder, so Ready returns as soon as locks are granted: after the failure of a whole site the
// service must not wait for a machine that does not return.
func TestReadyWithoutAReplacement(t *testing.T) {
	slow.UnderRace(t)
	for _, c := range []struct {
		name   string
		lost   []int // killed
		starts []int // started afterwards; the last one calls Ready
	}{
		{"all restart but one", []int{0, 1, 2}, []int{0, 1}},
		{"the second of two that were lost restarts", []int{1, 2}, []int{1}},
		{"a member that is no founder starts", []int{2}, []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, root := newFleet(t), t.TempDir()
				start := func(i int) *node {
					c := durableConfig(f, root, i, i)
					c.Replicas, c.Founders = 0, []string{"node-0", "node-1", "node-2"}
					return f.start(i, c)
				}
				for i := range 3 {
					start(i)
				}
				f.ready()
				for _, i := range c.lost {
					f.crash(i)
				}
				var n *node
				for _, i := range c.starts {
					n = start(i)
				}
				began := time.Now()
				if err := n.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Ready returned after %v", took)
				}
				if s := f.nodes[0].Status(); !slices.ContainsFunc(s.Voters, func(v mortise.Member) bool {
					return v.Address == address(2) && v.Votes
				}) {
					t.Errorf("node-2 is no voter any more, so nothing is tested:\n%v", s)
				}
				unlock(t, f.lock(f.index(n), "k"))
			})
		})
	}
}

// TestReadyOfANodeThatEnds ends a node while Ready waits for the voters. Ready must not report
// success, or a deployment would go on.
func TestReadyOfANodeThatEnds(t *testing.T) {
	slow.UnderRace(t)
	broken := fmt.Errorf("%w: as after a panic of Apply", raftlog.ErrBroken)
	for _, c := range []struct {
		name string
		end  func(n *node)
		want error
	}{
		{"Close", func(n *node) { _ = n.Close() }, mortise.ErrClosed},
		{"Leave", func(n *node) { _ = n.Leave(context.Background()) }, mortise.ErrLeaving},
		{"a failure", func(n *node) { n.Replica().Retire(broken) }, raftlog.ErrBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, n, _ := unsettled(t, nil)
				ready := make(chan error, 1)
				go func() { ready <- n.Ready(t.Context()) }()
				time.Sleep(20 * time.Second)
				select {
				case err := <-ready:
					t.Fatalf("Ready did not wait for the voters: %v", err)
				default:
				}
				ended := make(chan struct{})
				go func() { defer close(ended); c.end(n) }()
				began := time.Now()
				wantIs(t, <-ready, c.want)
				if took := time.Since(began); took > time.Second {
					t.Errorf("Ready returned after %v", took)
				}
				<-ended
				synctest.Wait()
				if err := n.Ready(t.Context()); err == nil {
					t.Error("Ready succeeds on a node that has ended")
				}
			})
		})
	}
}

// TestReadyOfShortProbes calls Ready as a probe does, with a context that is shorter than the time
// that the voters need. Each error names the voter that the leader waits for, also if no leader can
// answer within the context of that call.
func TestReadyOfShortProbes(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		var log lines
		f, n, dead := unsettled(t, &log)
		began := time.Now()
		for try := 0; ; try++ {
			if try == 5 {
				f.isolate(f.index(n))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			err := n.Ready(ctx)
			cancel()
			if try == 5 {
				f.rejoin(f.index(n))
			}
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), dead) {
				t.Errorf("after %v the error of call %d does not name %s: %v", time.Since(began), try, dead, err)
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < 30*time.Second || took > 90*time.Second {
			t.Errorf("ready after %v", took)
		}
		if warned := log.matching("voters are still changing"); warned != nil {
			t.Errorf("a warning although the voters have settled: %q", warned)
		}
	})
}

func (f *fleet) index(n *node) int { return slices.Index(f.nodes, n) }

// TestReadyAsksOnceMore calls Ready twice, with a pause that is longer than Ready waits. Meanwhile
// the voters have settled, so Ready must not warn.
func TestReadyAsksOnceMore(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		var log lines
		_, n, _ := unsettled(t, &log)
		for try, pause := range []time.Duration{0, 2 * time.Minute} {
			time.Sleep(pause)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := n.Ready(ctx); err == nil != (try == 1) {
				t.Errorf("call %d: %v", try, err)
			}
			cancel()
		}
		if warned := log.matching("voters are still changing"); warned != nil {
			t.Errorf("a warning although the voters have settled: %q", warned)
		}
	})
}
