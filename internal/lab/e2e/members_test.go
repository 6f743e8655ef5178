package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

const (
	// gapLeaving limits the time without a grant of a free lock when an instance leaves.
	// gapKilled limits it when an instance is killed.
	gapLeaving = 300 * time.Millisecond
	gapKilled  = 2 * time.Second
)

// prober locks and unlocks uncontended keys, one after the other, and records the longest time
// between two grants.
type prober struct {
	longest time.Duration
	last    time.Time
	stop    context.CancelFunc
	done    chan struct{}
}

// probe starts a prober on node i. The prober waits for the given time between two locks.
func (f *fleet) probe(i int, every time.Duration) *prober {
	ctx, stop := context.WithCancel(f.t.Context())
	p := &prober{last: time.Now(), stop: stop, done: make(chan struct{})}
	n := f.nodes[i]
	go func() {
		defer close(p.done)
		for k := 0; ctx.Err() == nil; k++ {
			l, err := n.Lock(ctx, fmt.Sprintf("free/%d", k))
			if err != nil {
				return
			}
			p.longest, p.last = max(p.longest, time.Since(p.last)), time.Now()
			if err := l.Unlock(context.Background()); err != nil {
				f.t.Errorf("a lock of the prober on node %d: %v", i, err)
			}
			time.Sleep(every)
		}
	}()
	return p
}

func (p *prober) gap() time.Duration {
	p.stop()
	<-p.done
	return max(p.longest, time.Since(p.last))
}

// depart ends node i: by Leave, or by a crash if leave is false.
func (f *fleet) depart(i int, leave bool) {
	f.t.Helper()
	if !leave {
		f.crash(i)
		return
	}
	n := f.nodes[i]
	f.nodes[i] = nil
	began := time.Now()
	if err := n.Leave(f.t.Context()); err != nil {
		f.t.Errorf("leave %s: %v", n.config.Name, err)
	}
	took := time.Since(began)
	f.t.Logf("%s left in %v", n.config.Name, took)
	if took > 5*time.Second { // half of the time limit of a Leave
		f.t.Errorf("%s left in %v", n.config.Name, took)
	}
}

// roll restarts the n nodes of a fleet, one after the other. Meanwhile every other node holds a
// lock.
func (f *fleet) roll(n int, leave bool) {
	f.t.Helper()
	limit := gapKilled
	if leave {
		limit = gapLeaving
	}
	for i := range n {
		other := (i + 1) % n
		held := map[int]*mortise.Lock{}
		for j := range n {
			if j != i {
				held[j] = f.lock(j, fmt.Sprintf("own/%d", j))
			}
		}
		wasLeader := f.leader() == i
		p := f.probe(other, 5*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		f.depart(i, leave)
		time.Sleep(500 * time.Millisecond)
		f.start(i, f.config(i, n))
		f.ready()
		gap := p.gap()
		f.t.Logf("node %d, leading %v, leaving %v: no free lock could be granted for at most %v", i, wasLeader,
			leave, gap)
		if gap > limit {
			f.t.Errorf("a gap of %v, more than %v", gap, limit)
		}
		for j, l := range held {
			if err := l.Err(); err != nil {
				f.t.Errorf("node %d lost its lock when node %d went: %v", j, i, err)
			}
			unlock(f.t, l)
		}
	}
}

func TestRollingRestart(t *testing.T) {
	slow.UnderRace(t)
	for _, n := range []int{3, 5} {
		for _, leave := range []bool{true, false} {
			if n == 5 && underRace {
				continue
			}
			t.Run(fmt.Sprintf("%d nodes, leaving %v", n, leave), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFleet(t, n)
					group := f.nodes[0].Status().Group
					f.roll(n, leave)
					for _, node := range f.nodes {
						if got := node.Status().Group; got != group {
							t.Errorf("%s belongs to group %s, and the group was %s", node.config.Name, got, group)
						}
					}
					f.nothingLeft()
				})
			})
		}
	}
}

func TestLeaveHandsTheVoteOver(t *testing.T) {
	slow.UnderRace(t)
	for name, pick := range map[string]func(f *fleet) int{"leader": (*fleet).leader,
		"follower": (*fleet).votingFollower} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 4)
				f.settle()
				i := pick(f)
				leaver := f.nodes[i].Replica().ID
				f.depart(i, true)
				for _, n := range f.nodes {
					if n == nil || !n.Status().Leading {
						continue
					}
					if c := n.Replica().Configuration(); slices.Contains(c.Voters, leaver) ||
						slices.Contains(c.Outgoing, leaver) {
						t.Errorf("%s has left, and is a voter of %v at the leader", f.config(i, 4).Name, c.Voters)
					}
					return
				}
				t.Error("there is no leader when Leave returns")
			})
		})
	}
}

// TestLeaveSaysGoodbye checks that a leaving instance announces its end in gossip, so that the
// other instances need not wait until probes fail.
func TestLeaveSaysGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		f.settle()
		i := f.votingFollower()
		leaver := f.nodes[i].ID()
		f.depart(i, true)
		time.Sleep(500 * time.Millisecond)
		for _, n := range f.nodes {
			if n == nil {
				continue
			}
			for _, m := range n.Cluster().Members() {
				if m.Instance == leaver {
					t.Errorf("%s still sees %s, which has said goodbye", n.config.Name, m.Name)
				}
			}
		}
	})
}

func (f *fleet) votingFollower() int {
	leader := f.leader()
	for i, n := range f.nodes {
		if n != nil && i != leader && n.Status().Votes {
			return i
		}
	}
	f.t.Fatal("no follower votes")
	return -1
}

// settle waits until the leader has reported for two seconds that no change of the voters is due.
func (f *fleet) settle() mortise.Health {
	f.t.Helper()
	var h mortise.Health
	calm := 0
	for range 600 {
		calm++
		led := false
		for _, n := range f.nodes {
			if n == nil {
				continue
			}
			if s := n.Status(); s.Health != nil {
				h, led = *s.Health, true
			}
		}
		if !led || h.Due || len(h.Missing) > 0 {
			calm = 0
		}
		if calm == 20 {
			return h
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("the voters have not settled within a minute:\n%v", h)
	return h
}

func (f *fleet) votes() (n int) {
	for _, node := range f.nodes {
		if node != nil && node.Status().Votes {
			n++
		}
	}
	return n
}

func (f *fleet) wantVotes(want int) {
	f.t.Helper()
	h := f.settle()
	if got := f.votes(); got != want {
		f.t.Fatalf("%d vote, want %d:\n%v", got, want, h)
	}
}

// TestAnyTwoOfFiveVoters ends any two of five voters, ten seconds apart. The group must survive the
// loss of one more voter.
func TestAnyTwoOfFiveVoters(t *testing.T) {
	slow.UnderRace(t)
	for a := range 5 {
		for b := range 5 {
			if a == b || underRace && (a+b)%4 != 1 { // the race detector makes the test slow
				continue
			}
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 5, func(c *mortise.Config) { c.Voters = 5 })
				group := f.nodes[0].Status().Group
				keeper := 0
				for keeper == a || keeper == b {
					keeper++
				}
				mine := f.lock(keeper, "k")
				f.crash(a)
				time.Sleep(10 * time.Second)
				f.crash(b)
				f.wantVotes(3)
				for i := range 5 {
					if f.living() > 2 && f.nodes[i] != nil && i != keeper {
						f.crash(i)
						f.settle()
					}
				}
				f.wantVotes(1)
				if err := mine.Err(); err != nil {
					t.Errorf("one of the last two has lost its lock: %v", err)
				}
				if got := f.nodes[keeper].Status().Group; got != group {
					t.Errorf("the group is %s, and was %s", got, group)
				}
				unlock(t, mine)
			})
		}
	}
}

// TestFlappingMember kills and restarts a member every five seconds. No other instance may be
// affected.
func TestFlappingMember(t *testing.T) {
	slow.UnderRace(t)
	flaps := 24
	if testing.Short() {
		flaps = 12
	}
	for _, founders := range []bool{false, true} {
		if founders && underRace {
			continue
		}
		bubble(t, func(t *testing.T) {
			change := func(c *mortise.Config) {
				if founders {
					c.Replicas, c.Founders = 0, []string{"node-0", "node-1", "node-2"}
				}
			}
			f := startFleet(t, 3, change)
			group := f.nodes[0].Status().Group
			mine := []*mortise.Lock{f.lock(0, "a"), f.lock(1, "b")}
			p := f.probe(0, 50*time.Millisecond)
			for range flaps {
				f.crash(2)
				time.Sleep(2500 * time.Millisecond)
				c := f.config(2, 3)
				change(&c)
				f.start(2, c)
				time.Sleep(2500 * time.Millisecond)
			}
			if gap := p.gap(); gap > gapKilled {
				t.Errorf("no free lock was granted for %v", gap)
			}
			for _, l := range mine {
				if err := l.Err(); err != nil {
					t.Errorf("a lock was lost: %v", err)
				}
				unlock(t, l)
			}
			time.Sleep(3 * time.Minute) // by now it may get a vote again
			f.wantVotes(3)
			if got := f.nodes[0].Status().Group; got != group {
				t.Errorf("the group is %s, and was %s", got, group)
			}
		})
	}
}

// TestScale removes all instances but one, and starts the others again. The group goes on.
func TestScale(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		const all = 9
		f := startFleet(t, all)
		f.wantVotes(3)
		group := f.nodes[0].Status().Group
		p := f.probe(8, 5*time.Millisecond)
		for f.living() > 1 {
			gone := f.leader()
			if gone == 8 {
				gone = f.follower()
			}
			f.depart(gone, true)
			f.settle()
		}
		if gap := p.gap(); gap > gapLeaving {
			t.Errorf("no free lock was granted for %v", gap)
		}
		f.wantVotes(1)
		mine := f.lock(8, "k")
		for i := range all - 1 {
			f.start(i, f.config(i, all))
			f.ready()
			f.wantVotes(map[bool]int{true: 3, false: 1}[f.living() >= 3])
		}
		unlock(t, mine)
		if got := f.nodes[8].Status().Group; got != group {
			t.Errorf("the group is %s, and was %s", got, group)
		}
		f.nothingLeft()
	})
}

// In TestSoleVoterOfTwoIsLost the only voter is lost, and so is the group. A new group must be
// founded when there are enough instances.
func TestSoleVoterOfTwoIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		voter := f.leader()
		before := f.lock(1-voter, "k")
		f.crash(voter)
		time.Sleep(10 * time.Second)
		if before.Err() == nil {
			t.Error("the lock is still reported as held although its group is gone")
		}
		f.start(voter, f.config(voter, 2))
		f.ready()
		after := f.lock(1-voter, "k")
		if after.Token() <= before.Token() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
		unlock(t, after)
	})
}

func TestAllLeaveAtOnce(t *testing.T) {
	slow.UnderRace(t)
	for _, n := range []int{1, 2, 3, 5} {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, n)
			f.settle()
			done := make(chan time.Duration, n)
			for i := range n {
				node := f.nodes[i]
				f.nodes[i] = nil
				go func() {
					began := time.Now()
					if err := node.Leave(t.Context()); err != nil {
						t.Errorf("leave %s: %v", node.config.Name, err)
					}
					done <- time.Since(began)
				}()
			}
			for range n {
				if took := <-done; took > 2*time.Second {
					t.Errorf("of %d that leave together one took %v", n, took)
				} else {
					t.Logf("one of %d left in %v", n, took)
				}
			}
		})
	}
}

// TestReadyPacesADeployment kills each instance as soon as the instance that was started before is
// ready. The group must survive.
func TestReadyPacesADeployment(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		group := f.nodes[0].Status().Group
		for round := range 4 {
			for i := range 3 {
				f.crash(i)
				n := f.start(i, f.config(i, 3))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := n.Ready(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
				if got := n.Status().Group; got != group {
					t.Fatalf("round %d: the group is %s, and was %s", round, got, group)
				}
			}
		}
	})
}

// TestAMemberKeepsSpareLinks checks that an instance without a vote has links to all three voters.
func TestAMemberKeepsSpareLinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		time.Sleep(10 * time.Second) // by now the sessions were renewed, which opens missing links
		for _, n := range f.nodes {
			if n.Status().Votes {
				continue
			}
			for _, v := range f.nodes {
				if v != n && !n.Port.Linked(v.ID()) {
					t.Errorf("%s has no link to %s", n.config.Name, v.config.Name)
				}
			}
		}
	})
}

// TestVotersKeepLinksToEachOther checks that the six followers of a leader have links to each
// other, so that its loss costs no handshakes. The test first ends the links that the election
// has made.
func TestVotersKeepLinksToEachOther(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 7, func(c *mortise.Config) { c.Voters = 7 })
		f.wantVotes(7)
		var followers []int
		for i := range f.nodes {
			if i != f.leader() {
				followers = append(followers, i)
			}
		}
		for i, a := range followers {
			f.pairs([]int{a}, followers[i+1:], f.net.Cut)
		}
		time.Sleep(time.Minute) // the links end
		for i, a := range followers {
			f.pairs([]int{a}, followers[i+1:], f.net.Heal)
		}
		time.Sleep(30 * time.Second) // by now the sessions were renewed, which opens missing links
		for i, a := range followers {
			for _, b := range followers[i+1:] {
				if !f.nodes[a].Port.Linked(f.nodes[b].ID()) {
					t.Errorf("%s has no link to %s", f.nodes[a].config.Name, f.nodes[b].config.Name)
				}
			}
		}
	})
}
