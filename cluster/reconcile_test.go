package cluster

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func kinds(steps []carry) (list []voters.Kind) {
	for _, c := range steps {
		list = append(list, c.step.Kind)
	}
	return list
}

// TestADeadVoterIsReplaced checks a whole replacement. A voter is killed and its address refuses
// connections. The leader asks another instance for a replica, adds and promotes it, and all
// instances receive the new configuration.
func TestADeadVoterIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		late, other := f.start(f.config(3, 3)), f.start(f.config(4, 3))
		f.raft(2 * time.Second)
		g := f.newGroup()
		g.run(time.Second)
		if n := len(g.leader.carriedOut()); n != 0 || f.logged("changing the voters") != 0 {
			t.Fatalf("%d steps while all is well", n)
		}
		dead := f.nodes[2].place()
		f.nodes[2].stop()
		for _, n := range f.nodes {
			if n != g.leader {
				n.follows(g.leader)
			}
		}
		g.run(2 * time.Second)
		steps := g.leader.carriedOut()
		if !slices.Equal(kinds(steps), []voters.Kind{voters.AddLearner, voters.Change}) {
			t.Fatalf("the steps were %v; %+v", kinds(steps), g.leader.view.Load().standing)
		}
		heir := late
		if strings.Contains(other.calls(), "prepared") {
			heir = other
		}
		want := Voter{Raft: heir.place().Raft, Instance: heir.instance, Addr: heir.cfg.Advertise, Life: 1}
		if add := steps[0]; add.about != want || add.step.ID != want.Raft || want.Raft == 0 || add.term != 1 {
			t.Errorf("added %+v, want %+v", add, want)
		}
		if change := steps[1].step; !slices.Equal(change.Promote, []uint64{want.Raft}) ||
			!slices.Equal(change.Remove, []uint64{dead.Raft}) {
			t.Errorf("the change was %+v", change)
		}
		if n := strings.Count(late.calls()+other.calls(), "prepared"); n != 1 {
			t.Errorf("%d instances were asked, or one more than once", n)
		}
		g.run(5 * pullWithin) // a plain member may first ask the dead voter
		for _, n := range f.nodes {
			v, ok := n.Voter(want.Raft)
			_, old := n.Voter(dead.Raft)
			if !ok || v != want || old || len(n.Status().Voters) != 3 {
				t.Errorf("%s knows %+v", n.cfg.Name, n.Status().Voters)
			}
			if times, told := n.toldVoters(); times == 0 || !slices.Equal(told, n.Status().Voters) {
				t.Errorf("%s's host was told %d times, last of %+v", n.cfg.Name, times, told)
			}
		}
		g.run(10 * time.Second)
		if n := f.logged("changing the voters"); n != 2 || len(g.leader.carriedOut()) != 2 {
			t.Errorf("%d lines for two changes, and these steps: %+v", n, g.leader.carriedOut())
		}
	})
}

// alone returns the first node and the facts of a group in which this node is the only voter.
// The only candidate is the given instance at addr.
func (f *fleet) alone(candidate nodeid.ID, addr string) (*node, voters.Facts) {
	n := f.nodes[0]
	self := n.place()
	return n, voters.Facts{
		Self: self.Raft, Settings: voters.Settings{Voters: 3}, Config: voters.Config{Voters: []uint64{self.Raft}},
		Replicas: []voters.Replica{{ID: self.Raft, Instance: self.Instance, Addr: self.Addr, Active: true,
			CaughtUp: true, Full: true, Settled: true}},
		Registered: []voters.Registered{n.registered(), {
			Instance: candidate, Name: "x", Addr: addr, Order: 1 << 40, Session: true, Reachable: true,
		}, {Instance: candidate, Name: "x", Addr: "10.9.9.9:1", Order: 1, Session: true, Reachable: true}},
	}
}

// TestAllCandidatesAreAskedSoon checks that the needed instances are asked in successive
// evaluations, without waiting for an answer.
func TestAllCandidatesAreAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		n, facts := f.alone(nodeidtest.ID(77), addrOf(50))
		facts.Registered = append(facts.Registered, voters.Registered{
			Instance: nodeidtest.ID(78), Name: "y", Addr: addrOf(51), Order: 2, Session: true, Reachable: true,
		})
		f.net.muffle(addrOf(50), true)
		f.net.muffle(addrOf(51), true)
		f.net.tape()
		n.lead(1, facts)
		time.Sleep(2 * lead.Pause)
		if asks := f.net.played(kindPrepare, addrOf(0), ""); len(asks) != 2 || asks[0].to == asks[1].to {
			t.Errorf("%d were asked: %+v", len(asks), asks)
		}
	})
}

func TestAStepIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		n, facts := f.alone(nodeidtest.ID(77), addrOf(50))
		learner := voters.Replica{ID: 9, Instance: nodeidtest.ID(77), Addr: addrOf(50), Linked: true}
		two := voters.Replica{ID: 8, Instance: nodeidtest.ID(76), Addr: addrOf(51), Linked: true, Active: true,
			CaughtUp: true, Full: true, Settled: true}
		facts.Config.Learners, facts.Replicas = []uint64{8, 9}, append(facts.Replicas, two, learner)
		facts.Registered = append(facts.Registered, voters.Registered{Instance: nodeidtest.ID(76), Name: "y",
			Addr: addrOf(51), Session: true, Reachable: true})
		n.lead(1, facts)
		if len(n.carriedOut()) != 0 {
			t.Fatalf("steps at the begin: %+v", n.carriedOut())
		}
		next := func(change func(r *voters.Replica)) voters.Facts {
			again := facts
			again.Replicas = slices.Clone(facts.Replicas)
			change(&again.Replicas[2])
			return again
		}
		time.Sleep(lead.Pause)
		ready := next(func(r *voters.Replica) { r.Active, r.CaughtUp, r.Settled = true, true, true })
		n.lead(1, ready)
		began := time.Now()
		check := func(want int, what string) {
			t.Helper()
			if got := n.carriedOut(); len(got) != want || got[want-1].step.Kind != voters.Change {
				t.Fatalf("%s: %d steps: %+v", what, len(got), got)
			}
		}
		check(1, "at once")
		for time.Since(began) < time.Second-lead.Pause {
			time.Sleep(20 * time.Millisecond)
			later := ready
			later.Replicas = slices.Clone(ready.Replicas)
			later.Replicas[1].SilentFor, later.Replicas[1].Full = time.Since(began), !later.Replicas[1].Full
			n.lead(1, later)
		}
		check(1, "though the log is slow")
		time.Sleep(3 * lead.Pause)
		check(2, "as nothing came of it in a second")
		if f.logged("changing the voters") != 1 {
			t.Error("a step that is tried again has another line in the log")
		}
		moved := ready
		moved.Registered = append(slices.Clone(ready.Registered), f.nodes[1].registered())
		n.lead(1, moved)
		time.Sleep(lead.Pause)
		check(3, "as the facts have changed")
		n.lead(2, moved)
		time.Sleep(lead.Pause)
		check(4, "in another term")
		if got := n.carriedOut()[3]; got.term != 2 || f.logged("changing the voters") != 2 {
			t.Errorf("a new term: %+v, %d lines", got, f.logged("changing the voters"))
		}
		n.lead(0, voters.Facts{})
		time.Sleep(time.Minute)
		check(4, "without the lead")
		if _, leads := n.Report(); leads {
			t.Error("there is a report without the lead")
		}
	})
}

func TestLooksAreAtMostOneIn50ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		g := f.newGroup()
		time.Sleep(time.Minute)
		n := g.leader
		if len(n.looks(time.Time{})) != 0 {
			t.Error("it looks though no change was reported")
		}
		for range 200 {
			f.nodes[1].Look() // this node does not lead
			time.Sleep(time.Millisecond)
		}
		if looks := len(f.nodes[1].looks(time.Time{})); looks < 4 || looks > 5 {
			t.Errorf("%d looks in 200 ms without the lead", looks)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		n.lead(1, g.see())
		if looks := n.looks(began); len(looks) != 1 || !looks[0].Equal(began) {
			t.Fatalf("after a long pause it looks at %v, want at once, at %v", looks, began)
		}
		if r, leads := n.Report(); !leads || !r.Quorum || r.Target != 3 {
			t.Errorf("the report is %+v, %v", r, leads)
		}
		for range 1000 {
			n.Look()
			time.Sleep(time.Millisecond)
		}
		looks := n.looks(began)
		for i, at := range looks[1:] {
			if at.Sub(looks[i]) < lead.Pause {
				t.Fatalf("%v between two looks", at.Sub(looks[i]))
			}
		}
		if len(looks) < 18 || len(looks) > 21 {
			t.Errorf("%d looks in a second in which something changed all the time", len(looks))
		}
		began = time.Now().Add(lead.Pause)
		time.Sleep(time.Minute)
		if n := len(n.looks(began)); n < 55 || n > 61 {
			t.Errorf("%d looks in a minute of rest, want one each second", n)
		}
		if f.logged("voters") != f.logged("joined")+f.logged("is founded") {
			t.Errorf("log lines while nothing changes:\n%s", strings.Join(f.logs, ""))
		}
	})
}

func TestNoVoterIsChangedBeforeTheBirth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for i := range 3 {
			f.start(f.config(i, 3))
		}
		time.Sleep(2 * time.Second) // no node applies Born
		n := f.nodes[0]
		if n.Status().Phase != Bound {
			t.Fatalf("it is %v", n.Status().Phase)
		}
		n.lead(1, voters.Facts{})
		time.Sleep(time.Second)
		if len(n.looks(time.Time{})) != 0 {
			t.Error("the leader of a group that is not born looks after its voters")
		}
		f.raft(200 * time.Millisecond)
		f.oneGroup()
		if len(n.looks(time.Time{})) == 0 {
			t.Error("what was to be looked at before the birth is forgotten")
		}
	})
}
