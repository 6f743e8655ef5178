package founding

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// orphan returns n1 as a member of a group with these voters. The group has had no leader for
// longer than its largest TTL.
func orphan(settings Settings, voters ...Voter) *Core {
	c := newborn(settings)
	c.self.instance, c.self.name, c.self.addr = nodeidtest.ID(1), "n1", "n1:1"
	var addrs []string
	for i := 2; i <= 5; i++ {
		addrs = append(addrs, "n"+string(rune('0'+i))+":1")
	}
	c.Places([]Entry{{Name: "x", Addrs: addrs, Resolved: always}}, nil)
	c.bond.rulesOf = settings
	for i := 1; i <= 5; i++ {
		c.call(nodeidtest.ID(uint64(i)), "n"+string(rune('0'+i)))
	}
	c.replica.raft = 1
	c.belong(9, 7, voters, "")
	c.Applied(c.now, 9, Configuration{At: 7, Voters: voters})
	c.Leader(c.now, true)
	c.Leader(c.now, false)
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
	c.now += settings.SessionTTL + time.Second
	return c
}

// five returns the first n of the voters n1 to n5, which are founders.
func five(n int) []Voter {
	var voters []Voter
	for i := 1; i <= n; i++ {
		voters = append(voters, Voter{Raft: uint64(i), Instance: nodeidtest.ID(uint64(i)), Addr: "n" +
			string(rune('0'+i)) + ":1", Life: 1})
	}
	return voters
}

// life returns an answer of instance i, which runs the replica with the given raft ID. If raft is
// 0, it returns an answer of the newborn successor of i.
func life(i, raft uint64) InstanceInfo {
	name := "n" + string(rune('0'+i))
	if raft == 0 {
		return InstanceInfo{Instance: nodeidtest.ID(100 + i), Name: name, Addr: name + ":1", Standing: &Standing{}}
	}
	return InstanceInfo{Instance: nodeidtest.ID(i), Name: name, Addr: name + ":1", Phase: Member, Group: 9,
		Standing: &Standing{Raft: raft}}
}

func (c *Core) ends() bool {
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
	return c.Phase() == Newborn
}

func names3(n int) Settings {
	return Settings{Founders: []string{"n1", "n2", "n3", "n4", "n5"}[:n], Voters: 5, SessionTTL: 2 * time.Second}
}

func TestMajorityAnswersAndIsNotGivenUp(t *testing.T) {
	c := orphan(names3(3), five(3)...)
	c.tell("n2:1", life(2, 2))
	c.tell("n3:1", life(3, 0))
	if c.ends() {
		t.Error("a group of which two of three replicas run was given up")
	}
	if text := c.Waiting(); !strings.Contains(text, "2 of 3 replicas answer") ||
		!strings.Contains(text, `"n3" (n3:1) no longer exists`) {
		t.Errorf("it waits for %q", text)
	}
	c.now += electedWithin
	c.tell("n2:1", life(2, 2))
	c.tell("n3:1", life(3, 0))
	if c.ends(); !strings.Contains(c.Waiting(), "check the network between them") {
		t.Errorf("it waits for %q", c.Waiting())
	}
}

// Answers must not count if they arrived before the largest TTL had passed, because the answering
// instances may have been cut off since then.
func TestOldAnswersDoNotCount(t *testing.T) {
	c := orphan(names3(3), five(3)...)
	tell := func() {
		c.tell("n2:1", life(2, 0))
		c.tell("n3:1", life(3, 0))
	}
	c.now -= 2 * time.Second
	tell()
	if c.now += 2 * time.Second; c.ends() {
		t.Error("a group was given up on answers from before, when those that a new one needs may be out of reach")
	}
	if tell(); !c.ends() {
		t.Errorf("a dead group is kept: %s", c.Waiting())
	}
}

func TestWhatIsOver(t *testing.T) {
	retired := life(2, 99)
	moved := life(3, 0)
	moved.Addr = "n4:1"
	c := orphan(names3(3), five(3)...)
	c.tell("n2:1", retired)
	c.tell("n4:1", moved)
	if !c.ends() {
		t.Errorf("a dead group is kept: %s", c.Waiting())
	}
}

// A voter of unknown name has ended once other incarnations have answered under the names of all
// founders. The voter is asked for its name while it runs.
func TestAVoterWithoutAName(t *testing.T) {
	voters := five(3)
	voters[1].Instance, voters[1].Addr = nodeidtest.ID(8), "n5:1" // never answers
	c := orphan(names3(3), voters...)
	if !slices.ContainsFunc(c.contacts.seenAt, func(k asker) bool { return k.addr == "n5:1" }) {
		t.Error("a voter without a name is not asked for it")
	}
	c.tell("n3:1", life(3, 0))
	if c.ends() {
		t.Error("a group was given up, though the voter without a name may be the founder that is missing")
	}
	c.tell("n2:1", life(2, 0))
	if !c.ends() {
		t.Errorf("a dead group is kept: %s", c.Waiting())
	}
}

func TestSilenceIsNotOver(t *testing.T) {
	voters := five(3)
	voters[1].Instance, voters[1].Addr = nodeidtest.ID(4), "n4:1"
	c := orphan(names3(3), voters...)
	c.tell("n2:1", life(2, 77))
	c.tell("n3:1", life(3, 0))
	if c.ends() {
		t.Error("a group was given up of which a silent voter would make a majority")
	}
	if text := c.Waiting(); !strings.Contains(text, `"n4" (n4:1) cannot be reached`) {
		t.Errorf("it waits for %q", text)
	}
	c.Departed(c.now, nodeidtest.ID(4))
	if !c.ends() {
		t.Errorf("the voter has said goodbye, and it waits for %q", c.Waiting())
	}
}

// A group is given up unless the voters that have not ended are a majority of each half, {1, 2,
// 3} and {3, 4, 5}.
func TestBothHalvesOfAJointConfiguration(t *testing.T) {
	for _, tc := range []struct {
		over []uint64
		ends bool
	}{{[]uint64{4, 5}, true}, {[]uint64{2, 4}, false}, {[]uint64{2, 3}, true}} {
		c := orphan(names3(5), five(5)...)
		c.Applied(c.now, 9, Configuration{At: 7, Voters: five(5), Incoming: []uint64{1, 2, 3},
			Outgoing: []uint64{3, 4, 5}})
		for i := uint64(2); i <= 5; i++ {
			raft := i
			if slices.Contains(tc.over, i) {
				raft = 0
			}
			c.tell("n"+string(rune('0'+i))+":1", life(i, raft))
		}
		if c.ends() != tc.ends {
			t.Errorf("%v are over: given up is %v, want %v: %s", tc.over, !tc.ends, tc.ends, c.Waiting())
		}
	}
}

func TestAppliedConfigurationsCount(t *testing.T) {
	c := orphan(names3(3), five(2)...)
	behind := life(2, 2)
	behind.Standing.Applied = Configuration{At: 3, Voters: five(3), told: true}
	c.Retired(c.now, 1)
	c.tell("n2:1", behind)
	c.tell("n3:1", life(3, 3))
	if c.ends() {
		t.Error("two voters of a configuration that one of them has applied live, and the group was given up")
	}
}

// hearsay returns the core of n1, a member of the group of n1, n2 and n3. The leader n3 has sent
// n1 a configuration in which n4 replaces n2, and has died before another replica applied it.
func hearsay(settings Settings) *Core {
	c := orphan(settings, five(3)...)
	c.take(8, told())
	c.follow(c.bond.newest())
	c.now += time.Second
	return c
}

// told returns the voters of the configuration that n3 has sent to n1 (see the function hearsay).
func told() []Voter { return slices.Delete(five(4), 1, 2) }

// applies returns an answer in which instance i reports that it has applied the configuration
// with the given number.
func applies(i, at uint64) InstanceInfo {
	who := life(i, i)
	who.Standing.Applied = Configuration{At: at, Voters: five(3), told: true}
	if at == 8 {
		who.Standing.Applied.Voters = told()
	}
	return who
}

// The newest known configuration comes from a dead leader. It must count while messages of that
// leader may still arrive, or while a voter may have applied it.
func TestHearsay(t *testing.T) {
	older := life(4, 4)
	older.Standing = nil
	foreign := applies(4, 7)
	foreign.Group = 8
	for name, tc := range map[string]struct {
		fourth func(round int) *InstanceInfo // answer of n4; nil means silence
		ends   bool
	}{
		"it has applied the one before": {func(int) *InstanceInfo { who := applies(4, 7); return &who }, true},
		"it has applied a newer one":    {func(int) *InstanceInfo { who := applies(4, 9); return &who }, true},
		"it has applied it":             {func(int) *InstanceInfo { who := applies(4, 8); return &who }, false},
		"it has applied nothing":        {func(int) *InstanceInfo { who := applies(4, 0); return &who }, false},
		"it does not tell":              {func(int) *InstanceInfo { return &older }, false},
		"it tells of another group":     {func(int) *InstanceInfo { return &foreign }, false},
		"it applies it in the end": {func(round int) *InstanceInfo {
			who := applies(4, 7)
			if round >= 29 {
				who = applies(4, 8)
			}
			return &who
		}, false},
		"it was silent for a while": {func(round int) *InstanceInfo {
			if who := applies(4, 7); round < 10 || round > 15 {
				return &who
			}
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := hearsay(names3(4))
			ended := false
			for round := range 35 {
				c.tell("n2:1", life(2, 0))
				c.tell("n3:1", life(3, 0))
				if who := tc.fourth(round); who != nil {
					c.tell("n4:1", *who)
				}
				if ended = c.ends(); ended && time.Duration(round)*time.Second <= hearsayOver {
					t.Fatalf("given up after %d s, when a message of the dead leader may still arrive", round)
				}
				if ended {
					break
				}
				c.now += time.Second
			}
			if ended != tc.ends {
				t.Errorf("given up is %v, want %v: %s", ended, tc.ends, c.Waiting())
			}
		})
	}
}

// A silent voter may have applied a configuration that is known only from a dead leader.
func TestHearsayOfTheSilent(t *testing.T) {
	c := hearsay(Settings{Replicas: 3, Voters: 3, SessionTTL: 2 * time.Second})
	for round := range 60 {
		c.now += time.Second
		c.tell("n2:1", life(2, 0))
		c.tell("n3:1", life(3, 0))
		if c.ends() {
			t.Fatalf("given up after %d s, though n4 may have applied it, and is a majority with this voter", round)
		}
	}
}

func TestFoundersOfTheGroupAreNeeded(t *testing.T) {
	c := orphan(names3(3), five(3)...)
	c.self.settings = names3(1).normal()
	c.Departed(c.now, nodeidtest.ID(2))
	c.Departed(c.now, nodeidtest.ID(3))
	if c.ends() {
		t.Fatal("it gave up its group while it was alone")
	}
	c.tell("n2:1", life(2, 0))
	c.tell("n3:1", life(3, 0))
	if !c.ends() {
		t.Fatalf("all founders of the group answer, and it waits for %q", c.Waiting())
	}
	if want := names3(3).Founders; !slices.Equal(c.self.settings.Founders, want) {
		t.Errorf("in its next life it asks for %v, want %v", c.self.settings.Founders, want)
	}
}

func TestForeignLeaderEndsNoGroup(t *testing.T) {
	foreign := InstanceInfo{Instance: nodeidtest.ID(60), Name: "t1", Addr: "n5:1", Phase: Member, Group: 8, Leader: true,
		Standing: &Standing{Raft: 60}}
	c := orphan(names3(3), five(3)...)
	c.tell("n5:1", foreign)
	c.tell("n2:1", life(2, 2))
	if c.ends() {
		t.Error("a voter left a group that can elect for another")
	}
	if !strings.Contains(c.Waiting(), groupName(8)) || !strings.Contains(c.Waiting(), groupName(9)) {
		t.Errorf("it waits for %q, want both groups", c.Waiting())
	}
}

func TestStandingReturns(t *testing.T) {
	who := life(2, 2)
	who.Voters, who.At = five(3), 7
	who.Standing = &Standing{Raft: 2, Names: []string{"n1", "", "n3"}, Applied: Configuration{
		At: 7, Voters: five(3), Incoming: []uint64{1, 2}, Outgoing: []uint64{2, 3}, told: true,
	}}
	got, err := decodeInfo(appendInfo(nil, who))
	if err != nil || got.Standing == nil || got.Standing.Raft != 2 ||
		!slices.Equal(got.Standing.Names, who.Standing.Names) ||
		!slices.Equal(got.Standing.Applied.Outgoing, []uint64{2, 3}) ||
		!slices.Equal(got.Standing.Applied.Voters, five(3)) {
		t.Errorf("%+v, %v", got.Standing, err)
	}
	who.Standing = nil
	if got, err := decodeInfo(appendInfo(nil, who)); err != nil || got.Standing != nil {
		t.Errorf("%+v, %v", got, err)
	}
	c := orphan(names3(3), five(3)...)
	who = life(2, 2)
	who.Standing = nil
	c.tell("n2:1", who)
	if !c.inquest().running(five(2)[1], 0) || c.inquest().running(Voter{Raft: 2, Instance: nodeid.ID{}}, 0) {
		t.Error("the same life of a build that does not say counts as a replica that runs")
	}
}

// The leader of three voters has removed the two others and died before the slower voter received
// the change. The faster voter needs the leader's vote, and the log of the slower voter is too
// short to get a vote. The group is given up, but only once this is proved.
func TestAGroupInWhichNoneCanBeElectedIsDead(t *testing.T) {
	joint := Configuration{At: 8, Voters: five(3), Incoming: []uint64{3}, Outgoing: []uint64{1, 2, 3}}
	behind, far := Log{2, 2, 16}, Log{2, 2, 29}
	second := func(applied Configuration, log Log) InstanceInfo {
		who := life(2, 2)
		who.At, who.Voters = applied.At, applied.Voters
		who.Standing.Applied, who.Standing.Log = applied, log
		return who
	}
	for name, tc := range map[string]struct {
		own    Log
		second func(round int) InstanceInfo
		ends   bool
	}{
		"the one is behind, the other needs the leader": {behind, func(int) InstanceInfo { return second(joint, far) }, true},
		"its last entry is of a later term": {Log{3, 2, 40},
			func(int) InstanceInfo { return second(joint, Log{3, 3, 29}) }, true},
		"the logs are alike": {far, func(int) InstanceInfo { return second(joint, far) }, false},
		"its own is longer": {Log{2, 2, 30}, func(int) InstanceInfo { return second(joint, far) },
			false},
		"what it says may be of later": {behind,
			func(int) InstanceInfo { return second(joint, Log{3, 2, 29}) }, false},
		"its own is not known":     {Log{}, func(int) InstanceInfo { return second(joint, far) }, false},
		"the other's is not known": {behind, func(int) InstanceInfo { return second(joint, Log{}) }, false},
		"the other can be elected": {behind, func(int) InstanceInfo {
			return second(Configuration{At: 7, Voters: five(3), Incoming: nil, Outgoing: nil}, far)
		}, false},
		"it has a leader now and then": {behind, func(round int) InstanceInfo {
			who := second(joint, far)
			if who.Leader = round%20 == 0; who.Leader {
				who.Standing.Log = Log{}
			}
			return who
		}, false},
		"what the leader has sent arrives": {behind, func(round int) InstanceInfo {
			if round < 29 {
				return second(joint, far)
			}
			return second(joint, Log{})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphan(names3(3), five(3)...)
			c.Log(c.now, 1, tc.own)
			ended := false
			for round := range 45 {
				c.tell("n2:1", tc.second(round))
				c.tell("n3:1", life(3, 0))
				if ended = c.ends(); ended && time.Duration(round)*time.Second <= hearsayOver {
					t.Fatalf("given up after %d s, when a message of the dead leader may still arrive", round)
				}
				if ended {
					break
				}
				c.now += time.Second
			}
			if ended != tc.ends {
				t.Errorf("given up is %v, want %v: %s", ended, tc.ends, c.Waiting())
			}
		})
	}
}

// An instance was cut off while the voters changed, so it knows no running voter. It stays while an
// unknown instance reports newer voters that form a majority, and leaves once these voters have
// ended.
func TestALaterConfigurationKeepsTheGroup(t *testing.T) {
	fourth := Voter{Raft: 44, Instance: nodeidtest.ID(4), Addr: "n4:1", Life: 1}
	fifth := Voter{Raft: 55, Instance: nodeidtest.ID(5), Addr: "n5:1", Life: 1}
	moved := func(voters ...Voter) func(int) InstanceInfo {
		return func(int) InstanceInfo {
			who := life(4, 44)
			who.Standing.Applied = Configuration{At: 20, Voters: voters, Incoming: nil, Outgoing: nil, told: true}
			return who
		}
	}
	with := moved(five(1)[0], fourth, fifth)
	for name, tc := range map[string]struct {
		fourth func(round int) InstanceInfo
		ends   bool
	}{
		"its majority runs": {with, false},
		"it had one": {func(round int) InstanceInfo {
			return map[bool]func(int) InstanceInfo{true: with, false: func(int) InstanceInfo {
				return life(4,
					0)
			}}[round < 5](round)
		}, true},
		"it has none":            {moved(five(3)[1], fourth, fifth), true},
		"it runs no replica":     {func(int) InstanceInfo { who := with(0); who.Standing.Raft = 0; return who }, true},
		"it is of another group": {func(int) InstanceInfo { who := with(0); who.Group = 8; return who }, true},
		"it is older":            {func(int) InstanceInfo { who := with(0); who.Standing.Applied.At = 6; return who }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphan(names3(5), five(3)...)
			ended := false
			for round := range 20 {
				for i := uint64(2); i <= 5; i++ {
					if who := life(i, 0); i != 4 {
						c.tell(who.Addr, who)
					}
				}
				c.tell("n4:1", tc.fourth(round))
				if ended = c.ends(); ended {
					break
				}
				c.now += time.Second
			}
			if ended != tc.ends {
				t.Errorf("given up is %v, want %v: %s", ended, tc.ends, c.Waiting())
			}
		})
	}
}

// The leader gives a new replica a vote and dies before another voter receives this change. The new
// replica and that voter are a majority, but the voter ignores the replica's messages. The group is
// given up, unless the voter has applied a configuration that names the replica.
func TestAGroupOfStrangersIsDead(t *testing.T) {
	voters := five(3)
	voters[1].Raft = 9 // replica 9 on n2 replaces replica 2
	later := Configuration{At: 8, Voters: voters, Incoming: []uint64{1, 3, 9}}
	with := append(five(3), Voter{Raft: 9, Instance: nodeidtest.ID(2), Addr: "n2:1", Life: 1, Learner: true})
	for name, tc := range map[string]struct {
		own  Configuration
		ends bool
	}{
		"it does not know the new replica":     {Configuration{At: 7, Voters: five(3)}, true},
		"it knows the new replica as learner":  {Configuration{At: 7, Voters: with}, false},
		"it has applied the new configuration": {later, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := orphan(names3(3), five(3)...)
			c.Applied(c.now, 9, tc.own)
			c.Log(c.now, 1, Log{2, 2, 16})
			second := life(2, 9)
			second.At, second.Voters = later.At, later.Voters
			second.Standing.Applied, second.Standing.Log = later, Log{2, 2, 29}
			ended := false
			for round := 0; round < 45 && !ended; round++ {
				c.tell("n2:1", second)
				c.tell("n3:1", life(3, 0))
				if ended = c.ends(); ended && time.Duration(round)*time.Second <= hearsayOver {
					t.Fatalf("given up after %d s, when a message of the dead leader may still arrive", round)
				}
				c.now += time.Second
			}
			if ended != tc.ends {
				t.Errorf("given up is %v, want %v: %s", ended, tc.ends, c.Waiting())
			}
		})
	}
}

func TestALogIsThatOfItsReplica(t *testing.T) {
	c := orphan(names3(3), five(3)...)
	c.Log(c.now, 1, Log{2, 2, 16})
	if s := c.answer(question{}).Standing; s.Log != (Log{2, 2, 16}) {
		t.Errorf("it tells of %+v", s.Log)
	}
	c.replica.raft = 77
	if s := c.answer(question{}).Standing; s.Log != (Log{}) {
		t.Errorf("replica 77 tells of %+v", s.Log)
	}
}
