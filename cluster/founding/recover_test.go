package founding

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestRecoverConditions(t *testing.T) {
	sees := func(who InstanceInfo) func(c *Core) uint64 {
		return func(c *Core) uint64 { c.tell("b:1", who); return 99 }
	}
	leading := b(Member)
	leading.Leader = true
	for name, tc := range map[string]struct {
		do   func(c *Core) uint64 // returns the group to give up
		want string
	}{
		"a durable member without a leader": {func(*Core) uint64 { return 99 }, ""},
		"one that hears of none":            {sees(b(Member)), ""},
		"one that has heard of one long ago": {func(c *Core) uint64 {
			c.tell("b:1", leading)
			c.now += reachedFor + 1
			return 99
		}, ""},
		"another group": {func(*Core) uint64 { return 98 },
			"belongs to group 0000000000000063, not to 0000000000000062"},
		"no group named": {func(*Core) uint64 { return 0 }, "name the group"},
		"a newborn": {func(c *Core) uint64 {
			c.doomed = "x"
			c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
			return 99
		}, "belongs to no group"},
		"in memory": {func(c *Core) uint64 { c.directory.durable = false; return 99 }, ""},
		"with a leader": {func(c *Core) uint64 { c.Leader(c.now, true); return 99 },
			"not lost: this instance knows its leader"},
		"hears of a leader":       {sees(leading), `not lost: "b" (b:1) knows its leader`},
		"bound":                   {func(c *Core) uint64 { *c = *settled(Bound); return 99 }, "not known to be founded"},
		"still looking for other": {func(c *Core) uint64 { *c = *resumed(Member); return 99 }, "two seconds"},
		"its directory is full": {func(c *Core) uint64 { c.Unsaved(Output{}, "full"); return 99 },
			"cannot be written"},
		"it is not the instance": {func(c *Core) uint64 { c.bar("copied"); return 99 }, "copied"},
	} {
		c := settled(Member)
		group := tc.do(c)
		instance := c.Instance()
		err := c.Recover(c.now, group)
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(60)})
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) || c.Instance() != instance {
				t.Errorf("%s: %v, as %d; want the life kept, and %q", name, err, c.Instance(), tc.want)
			}
			continue
		}
		st := c.State()
		if err != nil || c.Instance() != nodeidtest.ID(60) || c.Phase() != Newborn ||
			!slices.Equal(st.GaveUp, []uint64{99}) || st.Charter != nil || st.Raft != 0 {
			t.Errorf("%s: %v, then it is %v as %d with %+v", name, err, c.Phase(), c.Instance(), st)
		}
		if err := c.Recover(c.now, 99); err != nil {
			t.Errorf("%s: once more: %v", name, err)
		}
	}
	c := settled(Member)
	c.directory.gaveUp = make([]uint64, maxGaveUp)
	err := c.Recover(c.now, 99)
	if gaveUp := c.directory.gaveUp; err != nil || len(gaveUp) != maxGaveUp || gaveUp[maxGaveUp-1] != 99 {
		t.Errorf("%v, it remembers %v", err, c.directory.gaveUp)
	}
}

// An instance that gave up a group and joined it later must not cause others to leave it.
func TestGivenUpAndAliveAfterAll(t *testing.T) {
	c := settled(Member)
	if err := c.Recover(c.now, 99); err != nil {
		t.Fatal(err)
	}
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(60)})
	who := b(Member)
	who.Leader, who.Voters, who.At = true, configuration(), 12
	c.tell("b:1", who)
	c.Tick(c.now, c.wall, Random{})
	if c.Group() != 99 || c.At() != 12 || c.Raft() != 0 || c.State().GaveUp != nil {
		t.Errorf("it belongs to %d, and has given up %v", c.Group(), c.State().GaveUp)
	}
}

// Operators have given up the group of a member. The member leaves it if no voter of this group
// answers and an instance at a Join address belongs to the replacing group. Otherwise it stays,
// because any holder of the secret can claim that the group was given up.
func TestSuperseded(t *testing.T) {
	after := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Phase: Member, Group: 70, At: 3,
		Leader:     true,
		Supersedes: []uint64{98, 99}}
	for name, tc := range map[string]struct {
		phase Phase
		spoil func(c *Core, who *InstanceInfo)
		want  Phase
	}{
		"it was given up":               {Member, func(*Core, *InstanceInfo) {}, Newborn},
		"while it was bound":            {Bound, func(*Core, *InstanceInfo) {}, Newborn},
		"another was given up":          {Member, func(_ *Core, who *InstanceInfo) { who.Supersedes = []uint64{98} }, Member},
		"the new one has no leader yet": {Member, func(_ *Core, who *InstanceInfo) { who.Leader = false }, Member},
		"its group has a leader":        {Member, func(c *Core, _ *InstanceInfo) { c.Leader(c.now, true) }, Member},
		"the instance that gave it up is newborn": {Member, func(_ *Core, who *InstanceInfo) {
			who.Phase, who.Group,
				who.Leader = Newborn, 0, false
		}, Member},
		"a voter has answered":  {Member, func(c *Core, _ *InstanceInfo) { c.leading.guided = c.now }, Member},
		"Join does not name it": {Member, func(c *Core, _ *InstanceInfo) { c.Places(nil, []string{"b:1"}) }, Member},
	} {
		c, who := settled(tc.phase), after
		c.now += simTTL + time.Second
		c.Places([]Entry{{Name: "b", Addrs: []string{"b:1"}, Resolved: c.now}}, nil)
		tc.spoil(c, &who)
		c.tell("b:1", who)
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(60)})
		if c.Phase() != tc.want {
			t.Errorf("%s: it is %v, want %v", name, c.Phase(), tc.want)
		}
	}
}

// Two of three founders lose their directories, and the third gives the group up. All three then
// take part in founding the next group. A fourth instance was out of reach and has kept the old
// group. It joins the new group when it returns.
func TestRecovery(t *testing.T) {
	w := newWorld(11, founders(5, "n0", "n1", "n2")...).durably()
	w.trace = true
	for _, s := range w.slots {
		s.start()
	}
	fail := func(text string) {
		t.Helper()
		t.Fatalf("%s\n%v\n%s\n%s", text, w.faults, strings.Join(w.log, "\n"), w.describe())
	}
	if !w.run(10*time.Second, w.settled) {
		fail("not founded")
	}
	old := w.order[0].charter.Group
	w.named = nameAll // the founders have to ask the fourth instance
	for _, s := range w.slots[1:3] {
		s.stop()
		s.lose()
	}
	w.slots[4].stop()
	w.run(5*time.Second, nil) // otherwise newborns join the remaining members
	for _, s := range w.slots[1:3] {
		s.start()
	}
	w.run(time.Minute, nil)
	keeper, plain := w.slots[0], w.slots[3]
	if len(w.order) != 1 || keeper.core.Group() != old || plain.core.Group() != old {
		fail("a directory was given up without being told")
	}
	if text := w.slots[1].core.Waiting(); !strings.Contains(text, "with Recover on all instances of it that are left") {
		fail("the newborns wait for " + text)
	}
	floor := keeper.wall() + 300
	for _, s := range []*slot{keeper, plain} {
		s.core.Floor(floor)
		s.floor = floor
	}
	w.givenUp[old] = true
	if err := keeper.core.Recover(w.now, old); err != nil {
		fail(err.Error())
	}
	keeper.tick()
	if keeper.core.Phase() != Newborn {
		fail("it was not given up")
	}
	w.run(20*time.Second, nil)
	if len(w.order) != 1 {
		fail("a group is founded while an instance in reach keeps the old one")
	}
	if text := keeper.core.Waiting(); !strings.Contains(text,
		"give it up there too, with Recover, or stop that instance") {
		fail("it waits for " + text)
	}
	plain.stop()
	if !w.run(20*time.Second, func() bool { return len(w.order) == 2 }) {
		fail("nothing was founded")
	}
	ch := w.order[1].charter
	if !slices.Equal(ch.Supersedes, []uint64{old}) || ch.FoundedUnixMS <= floor {
		fail("the new charter says nothing of the old group")
	}
	for _, s := range w.slots[3:] {
		s.start()
	}
	if !w.run(20*time.Second, w.settled) || plain.core.Group() != ch.Group || len(w.faults) > 0 {
		fail("the instances that were away do not follow")
	}
	who := plain.core.answer(question{Instance: nodeidtest.ID(1)})
	if !slices.Equal(who.Supersedes, []uint64{old}) {
		fail("an instance that has followed does not tell which groups its group replaced")
	}
}

// No group may be founded below the floor of a listed instance. If the clocks cannot reach the
// floor, the text of Waiting says so.
func TestFloor(t *testing.T) {
	other := func(c *Core, floor int64) {
		c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 3,
			WallUnixMS: c.wall, FloorUnixMS: floor, Supersedes: []uint64{3, 8}})
	}
	propose := func(c *Core) *Charter {
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50), Group: 60, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
		return c.bond.charter
	}
	const slackMS = 1000 // half of simTTL
	for _, tc := range []struct{ own, others, want int64 }{
		{0, 0, 1_000_000}, {999_999, 0, 1_000_000}, {1_000_000, 0, 1_000_001}, {0, 1_000_500, 1_000_501},
		{1_000_000 + slackMS - 1, 0, 1_000_000 + slackMS}, {0, 1_000_000 + slackMS, 0}, {1_000_000 + slackMS, 0, 0},
		{maxWall + 9, 0, 0},
	} {
		c, _ := pair()
		c.directory.gaveUp = []uint64{9, 3}
		c.Floor(tc.own)
		c.Floor(tc.own - 50)
		other(c, tc.others)
		ch := propose(c)
		switch {
		case tc.want == 0 && (ch != nil || !strings.Contains(c.Waiting(), "tokens of an earlier group") ||
			!strings.Contains(c.Waiting(), "set the clocks right")):
			t.Errorf("floors %d and %d: %+v, and it waits for %q", tc.own, tc.others, ch, c.Waiting())
		case tc.want != 0 && (ch == nil || ch.FoundedUnixMS != tc.want ||
			!slices.Equal(ch.Supersedes, []uint64{3, 8, 9})):
			t.Errorf("floors %d and %d: %+v, want it founded at %d", tc.own, tc.others, ch, tc.want)
		}
	}
	c, ch := pair()
	c.Floor(ch.FoundedUnixMS)
	if v, _ := c.propose(ch); v.Refusal != RefusedClock || !strings.Contains(v.Detail, "not later") {
		t.Errorf("a founding time that is no higher than what was seen here is answered with %+v", v)
	}
	solo := newborn(Settings{Solo: true, Voters: 1})
	solo.Floor(2_000_000)
	if ch := propose(solo); ch == nil || ch.FoundedUnixMS != 2_000_001 {
		t.Errorf("alone it founds %+v", ch)
	}
	c.Floor(2_000_000)
	c.doomed = "over"
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(51)})
	if who := c.answer(question{}); who.FloorUnixMS != 2_000_000 || c.State().FloorUnixMS != 2_000_000 {
		t.Errorf("after a restart in place the floor is %d", who.FloorUnixMS)
	}
	c.directory.durable = true
	if n, _ := c.startAgain(t); n.directory.floor != 2_000_000 {
		t.Errorf("after a start with the directory the floor is %d", n.directory.floor)
	}
}

// Only this instance cannot reach the leader. The text of Waiting must not claim that the group
// has no leader.
func TestCutFromTheLeader(t *testing.T) {
	leading := b(Member)
	leading.Leader = true
	for _, durable := range []bool{true, false} {
		c := settled(Member)
		c.directory.durable = durable
		c.leading.since = c.now
		c.tell("b:1", leading)
		if text := c.Waiting(); !strings.Contains(text, "has a leader, and this instance is connecting to it") {
			t.Errorf("directory: %v: at first it waits for %q", durable, text)
		}
		c.now += connectFor
		c.tell("b:1", leading)
		if text := c.Waiting(); !strings.Contains(text,
			`has a leader, which this instance does not reach, but "b" (b:1) knows its leader`) {
			t.Errorf("directory: %v: it waits for %q", durable, text)
		}
		c.now += reachedFor + 1
		if text := c.Waiting(); !strings.Contains(text, "has no leader") {
			t.Errorf("directory: %v: later it waits for %q", durable, text)
		}
	}
}
