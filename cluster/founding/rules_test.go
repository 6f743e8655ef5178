package founding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func replicas(n, replicas int) []Settings {
	return slices.Repeat([]Settings{{Replicas: replicas, Voters: 3, SessionTTL: simTTL, Grace: simTTL}}, n)
}

func founders(n int, names ...string) []Settings {
	return slices.Repeat([]Settings{{Founders: names, Voters: 3, SessionTTL: simTTL, Grace: simTTL}}, n)
}

func startAll(t *testing.T, settings []Settings) *world {
	w := newWorld(42, settings...)
	w.trace = true
	for _, s := range w.slots {
		s.start()
	}
	t.Cleanup(func() {
		for _, f := range w.faults {
			t.Error(f)
		}
		if t.Failed() {
			t.Logf("\n%s\n%s", strings.Join(w.log, "\n"), w.describe())
		}
	})
	return w
}

func (w *world) split(left ...int) {
	for _, a := range w.slots {
		for _, b := range w.slots {
			if slices.Contains(left, a.id) != slices.Contains(left, b.id) {
				w.cut[[2]int{a.id, b.id}] = true
			}
		}
	}
}

func TestThreeFoundOneGroupAtOnce(t *testing.T) {
	w := startAll(t, replicas(3, 3))
	if !w.run(700*time.Millisecond, w.settled) {
		t.Error("three instances that reach each other are not one group in 0.7 s")
	}
	if len(w.order) != 1 || len(w.order[0].charter.Voters) != 3 {
		t.Errorf("%d groups", len(w.order))
	}
}

// Founding completes although instance c dies before or just after its answer.
func TestA1CrashDuringBirthLeavesNoInstanceStuck(t *testing.T) {
	for after := range 12 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			w := startAll(t, replicas(3, 3))
			w.run(5*time.Second, func() bool { return len(w.groups) > 0 })
			w.run(time.Duration(after)*2*time.Millisecond, nil)
			w.slots[2].crash()
			w.run(20*time.Second, nil)
			w.slots[2].start()
			if !w.run(30*time.Second, w.settled) {
				t.Error("half a minute after the crashed instance is back, not all are one group")
			}
		})
	}
}

// Each proposer is bound to its own charter, so neither group can be founded. Both must give up,
// and then found one group.
func TestA1TwoProposersAtOnce(t *testing.T) {
	w := startAll(t, replicas(3, 3))
	ready := func() bool {
		return !slices.ContainsFunc(w.slots, func(s *slot) bool {
			list, _ := s.core.roll().candidates()
			return len(list) < 3
		})
	}
	if !w.run(5*time.Second, ready) {
		t.Fatal("not ready")
	}
	for _, s := range w.slots[:2] {
		list, _ := s.core.roll().candidates()
		ch := s.core.roll().charterFor(list, w.random())
		s.core.bind(&ch)
		s.core.attempt.offers = make([]offer, len(ch.List))
		s.tick()
	}
	if !w.run(20*time.Second, w.settled) || len(w.order) != 1 {
		t.Errorf("twenty seconds later %d groups are born, want one with all instances", len(w.order))
	}
	if len(w.groups) < 3 {
		t.Errorf("%d charters were written, want the two and one that was born", len(w.groups))
	}
}

// If the setting Replicas is below the number of instances, a partition can lead to two groups.
func TestA2ReplicasBelowTheFleetIsNotClaimed(t *testing.T) {
	for _, n := range []int{3, 6} {
		w := newWorld(7, replicas(6, n)...)
		w.split(0, 1, 2)
		// In each half, Join resolves only to the instances of that half. A headless service behaves
		// like this.
		for _, s := range w.slots {
			for _, o := range w.slots {
				if (s.id < 3) != (o.id < 3) {
					w.cut[[2]int{s.id, o.id}] = true
				}
			}
			s.near = true
			s.start()
		}
		w.run(10*time.Second, nil)
		switch {
		case n == 6 && (len(w.order) != 0 || len(w.faults) != 0):
			t.Errorf("Replicas 6 of 6: %d groups during the cut, %v", len(w.order), w.faults)
		case n == 3 && len(w.faults) == 0:
			t.Error("Replicas 3 of 6 has not made two groups: the documentation warns of something that cannot happen")
		}
		if n == 6 {
			clear(w.cut)
			for _, s := range w.slots {
				s.near = false
			}
			if !w.run(30*time.Second, w.settled) {
				t.Error("not one group after the cut")
			}
		}
	}
}

func TestS3OnlyFoundersFound(t *testing.T) {
	w := startAll(t, founders(6, "n0", "n1", "n2"))
	for _, s := range w.slots[:3] {
		s.crash()
	}
	w.run(20*time.Second, nil)
	if len(w.groups) != 0 {
		t.Fatal("others than founders have written a charter")
	}
	for _, s := range w.slots[:3] {
		s.start()
	}
	if !w.run(5*time.Second, w.settled) {
		t.Fatal("not one group")
	}
	for _, l := range w.order[0].charter.List {
		if !slices.Contains([]string{"n0", "n1", "n2"}, l.Name) {
			t.Errorf("%s is listed", l.Name)
		}
	}
	// All founders restart, so the old group has ended. The other instances continue, one of them
	// behind a partition.
	w.split(5)
	for _, s := range w.slots[:3] {
		s.crash()
		s.start()
	}
	w.run(20*time.Second, nil)
	clear(w.cut)
	if !w.run(20*time.Second, w.settled) || len(w.order) != 2 {
		t.Errorf("%d groups were born, want the second to have all instances", len(w.order))
	}
}

func TestMemberOfALostGroupJoinsTheNextWithoutAll(t *testing.T) {
	w := startAll(t, founders(4, "n0", "n1", "n2"))
	if !w.run(3*time.Second, w.settled) {
		t.Fatal("not one group")
	}
	w.split(3)
	for _, s := range w.slots[:3] {
		s.crash()
		s.start()
	}
	w.run(3*time.Second, nil)
	w.slots[0].crash()
	w.silent[w.slots[0].addr] = true
	clear(w.cut)
	w.run(10*time.Second, nil)
	if got, want := w.slots[3].core.Group(), w.slots[1].core.Group(); len(w.order) != 2 || got != want {
		t.Errorf("%d groups were born, and the member is in %x instead of %x", len(w.order), got, want)
	}
}

// Two of three voters have died, and may return at new addresses.
func TestL1RestartInPlaceHeals(t *testing.T) {
	for name, settings := range map[string][]Settings{"replicas": replicas(3, 3),
		"founders": founders(5, "n0", "n1", "n2")} {
		t.Run(name, func(t *testing.T) {
			w := startAll(t, settings)
			if !w.run(3*time.Second, w.settled) {
				t.Fatal("not one group")
			}
			for _, s := range w.slots[:2] {
				s.crash()
				s.move()
				s.start()
			}
			w.run(simTTL-500*time.Millisecond, nil)
			if w.slots[2].core.Instance() != w.order[0].charter.Voters[0].Instance &&
				w.slots[2].core.Phase() != Member {
				t.Error("the survivor left its group before its locks had ended")
			}
			within := 15 * time.Second
			// with Replicas, new addresses do not show that the old voters have ended
			if name == "replicas" {
				within += silentOver
			}
			if !w.run(within, w.settled) || len(w.order) != 2 {
				t.Errorf("%d groups were born, want a second with all instances", len(w.order))
			}
		})
	}
}

// The instances that a member cannot reach may have a majority of the group.
func TestMemberKeepsItsGroupUnlessItReachesAll(t *testing.T) {
	w := startAll(t, replicas(3, 3))
	w.run(3*time.Second, w.settled)
	group := w.slots[0].core.Group()
	w.split(0)
	w.run(time.Minute, nil)
	if w.slots[0].core.Group() != group {
		t.Error("a member that was cut off gave up its group")
	}
	if text := w.slots[0].core.Waiting(); !strings.Contains(text, "no leader") ||
		!strings.Contains(text, w.slots[1].addr) {
		t.Errorf("it waits for %q, want the voters that it misses", text)
	}
	clear(w.cut)
	if !w.run(5*time.Second, w.settled) || len(w.order) != 1 {
		t.Error("the group did not go on as it was")
	}
}

func TestNewbornAdoptsARunningGroup(t *testing.T) {
	w := startAll(t, replicas(3, 3))
	w.run(3*time.Second, w.settled)
	w.slots[0].crash()
	w.slots[0].settings.SessionTTL = 3 * time.Second
	w.slots[0].start()
	if !w.run(500*time.Millisecond, w.settled) || len(w.order) != 1 {
		t.Error("the restarted instance did not join at once")
	}
	if !slices.ContainsFunc(w.log, func(l string) bool {
		return strings.Contains(l, "SessionTTL is 3s on this instance and ")
	}) {
		t.Error("no instance was warned that the settings differ")
	}
}

func TestNewbornBetweenTwoGroupsJoinsNeither(t *testing.T) {
	c := newborn(replicas(1, 3)[0])
	c.Places([]Entry{{Name: "x", Addrs: []string{"b:1", "c:1"}, Resolved: always}}, nil)
	for i, addr := range []string{"b:1", "c:1"} {
		c.tell(addr, InstanceInfo{
			Instance: nodeidtest.ID(uint64(i + 2)), Name: addr, Addr: addr, Phase: Member, Leader: true,
			Group:  uint64(i + 70),
			Voters: []Voter{{Raft: 1, Instance: nodeidtest.ID(uint64(i + 2)), Addr: addr, Life: 1}},
		})
	}
	c.Tick(c.now, 0, Random{})
	if c.Phase() != Newborn || !strings.Contains(c.Waiting(), "0000000000000046 and 0000000000000047") {
		t.Errorf("it is %v and waits for %q", c.Phase(), c.Waiting())
	}
}

func TestSilenceBlocksAndIsNamedWithTheWayOut(t *testing.T) {
	for name, c := range map[string]struct {
		settings []Settings
		advice   string
	}{
		"replicas":    {replicas(3, 3), "If that machine is gone, take it out of Join"},
		"one founder": {founders(3, "n0"), "take it out of Join and, if it is a founder, out of Founders"},
		"founders": {founders(3, "n0", "n1", "n2", "n3"),
			"take it out of Join and, if it is a founder, out of Founders"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(5, c.settings...)
			w.extraJoin, w.silent["10.9.9.9:1"] = []string{"10.9.9.9:1"}, true
			for _, s := range w.slots {
				s.start()
			}
			w.run(time.Minute, nil)
			if len(w.groups) != 0 {
				t.Error("a charter was written in spite of the silence")
			}
			for _, s := range w.slots {
				if text := s.core.Waiting(); !strings.Contains(text, "10.9.9.9:1") ||
					!strings.Contains(text, c.advice) {
					t.Errorf("%s waits for %q", s.name, text)
				}
			}
			if len(c.settings[0].Founders) > 1 {
				return // founder n3 is still missing, so founding stays blocked
			}
			w.silent["10.9.9.9:1"] = false // nothing listens there any more
			if !w.run(3*time.Second, w.settled) {
				t.Error("birth is blocked by an address that refuses")
			}
		})
	}
}

func TestSettingsThatDifferAreNamed(t *testing.T) {
	for _, which := range []string{"Replicas", "Voters", "SessionTTL", "Grace"} {
		settings := replicas(3, 3)
		switch which {
		case "Replicas":
			settings[1].Replicas = 2
		case "Voters":
			settings[1].Voters = 1
		case "SessionTTL":
			settings[1].SessionTTL++
		case "Grace":
			settings[1].Grace++
		}
		w := startAll(t, settings)
		w.run(20*time.Second, nil)
		if len(w.order) != 0 {
			t.Errorf("%s: a group was born", which)
		}
		if text := w.slots[0].core.Waiting() + w.slots[2].core.Waiting(); !strings.Contains(text, `"n1"`) ||
			!strings.Contains(text, which) {
			t.Errorf("%s: waits for %q", which, text)
		}
	}
}

func TestClocksThatDisagreeBlockAndAreNamed(t *testing.T) {
	w := newWorld(9, replicas(3, 3)...)
	w.slots[1].skew = -3 * time.Second // the clocks may differ by 1 s, half the grace
	for _, s := range w.slots {
		s.start()
	}
	w.run(10*time.Second, nil)
	if len(w.order) != 0 {
		t.Error("a group was born")
	}
	if text := w.slots[0].core.Waiting(); !strings.Contains(text, `clock of "n1"`) {
		t.Errorf("waits for %q", text)
	}
	w.slots[1].skew = 0
	if !w.run(5*time.Second, w.settled) {
		t.Error("not one group after the clock was set right")
	}
}

func TestTwoFoundersOfOneNameAreNamed(t *testing.T) {
	w := newWorld(11, founders(3, "n0", "n1")...)
	w.slots[2].name = "n1"
	for _, s := range w.slots {
		s.start()
	}
	w.run(10*time.Second, nil)
	if text := w.slots[0].core.Waiting(); len(w.order) != 0 || !strings.Contains(text,
		`are both called "n1": give each instance a Name of its own`) {
		t.Errorf("%d groups, waits for %q", len(w.order), text)
	}
}

func TestOneNameTwiceFoundsNothing(t *testing.T) {
	w := newWorld(42, replicas(3, 3)...)
	w.slots[2].name = w.slots[1].name
	for _, s := range w.slots {
		s.start()
	}
	w.run(20*time.Second, nil)
	for _, s := range w.slots {
		if text := s.core.Waiting(); len(w.order) != 0 ||
			!strings.Contains(text, `are both called "n1": give each instance a Name of its own`) {
			t.Errorf("%d groups; %s waits: %s", len(w.order), s.name, text)
		}
	}
}

func TestSoloIsBornAloneAndRefuses(t *testing.T) {
	settings := replicas(2, 2)
	settings[0] = Settings{Solo: true, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	w := startAll(t, settings)
	w.run(20*time.Second, nil)
	if w.slots[0].core.Phase() != Member || w.order[0].charter.Settings.Grace != 0 {
		t.Error("the solo instance is no member of a group without a grace")
	}
	if text := w.slots[1].core.Waiting(); w.slots[1].core.Phase() != Newborn ||
		!strings.Contains(text, "set Join on all") {
		t.Errorf("the other waits for %q", text)
	}
}
