package cluster

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// with returns a copy of voters with one more replica, which no node runs.
func with(voters []Voter, raft uint64) []Voter {
	more := append(slices.Clone(voters), Voter{Raft: raft, Instance: nodeidtest.ID(raft), Addr: addrOf(60), Life: 1,
		Learner: true})
	slices.SortFunc(more, func(a, b Voter) int {
		if a.Raft < b.Raft {
			return -1
		}
		return 1
	})
	return more
}

// settle waits until all work in flight is done, including updates of gossip, which take a
// nanosecond.
func (f *fleet) settle() {
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

func without(voters []Voter, raft uint64) []Voter {
	return slices.DeleteFunc(slices.Clone(voters), func(v Voter) bool { return v.Raft == raft })
}

func TestTheHigherNumberIsTheNewerConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		id := f.born(3)
		n := f.nodes[0]
		one := n.Status().Voters
		take := func(group, at uint64, list, want []Voter, told int) {
			t.Helper()
			before, _ := n.toldVoters()
			given := slices.Clone(list)
			n.Configured(group, at, given)
			clear(given) // the caller may reuse the slice
			f.settle()
			if got := n.Status().Voters; !slices.Equal(got, want) || n.own.core.At() != n.own.core.Meta().At {
				t.Fatalf("configuration %d: the book is %+v, want %+v", at, got, want)
			}
			after, list := n.toldVoters()
			if after-before != told || told > 0 && !slices.Equal(list, want) {
				t.Fatalf("configuration %d: the host was told %d times, want %d, and knows %+v", at, after-before,
					told, list)
			}
			if v, ok := n.Voter(90); ok != slices.ContainsFunc(want, func(v Voter) bool { return v.Raft == 90 }) {
				t.Fatalf("configuration %d: by raft ID there is %+v, %v", at, v, ok)
			}
		}
		two := with(one, 90)
		take(id, 5, two, two, 1)
		take(id, 5, two, two, 0)
		take(id, 3, one, two, 0)
		take(id+1, 9, one, two, 0)
		voting := slices.Clone(two)
		for i := range voting {
			voting[i].Learner = false
		}
		take(id, 8, voting, voting, 1)
		moved := slices.Clone(voting)
		for i := range moved {
			if moved[i].Raft == 90 {
				moved[i].Addr, moved[i].Life = addrOf(61), 2
			}
		}
		take(id, 8, moved, moved, 1)
		take(id, 7, two, moved, 0)
		take(id, 11, one, one, 1)
		take(id, 8, two, one, 0)
	})
}

func TestGossipMakesAllAskTheLeaderForANewerConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		id := f.born(3)
		for i := 3; i < 8; i++ {
			f.start(f.config(i, 3))
		}
		f.raft(3 * time.Second)
		for _, n := range f.nodes[1:] {
			n.follows(f.nodes[0])
		}
		want := with(f.nodes[0].Status().Voters, 90)
		f.net.tape()
		f.nodes[0].Configured(id, 50, want)
		f.raft(2 * time.Second)
		for _, n := range f.nodes {
			if _, told := n.toldVoters(); !slices.Equal(n.Status().Voters, want) || !slices.Equal(told, want) {
				t.Errorf("two seconds later %s knows %+v and its host %+v", n.cfg.Name, n.Status().Voters, told)
			}
		}
		for i := range f.nodes {
			if asks := f.net.played(kindWhoAreYou, addrOf(i), ""); len(asks) > 2 {
				t.Errorf("instance %d has put %d questions for it", i, len(asks))
			}
		}
		f.net.tape()
		f.raft(20 * time.Second)
		if asks := f.net.played(kindWhoAreYou, "", ""); len(asks) > 0 {
			t.Errorf("%d questions when all know it", len(asks))
		}
	})
}

// TestOnlyTheLeaderAndVotersAreAskedForANewerConfiguration checks an instance that learns of a
// newer configuration by gossip. It asks only the leader and the known voters, one at a time,
// and does not use addresses and configurations in gossip.
func TestOnlyTheLeaderAndVotersAreAskedForANewerConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		id := f.born(3)
		f.raft(3 * time.Second)
		n := f.nodes[0]
		n.follows(f.nodes[1])
		before := n.Status().Voters
		f.net.tape()
		for _, i := range []int{20, 21, 22} {
			f.net.muffle(addrOf(i), true)
			hear := func(name string, m gossip.Meta) {
				n.in.post(func() { n.seen(gossip.News{Name: name, Meta: m, Here: true}) })
			}
			hear(addrOf(i), gossip.Meta{Instance: nodeidtest.ID(uint64(i)), Group: id, At: 9, Name: "x",
				Addr: addrOf(i)})
			hear("other "+addrOf(i), gossip.Meta{Instance: nodeidtest.ID(uint64(i + 10)), Group: id +
				1, At: 99, Name: "x", Addr: addrOf(i + 10)})
		}
		f.raft(6*pullWithin - time.Second)
		asks := f.net.played(kindWhoAreYou, addrOf(0), "")
		for _, h := range asks {
			if h.to != addrOf(1) && h.to != addrOf(2) {
				t.Errorf("%s was asked", h.to)
			}
		}
		if len(asks) < 4 || len(asks) > 12 || asks[0].to != addrOf(1) {
			t.Errorf("asked %d times in %v, first %s", len(asks), 6*pullWithin, asks[0].to)
		}
		if !slices.Equal(n.Status().Voters, before) {
			t.Errorf("now it knows %+v", n.Status().Voters)
		}
	})
}

// TestARemovedReplicaIsTold checks rule 14: only the leader sends a configuration to the replicas
// that are not in it, until they answer.
func TestARemovedReplicaIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.raft(2 * time.Second)
		g := f.newGroup()
		gone := f.nodes[2]
		g.leader.lead(1, g.see())
		f.net.muffle(gone.cfg.Advertise, true)
		f.net.tape()
		g.config = without(g.config, gone.place().Raft)
		for _, n := range f.nodes[:2] {
			n.Configured(g.id, 9, g.config)
		}
		began := time.Now()
		time.Sleep(askWithin + pushPause/2)
		f.net.muffle(gone.cfg.Advertise, false)
		time.Sleep(pushPause)
		told := f.net.played(kindAnnounce, "", "")
		if len(told) != 2 || told[0].from != addrOf(0) || told[0].to != addrOf(2) ||
			told[0].at.Sub(began) > 10*time.Millisecond {
			t.Fatalf("it was told: %+v", told)
		}
		if c := gone.calls(); strings.Count(c, "removed") != 1 || len(gone.Status().Voters) != 2 {
			t.Errorf("its host was told %q, and it knows %+v", c, gone.Status())
		}
		f.raft(10 * time.Second)
		if n := len(f.net.played(kindAnnounce, "", "")); n != 2 ||
			strings.Contains(f.nodes[0].calls()+f.nodes[1].calls(), "removed") {
			t.Errorf("it was told %d times, or others were", n)
		}
	})
}

// TestTheLeaderTellsAllThatAreAttached checks the case that several changes within a second replace
// all voters. Gossip would be too slow for an instance that then knows no voter.
func TestTheLeaderTellsAllThatAreAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.start(f.config(3, 3))
		f.start(f.config(4, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		for _, n := range f.nodes[1:] {
			n.follows(g.leader)
		}
		g.leader.lead(1, g.see())
		time.Sleep(lead.Pause)
		f.net.tape()
		g.leader.Configured(g.id, 9, with(g.config, 90))
		time.Sleep(20 * time.Millisecond)
		for i, n := range f.nodes {
			told := len(f.net.played(kindAnnounce, addrOf(0), addrOf(i)))
			if member := i >= 3; member != (told == 1) || member && len(n.Status().Voters) != 4 {
				t.Errorf("instance %d was told %d times and knows %d voters", i, told, len(n.Status().Voters))
			}
		}
	})
}

func TestAnAnnouncementIsGivenUp(t *testing.T) {
	for there, want := range map[string]int{"silent": pushTries, "gone": 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			defer f.stop()
			f.born(3)
			f.raft(2 * time.Second)
			g := f.newGroup()
			g.leader.lead(1, g.see())
			raft := f.nodes[2].place().Raft
			if f.nodes[2].stop(); there == "silent" {
				f.net.muffle(addrOf(2), true)
			}
			f.net.tape()
			g.leader.Configured(g.id, 9, without(g.config, raft))
			f.raft(time.Minute)
			if told := f.net.played(kindAnnounce, "", ""); len(told) != want {
				t.Errorf("%s: told %d times, want %d", there, len(told), want)
			}
		})
	}
}

// TestAStrayIsToldOnceASecond checks that a removed peer is sent the configuration once a second,
// however many messages it sends, and that removed peers are forgotten.
func TestAStrayIsToldOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.raft(2 * time.Second)
		g := f.newGroup()
		stray, n := f.nodes[2], f.nodes[1]
		list := without(g.config, stray.place().Raft)
		for _, n := range f.nodes[:2] { // no leader, and gossip does not reach stray
			f.net.cut(n.cfg.Advertise, stray.cfg.Advertise)
			n.Configured(g.id, 9, list)
		}
		f.raft(3 * time.Second)
		if strings.Contains(stray.calls(), "removed") {
			t.Fatal("it has heard already")
		}
		f.net.tape()
		for range 30 {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { n.RemovedPeer(stray.instance, stray.cfg.Advertise) })
			}
			all.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if told := f.net.played(kindAnnounce, "", ""); len(told) != 3 || told[0].from != addrOf(1) {
			t.Errorf("in three seconds it was told %d times", len(told))
		}
		f.net.heal()
		time.Sleep(removedPeerPause)
		n.RemovedPeer(stray.instance, stray.cfg.Advertise)
		time.Sleep(10 * time.Millisecond)
		if strings.Count(stray.calls(), "removed") != 1 {
			t.Errorf("the stray's host was told %q", stray.calls())
		}
		if !slices.ContainsFunc(stray.Members(), func(m Member) bool { return m.Self && m.Raft == 0 }) {
			t.Error("it still says that it has a replica")
		}
		f.net.tape()
		for i := range uint64(1000) {
			n.RemovedPeer(nodeidtest.ID(1<<30+i), addrOf(70))
		}
		time.Sleep(10 * time.Millisecond)
		if told := f.net.played(kindAnnounce, "", ""); len(told) == 0 || len(told) > maxRemovedPeers ||
			len(n.removedPeers.told.told) > maxRemovedPeers {
			t.Errorf("of a thousand strays at once %d were told and %d are remembered", len(told),
				len(n.removedPeers.told.told))
		}
	})
}
