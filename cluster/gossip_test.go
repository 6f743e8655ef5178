package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// TestALongCutHeals checks that gossip recovers from a cut from which memberlist alone would never
// recover.
func TestALongCutHeals(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(5)
		time.Sleep(5 * time.Second)
		if !f.allSeeAll() {
			t.Fatal("before the cut not all see all")
		}
		for a := range 2 {
			for b := 2; b < 5; b++ {
				f.net.cut(addrOf(a), addrOf(b))
			}
		}
		f.raft(5 * time.Minute)
		if n := len(f.nodes[0].Members()); n != 2 {
			t.Fatalf("after five minutes of the cut gossip shows %d, want the 2 on this side", n)
		}
		f.net.heal()
		f.raft(time.Minute)
		if !f.allSeeAll() {
			t.Error("a minute after a cut of five minutes not all see all")
		}
		f.oneGroup()
	})
}

// TestACutHealsWithoutHelpFromJoin checks that instances meet again through voters and former
// members if Join leads to no instance any more.
func TestACutHealsWithoutHelpFromJoin(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join = []string{"seed.example:7947"}
			f.start(cfg)
		}
		f.mu.Lock()
		f.dns["seed.example"] = []string{"10.0.0.1"}
		f.mu.Unlock()
		f.raft(4 * time.Second)
		f.oneGroup()
		f.mu.Lock()
		f.dns["seed.example"] = nil
		f.mu.Unlock()
		f.net.cut(addrOf(0), addrOf(2))
		f.net.cut(addrOf(1), addrOf(2))
		f.raft(5 * time.Minute)
		f.net.heal()
		f.raft(time.Minute)
		if !f.allSeeAll() {
			t.Error("a minute after the cut not all see all")
		}
	})
}

func TestSameNameAtANewAddressIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.nodes[0].stop()
		cfg := f.config(0, 3)
		cfg.Advertise = addrOf(42)
		f.start(cfg)
		f.raft(2 * time.Second)
		f.oneGroup()
		seen := 0
		for _, m := range f.nodes[0].Members() {
			if m.Name == "n0" && m.Addr == addrOf(42) {
				seen++
			}
		}
		if seen != 1 {
			t.Errorf("two seconds after its restart the instance is seen %d times at its new address", seen)
		}
	})
}

func TestAddressBookKeepsInstancesThatGossipDeclaresDead(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		gone := f.nodes[2]
		raft := gone.raft
		f.net.cut(addrOf(0), addrOf(2))
		f.net.cut(addrOf(1), addrOf(2))
		f.raft(2 * time.Minute)
		if n := len(f.nodes[0].Members()); n != 2 {
			t.Fatalf("gossip still shows %d", n)
		}
		if v, ok := f.nodes[0].Voter(raft); !ok || v.Addr != addrOf(2) {
			t.Errorf("the address book says %+v, %v of the voter that gossip has lost", v, ok)
		}
	})
}

func TestGossipAmongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		var join []string
		for i := range 3 {
			join = append(join, fmt.Sprintf("pod-%d.locks:7947", i))
			f.dns[fmt.Sprintf("pod-%d.locks", i)] = []string{fmt.Sprintf("pod-%d.locks", i)}
		}
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join, cfg.Advertise = join, join[i]
			f.start(cfg)
		}
		f.raft(3 * time.Second)
		f.oneGroup()
		f.raft(20 * time.Second) // memberlist's probes succeed
		if !f.allSeeAll() {
			t.Error("not all see all")
		}
	})
}

func TestALabelKeepsClustersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.start(f.config(0, 2))
		cfg := f.config(1, 2)
		cfg.Label = "another"
		f.start(cfg)
		f.raft(10 * time.Second)
		// Unlike the real network, the fake one passes questions between clusters with different
		// labels. So only gossip keeps the two clusters separate.
		for _, n := range f.nodes {
			if got := len(n.Members()); got != 1 {
				t.Errorf("%s (%s) sees %d members by gossip, want itself alone", n.cfg.Name, n.cfg.Label, got)
			}
		}
	})
}

func TestLeaveIsHeardAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.raft(2 * time.Second)
		began := time.Now()
		f.nodes[2].Leave(context.Background(), false)
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("leaving took %v", d)
		}
		f.nodes[2].stop()
		time.Sleep(time.Second)
		if n := len(f.nodes[0].Members()); n != 2 {
			t.Errorf("a second after the goodbye %d members are seen, want 2", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		f.net.cut(addrOf(0), addrOf(1))
		began = time.Now()
		f.nodes[1].Leave(ctx, false)
		f.nodes[1].Leave(ctx, false) // a second Leave does nothing
		if d := time.Since(began); d > 20*time.Millisecond {
			t.Errorf("leaving with a context of 10 ms took %v", d)
		}
		began = time.Now()
		f.nodes[0].Leave(context.Background(), true)
		if d := time.Since(began); d > leaveAlone {
			t.Errorf("leaving as the last one took %v", d)
		}
	})
}

// TestCloseWaitsForTheGoodbye checks that a Close during a Leave does not prevent the announcement,
// which may be sent together with other updates.
func TestCloseWaitsForTheGoodbye(t *testing.T) {
	for _, moment := range []time.Duration{0, 37, 71, 113, 167} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			defer f.stop()
			f.born(3)
			f.raft(2 * time.Second)
			time.Sleep(moment * time.Millisecond)
			gone := f.nodes[2]
			go gone.Leave(context.Background(), false)
			synctest.Wait()
			gone.stop()
			time.Sleep(time.Second)
			if n := len(f.nodes[0].Members()); n != 2 {
				t.Errorf("a second later %d members are seen, want 2", n)
			}
		})
	}
}

type slowNet struct {
	*fakePort
	late, ended *atomic.Int32
}

func (s slowNet) Ask(ctx context.Context, addr string, to nodeid.ID, q []byte) ([]byte, nodeid.ID, error) {
	s.late.Add(1)
	<-ctx.Done()
	time.Sleep(10 * time.Millisecond)
	s.ended.Add(1)
	return nil, nodeid.ID{}, ctx.Err()
}

func TestCloseWaitsForQuestionsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		cfg := f.config(0, 3)
		slow := slowNet{f.net.listen(addrOf(0)), &atomic.Int32{}, &atomic.Int32{}}
		cfg.Net, cfg.Host, cfg.Key = slow, &node{f: f}, nodeidtest.Key(1)
		c, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		c.Close()
		if a, b := slow.late.Load(), slow.ended.Load(); a == 0 || a != b {
			t.Errorf("%d questions were under way and %d had ended when Close returned", a, b)
		}
	})
}

// TestCloseInEveryState checks Close at different times. The synctest bubble fails if a goroutine
// remains.
func TestCloseInEveryState(t *testing.T) {
	slow.UnderRace(t)
	for _, after := range []time.Duration{0, 1, time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond,
		400 * time.Millisecond,
		700 * time.Millisecond, time.Second, 3 * time.Second, 7300 * time.Millisecond, time.Minute} {
		for _, trouble := range []string{"none", "cut", "mute", "leaving"} {
			t.Run(fmt.Sprint(after, " ", trouble), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { closeAfter(t, after, trouble) })
			})
		}
	}
}

func closeAfter(t *testing.T, after time.Duration, trouble string) {
	f := newFleet(t)
	for i := range 3 {
		f.start(f.config(i, 3))
	}
	n := f.nodes[0]
	f.raft(after / 2)
	switch trouble {
	case "cut":
		f.net.cut(addrOf(0), addrOf(1))
		f.net.cut(addrOf(0), addrOf(2))
	case "mute":
		f.net.muffle(addrOf(0), true)
		f.net.muffle(addrOf(1), true)
	}
	f.raft(after / 2)
	if trouble == "leaving" {
		go n.Leave(t.Context(), false)
	}
	began := time.Now()
	var twice sync.WaitGroup
	twice.Go(func() { n.Close() })
	twice.Go(func() { n.Close() })
	twice.Wait()
	if d := time.Since(began); d > 2*time.Second+time.Millisecond || (d > 0 && trouble != "leaving") {
		t.Errorf("Close took %v", d)
	}
	if n.Answer(Asker{Addr: "x"}, []byte{1}) != nil {
		t.Error("a closed cluster answers")
	}
	if _, ok := n.ReplyStatus(StatusQuery{}); ok || n.Present() {
		t.Error("a closed cluster answers, or says that it is there")
	}
	n.HasLeader(true)
	n.BornApplied(1)
	n.in.post(n.hearNews) // an update that gossip was about to post
	n.Leave(context.Background(), false)
	_, _ = n.Voter(1)
	_ = n.Status()
	if n.in.post(func() {}) || len(n.in.items) > 0 {
		t.Error("a closed cluster collects what it is brought")
	}
	f.stop()
}

func TestGarbageIsNoQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		n := f.start(f.config(0, 3))
		for _, q := range []string{"", "\x01", "\x01\x01", "\x01\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
			strings.Repeat("x", 1<<21)} {
			if n.Answer(Asker{Addr: "stranger"}, []byte(q)) != nil {
				t.Errorf("%.20q was answered", q)
			}
		}
		if err := n.port.WriteTo([]byte("\xf4\x04test\x0c\xff\xff\xff"), addrOf(0)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
}
