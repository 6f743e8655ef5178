package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// farApart is longer than the time for which gossip remembers a lost member, about 40 s.
func farApart() time.Duration {
	if underRace {
		return 75 * time.Second
	}
	return 5 * time.Minute
}

// startFour starts three voters and, as node 3, an instance without a vote.
func startFour(t *testing.T, change ...func(*mortise.Config)) *fleet {
	t.Helper()
	// The voters start before node 3, because the charter lists all instances that answer.
	f := startFleet(t, 3, change...)
	c := f.config(3, 3)
	for _, apply := range change {
		apply(&c)
	}
	f.start(3, c)
	f.ready()
	return f
}

func (f *fleet) pairs(from, to []int, do func(a, b string)) {
	for _, i := range from {
		for _, j := range to {
			do(host(i), host(j))
		}
	}
}

func (f *fleet) seen() (counts []int) {
	for _, n := range f.nodes {
		counts = append(counts, len(n.Cluster().Members()))
	}
	return counts
}

func (f *fleet) worksEverywhere() {
	f.t.Helper()
	f.ready()
	for i, n := range f.nodes {
		if n != nil {
			unlock(f.t, f.lock(i, "after all"))
		}
	}
	f.nothingLeft()
}

func TestLongCutHeals(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		leader := f.leader()
		ours, theirs := []int{leader, (leader + 1) % 3}, []int{(leader + 2) % 3, 3}
		mine := f.lock(ours[1], "k")
		f.pairs(ours, theirs, f.net.Cut)
		time.Sleep(farApart())
		if got := fmt.Sprint(f.seen()); got != "[2 2 2 2]" {
			t.Errorf("behind the cut they still see %v", got)
		}
		f.pairs(ours, theirs, f.net.Heal)
		healed := time.Now()
		for fmt.Sprint(f.seen()) != "[4 4 4 4]" && time.Since(healed) < 2*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		took := time.Since(healed)
		t.Logf("all instances saw each other %v after the cut had ended", took)
		if took > time.Minute {
			t.Errorf("after %v they see %v of 4", took, f.seen())
		}
		if err := mine.Err(); err != nil {
			t.Errorf("a cut cost the majority a lock: %v", err)
		}
		unlock(t, mine)
		f.worksEverywhere()
	})
}

// TestDeafWaiterIsPassedOver cuts the direction from the leader to a waiter, so that the waiter
// does not receive its grant. The next waiter must be granted the lock after at most two leases.
func TestDeafWaiterIsPassedOver(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		leader := f.leader()
		holder, next := (leader+1)%3, (leader+2)%3
		mine := f.lock(holder, "k")
		deaf, granted := f.lockLater(3, "k"), f.lockLater(next, "k")
		f.net.CutOneWay(host(leader), host(3))
		unlock(t, mine)
		began := time.Now()
		l := <-granted
		took := time.Since(began)
		t.Logf("the one behind the deaf waiter was granted after %v", took)
		if took > 2*f.config(0, 3).SessionTTL+time.Second {
			t.Errorf("the one behind the deaf waiter waited for %v", took)
		}
		f.net.Heal(host(leader), host(3))
		f.ready()
		unlock(t, l)
		again := <-deaf
		if again.Token() <= l.Token() {
			t.Errorf("token %d after %d", again.Token(), l.Token())
		}
		unlock(t, again)
		f.worksEverywhere()
	})
}

// lockLater locks a key in another goroutine. It returns when the request is in the queue.
func (f *fleet) lockLater(i int, key string) <-chan *mortise.Lock {
	granted := make(chan *mortise.Lock, 1)
	go func() { granted <- f.lock(i, key) }()
	time.Sleep(50 * time.Millisecond) // much longer than a request takes
	return granted
}

// TestHolderOnOneWay checks that a holder that is cut off in one direction loses its lock before
// the lock is granted to the next waiter.
func TestHolderOnOneWay(t *testing.T) {
	slow.UnderRace(t)
	for name, cut := range map[string]func(f *fleet, leader int){
		"hears but is not heard":     func(f *fleet, leader int) { f.net.CutOneWay(host(3), host(leader)) },
		"is heard but deaf":          func(f *fleet, leader int) { f.net.CutOneWay(host(leader), host(3)) },
		"reaches all but the leader": func(f *fleet, leader int) { f.net.Cut(host(leader), host(3)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFour(t)
				leader := f.leader()
				term := f.nodes[leader].Status().Term
				mine, other := f.lock(3, "k"), f.lock((leader+1)%3, "other")
				granted := f.lockLater((leader+2)%3, "k")
				cut(f, leader)
				began := time.Now()
				l := <-granted
				took := time.Since(began)
				if mine.Err() == nil {
					t.Error("two hold the lock")
				}
				t.Logf("the next one was granted after %v", took)
				if took > 2*f.config(0, 3).SessionTTL+time.Second {
					t.Errorf("the next one was granted only after %v", took)
				}
				// This is longer than the keepalive limit of the streams.
				time.Sleep(20 * time.Second)
				s := f.nodes[3].Status()
				t.Logf("it says: %s", s.Waiting)
				if s.Attached || s.Waiting == "" {
					t.Errorf("it does not know that it is cut off:\n%v", s)
				}
				if now := f.nodes[leader].Status(); !now.Leading || now.Term != term {
					t.Errorf("a plain member's trouble changed the leader:\n%v", now)
				}
				f.net.Heal(host(3), host(leader))
				healed := time.Now()
				f.ready()
				if took := time.Since(healed); took > 15*time.Second {
					t.Errorf("it came back %v after the cut had ended", took)
				}
				if err := other.Err(); err != nil {
					t.Errorf("it cost another node its lock: %v", err)
				}
				unlock(t, l)
				unlock(t, other)
				f.worksEverywhere()
			})
		})
	}
}

// TestOneVoterOnOneWay cuts the leader off from one voter. The cut must cause no election.
func TestOneVoterOnOneWay(t *testing.T) {
	slow.UnderRace(t)
	for name, cut := range map[string]func(f *fleet, leader, voter string){
		"leader to voter": func(f *fleet, leader, voter string) { f.net.CutOneWay(leader, voter) },
		"voter to leader": func(f *fleet, leader, voter string) { f.net.CutOneWay(voter, leader) },
		"both":            func(f *fleet, leader, voter string) { f.net.Cut(leader, voter) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFour(t)
				leader := f.leader()
				voter, other := (leader+1)%3, (leader+2)%3
				term := f.nodes[leader].Status().Term
				mine, theirs := f.lock(other, "mine"), f.lock(3, "theirs")
				cut(f, host(leader), host(voter))
				for range 6 {
					unlock(t, f.lock(3, "k"))
					time.Sleep(3 * time.Second)
				}
				for _, l := range []*mortise.Lock{mine, theirs} {
					if err := l.Err(); err != nil {
						t.Errorf("the trouble of one voter cost %s: %v", l.Key(), err)
					}
				}
				if now := f.nodes[leader].Status(); !now.Leading || now.Term != term {
					t.Errorf("it led in term %d; now:\n%v", term, now)
				}
				f.net.Heal(host(leader), host(voter))
				f.ready()
				unlock(t, mine)
				unlock(t, theirs)
				f.worksEverywhere()
			})
		})
	}
}

// TestLeaderOnOneWay cuts all links of the leader in one direction. It takes longer to replace a
// leader that can still send, because its heartbeats prevent elections until it notices the cut.
func TestLeaderOnOneWay(t *testing.T) {
	slow.UnderRace(t)
	for name, cut := range map[string]func(f *fleet, leader int){
		"mute": func(f *fleet, leader int) { f.each(leader, f.net.CutOneWay) },
		"deaf": func(f *fleet, leader int) { f.each(leader, func(a, b string) { f.net.CutOneWay(b, a) }) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFour(t, func(c *mortise.Config) { c.SessionTTL = 5 * time.Second })
				leader := f.leader()
				mine, others := f.lock(leader, "mine"), f.lock(3, "others")
				cut(f, leader)
				began := time.Now()
				l := f.lock((leader+1)%3, "k")
				took := time.Since(began)
				t.Logf("the next grant came after %v", took)
				if took > 2*failoverLimit {
					t.Errorf("the next grant took %v", took)
				}
				next := f.lock((leader+2)%3, "mine")
				if mine.Err() == nil {
					t.Error("two hold the lock")
				}
				time.Sleep(10 * time.Second)
				if err := others.Err(); err != nil {
					t.Errorf("a leader that was cut off in one direction cost another a lock: %v", err)
				}
				f.rejoin(leader)
				unlock(t, others)
				unlock(t, l)
				unlock(t, next)
				f.worksEverywhere()
			})
		})
	}
}

// TestTwoFollowersCutApart cuts the link between two instances that do not lead. Nothing may
// change.
func TestTwoFollowersCutApart(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFour(t)
		leader := f.leader()
		a, b := (leader+1)%3, 3
		term := f.nodes[leader].Status().Term
		one, two := f.lock(a, "one"), f.lock(b, "two")
		f.net.Cut(host(a), host(b))
		for second := range 60 {
			time.Sleep(time.Second)
			if got := fmt.Sprint(f.seen()); got != "[4 4 4 4]" {
				t.Fatalf("gossip goes round by others, but after %d s they see %v", second, got)
			}
		}
		for _, l := range []*mortise.Lock{one, two} {
			if err := l.Err(); err != nil {
				t.Errorf("%s: %v", l.Key(), err)
			}
			unlock(t, l)
		}
		if now := f.nodes[leader].Status(); now.Term != term {
			t.Errorf("there was an election:\n%v", now)
		}
		f.net.Heal(host(a), host(b))
		f.worksEverywhere()
	})
}
