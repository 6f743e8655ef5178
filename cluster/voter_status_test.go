package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// mustQuery sends a status query and fails unless the given leader answers within the time.
func (n *node) mustQuery(leader *node, within time.Duration) VoterStatus {
	n.f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	began := time.Now()
	status, err := n.QueryStatus(ctx)
	if took := time.Since(began); err != nil || status.Leader != leader.instance || took > within {
		n.f.t.Fatalf("after %v the answer is %+v, %v; want that of %s within %v", took, status, err, leader.cfg.Name,
			within)
	}
	return status
}

func TestTheLeaderAnswersEveryInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		plain := f.start(f.config(3, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		for _, n := range f.nodes {
			n.follows(g.leader)
		}
		facts := g.see()
		facts.Remarks = []string{"the settings differ"}
		g.leader.lead(1, facts)
		for _, n := range f.nodes {
			got := n.mustQuery(g.leader, 50*time.Millisecond)
			want, _ := g.leader.Report()
			got.Report.Next.Next, want.Next = 0, voters.Step{Kind: want.Next.Kind, Why: want.Next.Why}
			if !got.Known || got.AllLeaving || !reflect.DeepEqual(got.Report, want) ||
				!slices.Equal(got.Remarks, facts.Remarks) || got.Due != want.Due {
				t.Errorf("%s hears %+v, want the leader's %+v", n.cfg.Name, got, want)
			}
			if got.MayStop != (n == plain) {
				t.Errorf("%s is told MayStop %v", n.cfg.Name, got.MayStop)
			}
		}
		for _, n := range []*node{plain, g.leader} {
			if a, ok := n.ReplyStatus(StatusQuery{Group: g.id + 1, Instance: nodeidtest.ID(5), Raft: 6}); !ok ||
				a != (StatusReply{}) {
				t.Errorf("another group is answered %+v by %s", a, n.cfg.Name)
			}
		}
		// The leader evaluates again for a query, though no change was reported.
		time.Sleep(lead.Pause)
		facts.Registered = slices.Clone(facts.Registered[:3])
		for i := range facts.Registered {
			facts.Registered[i].Leaving = true
		}
		g.leader.mu.Lock()
		g.leader.facts = facts
		g.leader.mu.Unlock()
		if got := plain.mustQuery(g.leader, 50*time.Millisecond); !got.AllLeaving || got.Known {
			t.Errorf("the leader answers by an old look: %+v", got)
		}
		// These queries concern a replica of another node.
		gone := f.nodes[1].place().Raft
		ctx := context.Background()
		if got, err := f.nodes[1].QueryStatusFor(ctx, gone); err != nil || got.MayStop {
			t.Errorf("%+v, %v about a replica that votes", got, err)
		}
		facts.Config.Voters = slices.DeleteFunc(slices.Clone(facts.Config.Voters),
			func(id uint64) bool { return id == gone })
		facts.Replicas = slices.DeleteFunc(slices.Clone(facts.Replicas),
			func(r voters.Replica) bool { return r.ID == gone })
		for _, at := range []uint64{0, 5} { // number of the leader's configuration; the node that asks has number 1
			facts.Config.At = at
			g.leader.lead(1, facts)
			time.Sleep(lead.Pause)
			if got, err := f.nodes[1].QueryStatusFor(ctx, gone); err != nil || got.MayStop != (at > 0) {
				t.Errorf("%+v, %v about a replica that configuration %d does not name", got, err, at)
			}
		}
	})
}

// TestOnlyTheLeaderAnswers checks that an instance that does not lead answers with the leader's
// address, but never with a VoterStatus, even just after it has led.
func TestOnlyTheLeaderAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		plain := f.start(f.config(3, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		facts := g.see()
		g.leader.lead(1, facts)
		plain.follows(f.nodes[2]) // an outdated leader
		f.nodes[2].follows(f.nodes[1])
		f.nodes[1].follows(f.nodes[0])
		f.net.tape()
		plain.mustQuery(g.leader, 50*time.Millisecond)
		if asks := f.net.played(kindStatusQuery, addrOf(3), ""); len(asks) != 3 {
			t.Errorf("%d questions along a chain of two", len(asks))
		}
		g.leader.lead(0, voters.Facts{})
		g.leader.follows(f.nodes[1])
		f.nodes[1].follows(nil)
		facts.Self = f.nodes[1].place().Raft
		f.nodes[1].lead(2, facts)
		time.Sleep(lead.Pause)
		plain.mustQuery(f.nodes[1], 50*time.Millisecond)
		g.leader.mustQuery(f.nodes[1], 50*time.Millisecond)
		f.nodes[1].mustQuery(f.nodes[1], 0)
		if _, leads := g.leader.Report(); leads {
			t.Error("an instance that has lost the lead has a report")
		}
	})
}

func TestVoterStatusWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		plain := f.start(f.config(3, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		plain.follows(f.nodes[1]) // two nodes that redirect to each other
		f.nodes[1].follows(f.nodes[2])
		f.nodes[2].follows(f.nodes[1])
		f.net.tape()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := plain.QueryStatus(ctx)
		if took := time.Since(began); !errors.Is(err, ErrNoLeader) || !errors.Is(err, context.DeadlineExceeded) ||
			took > 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		asks := f.net.played(kindStatusQuery, addrOf(3), "")
		gaps := map[time.Duration]int{}
		for i := range asks[1:] {
			gap := asks[i+1].at.Sub(asks[i].at)
			if gap < time.Millisecond {
				t.Fatalf("two questions at a time: %v", gap)
			}
			if gap > 10*time.Millisecond {
				gaps[gap]++
			}
		}
		attempts := 0
		for gap, n := range gaps {
			attempts += n
			if gap < queryEvery || gap > queryEvery*3/2+time.Millisecond {
				t.Errorf("a pause of %v", gap)
			}
		}
		if attempts < 17 || attempts > 30 || len(gaps) < 10 || len(asks) > (attempts+1)*(1+queryHops) {
			t.Errorf("%d attempts, %d questions, %d different pauses in three seconds", attempts, len(asks), len(gaps))
		}
		// The query waits until an instance leads, even if the node has a wrong leader meanwhile.
		facts := g.see()
		done := make(chan VoterStatus, 1)
		go func() {
			c, _ := plain.QueryStatus(context.Background())
			done <- c
		}()
		time.Sleep(5 * time.Second)
		g.leader.lead(3, facts)
		f.nodes[1].follows(g.leader)
		f.nodes[2].follows(g.leader)
		time.Sleep(2 * queryEvery)
		select {
		case c := <-done:
			if c.Leader != g.leader.instance {
				t.Errorf("answered by %x", c.Leader)
			}
		default:
			t.Fatal("there is a leader, and the question is not answered")
		}
		plain.follows(nil) // the node finds the leader by asking the voters
		plain.mustQuery(g.leader, 500*time.Millisecond)
		// The node also finds the leader if it first asks a wrong one.
		plain.follows(&node{instance: nodeidtest.ID(4711), cfg: Config{Advertise: addrOf(66)}})
		plain.mustQuery(g.leader, 500*time.Millisecond)
	})
}

func TestCloseEndsAStatusQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.net.muffle(addrOf(1), true)
		f.nodes[0].follows(f.nodes[1])
		done := make(chan error, 1)
		go func() {
			_, err := f.nodes[0].QueryStatus(context.Background())
			done <- err
		}()
		time.Sleep(time.Second / 2)
		began := time.Now()
		f.nodes[0].Close()
		err := <-done
		if took := time.Since(began); took > 0 || !errors.Is(err, ErrNoLeader) || !errors.Is(err, ErrClosed) {
			t.Errorf("after %v: %v", took, err)
		}
		if _, err := f.nodes[0].QueryStatus(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		f.nodes[0].RemovedPeer(nodeidtest.ID(1), addrOf(1))
		f.nodes[0].Look()
		f.nodes[0].Configured(1, 2, nil)
	})
}
