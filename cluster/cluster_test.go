package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (f *fleet) born(n int) uint64 {
	f.t.Helper()
	for i := range n {
		f.start(f.config(i, n))
	}
	f.raft(2 * time.Second)
	return f.oneGroup()
}

func TestThreeStartedWithinASecondAreOneGroupAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		for i := range 3 {
			f.start(f.config(i, 3))
			time.Sleep(400 * time.Millisecond)
		}
		f.raft(600 * time.Millisecond) // one second after the last start
		f.oneGroup()
		for _, n := range f.nodes {
			if got := strings.ReplaceAll(n.calls(), "all bound, ", ""); got != "bound, member" {
				t.Errorf("%s's host was told %q", n.cfg.Name, got)
			}
			if len(n.Status().Voters) != 3 || n.Status().Waiting != "" {
				t.Errorf("%s: %+v", n.cfg.Name, n.Status())
			}
			if _, ok := n.Voter(n.raft); !ok {
				t.Errorf("%s does not find itself in the address book", n.cfg.Name)
			}
		}
		time.Sleep(time.Second)
		if !f.allSeeAll() {
			t.Error("gossip does not show all instances to all")
		}
		if lines := len(f.logs); lines > 3 {
			t.Errorf("a birth without trouble wrote %d log lines, want one per instance:\n%s", lines,
				strings.Join(f.logs, ""))
		}
	})
}

func TestLateAndRestartedInstancesJoinTheRunningGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		group := f.born(3)
		f.raft(30 * time.Second)

		late := f.start(f.config(7, 3))
		f.raft(time.Second)
		if got := f.oneGroup(); got != group {
			t.Errorf("the late instance is in group %x, want %x", got, group)
		}
		if got := late.calls(); got != "member" {
			t.Errorf("the late instance's host was told %q, want only that it is a member", got)
		}
		if len(late.voters) != 3 {
			t.Errorf("the late instance learned %d voters, want 3", len(late.voters))
		}

		f.nodes[0].stop()
		again := f.start(f.config(0, 3))
		f.raft(time.Second)
		if got := f.oneGroup(); got != group || again.calls() != "member" {
			t.Errorf("the restarted instance is in group %x and was told %q, want a plain member of %x", got,
				again.calls(), group)
		}
	})
}

func TestSilentJoinAddressBlocksBirthAndIsNamedAndDelaysNoOther(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.net.muffle("10.0.0.9:7947", true)
		f.net.alien["10.0.0.8:7947"] = true
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join = append(cfg.Join, "10.0.0.9:7947", "10.0.0.8:7947", "10.0.0.7:7947")
			f.start(cfg)
		}
		f.raft(60 * time.Second)
		for _, n := range f.nodes {
			s := n.Status()
			if s.Phase != Newborn || !strings.Contains(s.Waiting, "10.0.0.9:7947") ||
				!strings.HasSuffix(s.Waiting, "If that machine is gone, take it out of Join") {
				t.Errorf("%s is %v and waits for %q, want birth blocked by the silent address, with the way out",
					n.cfg.Name, s.Phase, s.Waiting)
			}
		}
		if n := f.logged("10.0.0.9:7947"); n != 3 {
			t.Errorf("%d log lines about the silent address in a minute, want one per instance\n%s", n,
				strings.Join(f.logs, ""))
		}
		f.net.muffle("10.0.0.9:7947", false) // now the address refuses connections
		f.raft(2500 * time.Millisecond)
		f.oneGroup()
	})
}

func TestSilentPeersDoNotDelayTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		group := f.born(3)
		cfg := f.config(5, 3)
		for i := 100; i < 140; i++ { // far more than may be asked at a time
			f.net.muffle(addrOf(i), true)
			cfg.Join = append([]string{addrOf(i)}, cfg.Join...)
		}
		f.start(cfg)
		f.raft(8 * time.Second)
		if got := f.oneGroup(); got != group {
			t.Error("not in the group")
		}
	})
}

func TestSoloIsAGroupAtOnceAndRefusesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		cfg := f.config(0, 1)
		cfg.Join, cfg.Settings = nil, founding.Settings{Solo: true, Voters: 3, SessionTTL: time.Second}
		solo := f.start(cfg)
		other := f.config(1, 2)
		late := f.start(other)
		f.raft(time.Minute)
		if s := solo.Status(); s.Phase != PhaseMember || len(s.Voters) != 1 ||
			solo.calls() != "bound, all bound, member" {
			t.Errorf("solo: %+v, host told %q", s, solo.calls())
		}
		if s := late.Status(); s.Phase != Newborn || !strings.Contains(s.Waiting, "set Join on all") {
			t.Errorf("the other is %v and waits for %q, want the advice to set Join on all", s.Phase, s.Waiting)
		}
		if f.logged("set Join on all") < 2 {
			t.Error("the logs of both do not say to set Join on all")
		}
	})
}

func TestGroupThatLostItsMajorityHealsByRestartInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		group := f.born(3)
		survivor := f.nodes[2]
		f.nodes[0].stop()
		f.nodes[0].stop()
		f.start(f.config(0, 3))
		f.start(f.config(1, 3))
		f.raft(9 * time.Second)
		if s := survivor.Status(); s.Group != group || !strings.Contains(s.Waiting, "no leader") {
			t.Errorf("before its locks have ended the survivor is in %x and waits for %q", s.Group, s.Waiting)
		}
		f.raft(6 * time.Second)
		if got := f.oneGroup(); got == group {
			t.Error("still the group that lost its majority")
		}
		// If an instance learns that the group is born before it learns that all are bound,
		// AllBound is not called.
		got := strings.ReplaceAll(survivor.calls(), "all bound, ", "")
		if got != "bound, member, restart, bound, member" {
			t.Errorf("the survivor's host was told %q", got)
		}
		if survivor.Status().Instance == survivor.cfg.Key.ID() {
			t.Error("the survivor kept its instance ID")
		}
	})
}

func TestReportsOfAnOldLifeDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		n := f.nodes[0]
		// A call of nextLife drops all earlier reports. Later reports are carried out.
		var got []string
		n.in.postOfLife(func() { got = append(got, "old") })
		n.in.nextLife()
		n.in.postOfLife(func() { got = append(got, "new") })
		n.in.post(func() { got = append(got, "any") })
		synctest.Wait()
		if strings.Join(got, " ") != "new any" {
			t.Errorf("carried out %q, want only what is of the new life or of none", got)
		}
	})
}

func TestNamesAreResolvedAnewAndAFailedLookupBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.mu.Lock() // set before the first lookup, since a missing name would not prevent founding
		f.dns["all.example"] = []string{"10.0.0.1"}
		f.slow["ill.example"] = true
		f.mu.Unlock()
		for i := range 3 {
			cfg := f.config(i, 3)
			cfg.Join = []string{"all.example:7947", "ill.example:7947"}
			f.start(cfg)
		}
		f.raft(10 * time.Second)
		if w := f.nodes[1].Status().Waiting; !strings.Contains(w, "ill.example") ||
			f.nodes[1].Status().Phase != Newborn {
			t.Errorf("waits for %q, want the name that cannot be resolved", w)
		}
		f.mu.Lock()
		f.dns["all.example"] = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
		f.slow["ill.example"] = false // the name does not exist
		f.mu.Unlock()
		f.raft(6 * time.Second)
		f.oneGroup()
	})
}

func TestTwoGroupsWithLeadersAreLoudAndStayApart(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		// A value of Replicas below the size of the fleet is unsafe. Here it leads to a second
		// group.
		for i := range 4 {
			cfg := f.config(i, 4)
			cfg.Settings.Replicas = 2
			cfg.Join = joinOf(4)[i/2*2 : i/2*2+2]
			f.start(cfg)
		}
		for a := range 2 {
			f.net.cut(addrOf(a), addrOf(2))
			f.net.cut(addrOf(a), addrOf(3))
		}
		f.raft(3 * time.Second)
		one, two := f.nodes[0].Status().Group, f.nodes[2].Status().Group
		if one == two || one == 0 || two == 0 {
			t.Fatalf("groups %x and %x, want two", one, two)
		}
		f.net.heal()
		f.net.cut("x", "y")
		f.nodes[0].in.post(func() { f.nodes[0].own.core.find.met(addrOf(2), f.nodes[0].now()) })
		f.raft(rivalAfter / 2)
		if f.logged("two groups") != 0 {
			t.Error("it is said at once: the last words of a group that is gone would be taken for one")
		}
		f.raft(rivalAfter)
		if f.logged("two groups") == 0 {
			t.Error("no instance reported that there are two groups")
		}
		if f.nodes[0].Status().Group != one || f.nodes[2].Status().Group != two {
			t.Error("the groups have merged")
		}
		f.raft(time.Minute)
		if n := f.logged("two groups"); n > 8 {
			t.Errorf("%d lines about it in a minute from 4 instances", n)
		}
		if w := f.nodes[0].Status().Waiting; !strings.Contains(w, "two groups") || !strings.Contains(w, idText(two)) {
			t.Errorf("a minute later Status says %q", w)
		}
	})
}
