package founding

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const always = time.Duration(1) << 62

// newborn returns a newborn, instance 5 at a:1, at the time of one second.
func newborn(s Settings) *Core {
	c := New(Config{Instance: nodeidtest.ID(5), Name: "a", Addr: "a:1", Settings: s, Rules: 3})
	c.now, c.wall = time.Second, 1_000_000
	return c
}

func (c *Core) tell(addr string, who InstanceInfo) {
	c.arrange()
	at, ok := find(c.contacts.places, addr)
	if !ok {
		panic("no place " + addr)
	}
	p := c.contacts.places[at]
	p.pending = 1 << 40
	c.Result(c.now, p.pending, c.now, Answered, who.Instance, appendInfo(nil, who))
}

// pair returns a newborn that has met the newborn b, and the charter that both would accept.
func pair() (*Core, Charter) {
	s := Settings{Replicas: 2, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	c := newborn(s)
	c.Places([]Entry{{Name: "x", Addrs: []string{"a:1", "b:1"}, Resolved: always}}, nil)
	c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: s, Rules: 3,
		WallUnixMS: 1_000_000})
	return c, Charter{
		Group: 99, FoundedUnixMS: 1_000_000, Settings: s, Rules: 3,
		List:   []Listed{{nodeidtest.ID(5), "a", "a:1"}, {nodeidtest.ID(7), "b", "b:1"}},
		Voters: []Voter{{Raft: 11, Instance: nodeidtest.ID(5), Addr: "a:1", Life: 1}},
	}
}

func (c *Core) propose(ch Charter) (verdict, bool) {
	answer := c.Ask(c.now, c.wall, aVoter(), appendProposal(nil, proposal{To: c.self.instance, Charter: ch}))
	if answer == nil {
		return verdict{}, false
	}
	v, err := decodeVerdict(answer)
	return v, err == nil
}

func TestEveryConditionRefusesByItself(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(c *Core, ch *Charter)
		want  Refusal
	}{
		{"nothing is wrong", func(*Core, *Charter) {}, Accepted},
		{"no group", func(_ *Core, ch *Charter) { ch.Group = 0 }, RefusedMalformed},
		{"list out of order", func(_ *Core, ch *Charter) { slices.Reverse(ch.List) }, RefusedMalformed},
		{"two at one address", func(_ *Core, ch *Charter) { ch.List[1].Addr = "a:1" }, RefusedMalformed},
		{"two voters of two", func(_ *Core, ch *Charter) {
			ch.Voters = append(ch.Voters, Voter{Raft: 12, Instance: nodeidtest.ID(7), Addr: "b:1", Life: 1})
		}, RefusedMalformed},
		{"no voters", func(_ *Core, ch *Charter) { ch.Voters = nil }, RefusedMalformed},
		{"voter without a raft ID", func(_ *Core, ch *Charter) { ch.Voters[0].Raft = 0 }, RefusedMalformed},
		{"voter that is not listed", func(_ *Core, ch *Charter) { ch.Voters[0].Instance = nodeidtest.ID(8) },
			RefusedMalformed},
		{"we run alone", func(c *Core, _ *Charter) { c.self.settings.Solo = true }, RefusedSolo},
		{"we are bound", func(c *Core, _ *Charter) { c.bond.phase, c.bond.group, c.bond.charter = Bound, 98, &Charter{} },
			RefusedPhase},
		{"we are a member", func(c *Core, _ *Charter) { c.bond.phase, c.bond.group = Member, 98 }, RefusedPhase},
		{"we are a member of that very group, and not by its charter",
			func(c *Core, _ *Charter) { c.bond.phase, c.bond.group = Member, 99 }, RefusedPhase},
		{"answered before", func(c *Core, ch *Charter) { c.attempt.remember(ch.Group) }, RefusedRepeated},
		{"another life of us is listed", func(_ *Core, ch *Charter) {
			ch.List[0].Instance, ch.Voters[0].Instance = nodeidtest.ID(4), nodeidtest.ID(4)
		}, RefusedUnlisted},
		{"we are listed elsewhere", func(_ *Core, ch *Charter) { ch.List[0].Addr, ch.Voters[0].Addr = "a:2", "a:2" },
			RefusedUnlisted},
		{"list too short", func(_ *Core, ch *Charter) { ch.List = ch.List[:1] }, RefusedIncomplete},
		{"other Replicas", func(_ *Core, ch *Charter) { ch.Settings.Replicas = 1 }, RefusedSettings},
		{"Founders instead", func(_ *Core, ch *Charter) {
			ch.Settings.Replicas, ch.Settings.Founders = 0,
				[]string{"a", "b"}
		}, RefusedSettings},
		{"other Voters", func(_ *Core, ch *Charter) { ch.Settings.Voters = 1 }, RefusedSettings},
		{"other SessionTTL", func(_ *Core, ch *Charter) { ch.Settings.SessionTTL++ }, RefusedSettings},
		{"other Grace", func(_ *Core, ch *Charter) { ch.Settings.Grace++ }, RefusedSettings},
		{"newer rules", func(_ *Core, ch *Charter) { ch.Rules = 4 }, RefusedRules},
		{"clock just within half the grace", func(_ *Core, ch *Charter) { ch.FoundedUnixMS += 1000 }, Accepted},
		{"founded too late", func(_ *Core, ch *Charter) { ch.FoundedUnixMS += 1001 }, RefusedClock},
		{"founded too early", func(_ *Core, ch *Charter) { ch.FoundedUnixMS -= 1001 }, RefusedClock},
		{"founded in the far future", func(_ *Core, ch *Charter) { ch.FoundedUnixMS = maxWall }, RefusedClock},
		{"an answer too old", func(c *Core, _ *Charter) { c.now += freshFor + 1 }, RefusedSilence},
		{"a Join address never answered", func(c *Core, _ *Charter) { c.joinToo("z:1") }, RefusedSilence},
		{"a Join name not resolved", func(c *Core, _ *Charter) { c.contacts.join[0].Failed = "timeout" }, RefusedSilence},
		{"a Join name resolved too long ago",
			func(c *Core, _ *Charter) { c.contacts.join[0].Resolved = c.now - resolvedFor - 1 }, RefusedSilence},
		{"a newborn that is not listed", func(c *Core, _ *Charter) {
			c.joinToo("z:1")
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1"})
		}, RefusedStranger},
		{"a listed one that is bound to another charter", func(c *Core, _ *Charter) {
			c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Phase: Bound, Group: 98})
		}, RefusedStranger},
		{"a listed one that is bound to this charter", func(c *Core, _ *Charter) {
			c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Phase: Bound, Group: 99,
				Leader: true})
		}, Accepted},
		{"the listed address answers as another life", func(c *Core, _ *Charter) {
			c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(8), Name: "b", Addr: "b:1"})
		}, RefusedStranger},
		{"a member without a leader", func(c *Core, _ *Charter) {
			c.joinToo("z:1")
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 98})
		}, RefusedStranger},
		{"an instance that runs alone", func(c *Core, _ *Charter) {
			c.joinToo("z:1")
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 98,
				Leader: true, Settings: Settings{Solo: true}})
		}, RefusedStranger},
		{"a group with a leader, known from gossip alone", func(c *Core, _ *Charter) {
			c.Places(c.contacts.join, []string{"z:1"})
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 98,
				Leader: true})
		}, RefusedGroup},
		{"a member without a leader, known from gossip alone", func(c *Core, _ *Charter) {
			c.Places(c.contacts.join, []string{"z:1"})
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 98})
		}, Accepted},
		{"our directory cannot be written", func(c *Core, _ *Charter) { c.directory.unfit = "disk full" }, RefusedDirectory},
		{"a group without a leader in a directory, known from gossip alone", func(c *Core, _ *Charter) {
			c.Places(c.contacts.join, []string{"z:1"})
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 98,
				Durable: true})
		}, RefusedClaim},
		{"another charter in a directory, known from gossip alone", func(c *Core, _ *Charter) {
			c.Places(c.contacts.join, []string{"z:1"})
			c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Bound, Group: 98,
				Durable: true})
		}, RefusedClaim},
		{"nothing listens at a Join address", func(c *Core, _ *Charter) { c.joinToo("z:1"); c.end("z:1", Refused) },
			Accepted},
		{"a stranger listens at a Join address",
			func(c *Core, _ *Charter) { c.joinToo("z:1"); c.end("z:1", Foreign) }, Accepted},
		{"silence at a Join address", func(c *Core, _ *Charter) { c.joinToo("z:1"); c.end("z:1", Silent) },
			RefusedSilence},
	}
	seen := map[Refusal]bool{}
	for _, tc := range cases {
		c, ch := pair()
		ch.List, ch.Voters = slices.Clone(ch.List), slices.Clone(ch.Voters)
		tc.spoil(c, &ch)
		v, ok := c.propose(ch)
		if !ok || v.Refusal != tc.want {
			t.Errorf("%s: %v (%s), want %v", tc.name, v.Refusal, v.Detail, tc.want)
		}
		if (c.bond.charter != nil && c.bond.charter.Group == ch.Group) != (tc.want == Accepted) {
			t.Errorf("%s: the verdict is %v, and the core is bound to %x", tc.name, v.Refusal, c.bond.group)
		}
		seen[v.Refusal] = true
	}
	for r := range refusals {
		if !seen[r] {
			t.Errorf("no case is refused because %v", r)
		}
	}
}

func (c *Core) joinToo(addr string) {
	c.Places(append(slices.Clone(c.contacts.join), Entry{Name: addr, Addrs: []string{addr}, Resolved: always}), nil)
	c.arrange()
}

func (c *Core) end(addr string, outcome Outcome) {
	at, _ := find(c.contacts.places, addr)
	c.contacts.places[at].pending = 1 << 40
	c.Result(c.now, 1<<40, c.now, outcome, nodeid.ID{}, nil)
}

func TestFoundersPassOverOtherNewborns(t *testing.T) {
	for name, want := range map[string]Refusal{"z": Accepted, "b": RefusedStranger} {
		c, ch := pair()
		c.self.settings.Replicas, c.self.settings.Founders = 0, []string{"a", "b"}
		ch.Settings = c.self.settings
		c.joinToo("z:1")
		c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: name, Addr: "z:1"})
		if v, _ := c.propose(ch); v.Refusal != want {
			t.Errorf("a newborn called %s: %v (%s), want %v", name, v.Refusal, v.Detail, want)
		}
	}
	c, ch := pair()
	c.self.settings.Replicas, c.self.settings.Founders = 0, []string{"a", "b", "c"}
	ch.Settings = c.self.settings
	if v, _ := c.propose(ch); v.Refusal != RefusedIncomplete {
		t.Errorf("a founder is missing: %v, want %v", v.Refusal, RefusedIncomplete)
	}
}

func TestS5AnswersAreTiedToTheInstance(t *testing.T) {
	c, ch := pair()
	if b := c.Ask(c.now, c.wall, aVoter(),
		appendProposal(nil, proposal{To: nodeidtest.ID(6), Charter: ch})); b != nil || c.bond.phase != Newborn {
		t.Error("a proposal to another life was answered")
	}
	p := proposer(t)
	for _, v := range []verdict{
		{Instance: nodeidtest.ID(8), Group: p.bond.group, Refusal: RefusedRepeated},
		{Instance: nodeidtest.ID(7), Group: 1234, Refusal: RefusedRepeated},
		{Instance: nodeidtest.ID(8), Group: p.bond.group},
	} {
		p.verdict(1, v)
		if p.doomed != "" || p.attempt.bound[1] {
			t.Fatalf("%+v was taken for the answer of instance 7", v)
		}
	}
	p.attempt.offers[1].pending = 77
	p.Result(p.now, 77, p.now, Other, nodeid.ID{}, nil)
	p.attempt.offers[1].pending = 78
	p.Result(p.now, 78, p.now, Silent, nodeid.ID{}, nil)
	if p.doomed != "" || p.attempt.bound[1] {
		t.Fatal("another instance's presence, or silence, counted as an answer")
	}
	p.verdict(1, verdict{Instance: nodeidtest.ID(7), Group: p.bond.group, Refusal: RefusedClock})
	if p.doomed == "" {
		t.Error("the refusal by instance 7 itself was not heard")
	}
}

func proposer(t *testing.T) *Core {
	t.Helper()
	c, _ := pair()
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50), Group: 60, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	if c.bond.phase != Bound || len(c.attempt.offers) != 2 {
		t.Fatalf("no proposal: %v, %s", c.bond.phase, c.Waiting())
	}
	return c
}

func (c *Core) verdict(i int, v verdict) {
	c.attempt.offers[i].pending = 1 << 41
	c.Result(c.now, 1<<41, c.now, Answered, v.Instance, appendVerdict(nil, v))
}

func TestRefusalAndTimeEndALife(t *testing.T) {
	c := proposer(t)
	c.verdict(1, verdict{Instance: nodeidtest.ID(7), Group: c.bond.group, Refusal: RefusedSettings, Detail: "Voters"})
	out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(51)})
	if c.Instance() != nodeidtest.ID(51) || c.Phase() != Newborn || c.Group() != 0 {
		t.Errorf("after a refusal it is %x, %v", c.Instance(), c.Phase())
	}
	if len(out.Events) == 0 || out.Events[len(out.Events)-1].Kind != Restarted ||
		!strings.Contains(out.Events[len(out.Events)-1].Text, "Voters") {
		t.Errorf("events %+v, want a restart that says why", out.Events)
	}

	c = proposer(t)
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(51), Spread: uint64(time.Second)})
	c.Tick(c.now+bornWithin+time.Second-1, c.wall, Random{Instance: nodeidtest.ID(52)})
	if c.Phase() != Bound {
		t.Error("it gave up too early")
	}
	c.Tick(c.now+1, c.wall, Random{Instance: nodeidtest.ID(53)})
	if c.Phase() != Newborn || c.Instance() != nodeidtest.ID(53) {
		t.Error("it did not give up")
	}
}

func TestReplayedChartersAreRefused(t *testing.T) {
	c, ch := pair()
	ch.FoundedUnixMS += 1001
	if v, _ := c.propose(ch); v.Refusal != RefusedClock {
		t.Fatal(v.Refusal)
	}
	c.wall += 1001 // no other condition is violated
	if v, _ := c.propose(ch); v.Refusal != RefusedRepeated {
		t.Errorf("a refused charter, asked again: %v", v.Refusal)
	}

	c, ch = pair()
	accepted := appendProposal(nil, proposal{To: c.self.instance, Charter: ch})
	for range 2 { // asked again after a lost answer; this must not add an event
		if v, _ := c.propose(ch); v.Refusal != Accepted {
			t.Fatal(v.Refusal)
		}
	}
	out := c.Tick(c.now, c.wall, Random{})
	if n := len(out.Events); n != 1 || out.Events[0].Raft != 11 {
		t.Errorf("%d events %+v, want one: bound with raft ID 11", n, out.Events)
	}
	c.doomed = "test"
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(55)})
	if b := c.Ask(c.now, c.wall, aVoter(), accepted); b != nil {
		t.Error("the new life answered a delayed copy of the charter of the old")
	}
	if v, _ := c.propose(ch); v.Refusal != RefusedUnlisted {
		t.Errorf("the new life, asked about the old charter: %v", v.Refusal)
	}
}

func TestVotersAreTheLargestOddNumber(t *testing.T) {
	for _, c := range []struct{ voters, list, want int }{
		{3, 1, 1}, {3, 2, 1}, {3, 3, 3}, {3, 4, 3}, {3, 9, 3}, {5, 4, 3}, {5, 5, 5}, {1, 9, 1}, {7, 6, 5},
		{7, 100, 7}, {3, 0, 0},
	} {
		if got := (Settings{Voters: c.voters}).voterCount(c.list); got != c.want {
			t.Errorf("Voters %d, list %d: %d, want %d", c.voters, c.list, got, c.want)
		}
	}
}

func TestFoundingTimeIsTheLatestOfTheClocks(t *testing.T) {
	for _, ahead := range []int64{-700, 0, 700} {
		c, _ := pair()
		c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 2,
			WallUnixMS: c.wall + ahead})
		out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50), Group: 60,
			Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
		if len(out.Events) != 1 || out.Events[0].Kind != BoundTo {
			t.Fatalf("events %+v, want a charter", out.Events)
		}
		ch := out.Events[0].Charter
		if want := c.wall + max(ahead, 0); ch.FoundedUnixMS != want || ch.Rules != 2 {
			t.Errorf("one clock is %d ms ahead: founded at %d with rules %d, want %d and the older rules 2", ahead,
				ch.FoundedUnixMS, ch.Rules, want)
		}
	}
}

func TestNewsOfOthersIsIgnored(t *testing.T) {
	c := newborn(Settings{Replicas: 2, Voters: 3})
	c.Leader(c.now, true)
	if who, _ := decodeInfo(c.Ask(c.now, c.wall, aVoter(), appendQuestion(nil, question{}))); who.Leader {
		t.Error("a newborn claims to have a leader")
	}
	c = proposer(t)
	c.Born(c.now, c.bond.group+1)
	c.Tick(c.now, c.wall, Random{})
	if c.Phase() != Bound {
		t.Error("Born of another group made it a member")
	}
	highest := c.contacts.asked
	c.doomed = "test"
	out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(51)})
	for _, q := range out.Questions {
		if q.ID <= highest {
			t.Error("a question of the new life has the ID of one of the old, whose answer may still come")
		}
	}
	if len(out.Questions) == 0 {
		t.Error("the new life asks nothing")
	}
}

func TestMemberWithoutLeaderAtJoinBlocksAndIsNamed(t *testing.T) {
	c, _ := pair()
	c.joinToo("z:1")
	c.tell("z:1", InstanceInfo{Instance: nodeidtest.ID(9), Name: "z", Addr: "z:1", Phase: Member, Group: 0x98})
	c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50), Group: 60, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	if text := c.Waiting(); c.Phase() != Newborn ||
		!strings.Contains(text, `"z" (z:1) still belongs to group 0000000000000098, which has no leader`) {
		t.Errorf("it is %v and waits for %q", c.Phase(), text)
	}
}

func TestOnlyTheAdvertisedAddressIsListed(t *testing.T) {
	c := newborn(Settings{Replicas: 2, Voters: 3, SessionTTL: simTTL, Grace: simTTL})
	c.Places([]Entry{{Name: "x", Addrs: []string{"vip:1"}, Resolved: always}}, nil)
	b := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 3,
		WallUnixMS: c.wall}
	c.tell("vip:1", b)
	random := Random{Instance: nodeidtest.ID(50), Group: 60, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}}
	out := c.Tick(c.now, c.wall, random)
	if c.Phase() != Newborn || !slices.ContainsFunc(out.Questions, func(q Question) bool { return q.Addr == "b:1" }) {
		t.Fatalf("it is %v and asks %+v, want b asked at its own address first", c.Phase(), out.Questions)
	}
	c.tell("b:1", b)
	c.tell("vip:1", b)
	if c.Tick(c.now, c.wall, random); c.Phase() != Bound || c.bond.charter.List[1].Addr != "b:1" {
		t.Errorf("it is %v, waits for %q", c.Phase(), c.Waiting())
	}
}

func TestWaitingNamesEmptyAddresses(t *testing.T) {
	c, _ := pair()
	c.self.settings.Replicas = 3
	c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 3,
		WallUnixMS: c.wall})
	c.joinToo("y:1")
	c.end("y:1", Refused)
	c.joinToo("z:1")
	c.end("z:1", Foreign)
	want := "founding waits: 2 of 3 instances (Replicas: 3) are here (a, b); nothing listens at y:1: start the " +
		"instance there, or correct Join; another cluster or another program listens at z:1"
	if got := c.Waiting(); got != want {
		t.Errorf("waits for\n%q, want\n%q", got, want)
	}
	at, _ := find(c.contacts.places, "z:1")
	c.contacts.places[at].pending = 1 << 40
	c.Result(c.now, 1<<40, c.now, Foreign, nodeid.ID{}, []byte("it has another secret"))
	if got := c.Waiting(); got != want+" (it has another secret)" {
		t.Errorf("waits for\n%q", got)
	}
}

func TestFoundersThatMatchNoInstance(t *testing.T) {
	s := Settings{Founders: []string{"n1", "n2", "n3"}, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	c := newborn(s)
	c.Places([]Entry{{Name: "x", Addrs: []string{"a:1", "b:1"}, Resolved: always}}, nil)
	c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "host-2", Addr: "b:1", Settings: s, Rules: 3,
		WallUnixMS: 1_000_000})
	want := `; it has met none of them ("n1", "n2", "n3"), and sees "host-2" (b:1): to let these found the group, ` +
		`list the Name of each ` +
		`(the host name by default) in Founders, and that of this one ("a") too`
	if got := c.Waiting(); !strings.HasSuffix(got, want) {
		t.Errorf("waits for\n%q, want at its end\n%q", got, want)
	}
}

// Waiting may advise a smaller number of replicas only if exactly one instance is missing.
// Otherwise each side of a partition could follow the advice and found a group.
func TestSilenceNamesAllWithTheReason(t *testing.T) {
	const plainText = "the other side has no secret"
	replicas := func(n int) Settings { return Settings{Replicas: n, Voters: 3, SessionTTL: simTTL, Grace: simTTL} }
	founders := Settings{Founders: []string{"a", "b", "c"}, Voters: 3, SessionTTL: simTTL, Grace: simTTL}
	literal := []Entry{{Name: "a:1", Addrs: []string{"a:1"}, Resolved: always},
		{Name: "b:1", Addrs: []string{"b:1"}, Resolved: always},
		{Name: "c:1", Addrs: []string{"c:1"}, Resolved: always}}
	byName := []Entry{{Name: "x", Addrs: []string{"a:1", "b:1", "c:1"}, Resolved: always}}
	listed := func(name string) []Entry {
		return []Entry{{Name: name, Addrs: []string{"a:1", "b:1", "c:1"}, Resolved: always}}
	}
	for name, c := range map[string]struct {
		settings Settings
		join     []Entry
		here     bool
		why      string // why c:1 is silent
		want     string
	}{
		"cut off": {replicas(3), literal, false, "",
			"founding waits: no answer from b:1, c:1, which Join leads to. If these machines are gone, " +
				"take them out of Join, or out of the records of its names"},
		"one of three is silent": {replicas(3), literal, true, "",
			"founding waits: no answer from c:1, which Join names. If that machine is gone, " +
				"take it out of Join, or start with Replicas: 2"},
		"two of four are missing": {replicas(4), literal, true, "",
			"founding waits: no answer from c:1, which Join names. If that machine is gone, " +
				"take it out of Join"},
		"by name": {replicas(3), byName, false, "",
			"founding waits: no answer from x (b:1), x (c:1), which Join leads to. If these machines are gone, " +
				"take them out of Join, or out of the records of its names"},
		"one of three of a function": {replicas(3), listed(JoinFunc), true, "",
			"founding waits: no answer from Config.JoinFunc (c:1), which it returns. If that machine is gone, it must no " +
				"longer return the address, or start with Replicas: 2"},
		"one of three of a file": {replicas(3), listed("file:///peers"), true, "",
			"founding waits: no answer from file:///peers (c:1), which that file lists. If that machine is gone, take " +
				"the address out of the file, or start with Replicas: 2"},
		"a function that fails": {replicas(3), []Entry{{Name: JoinFunc, Failed: "no route"}}, false, "",
			"founding waits: Config.JoinFunc fails: no route: correct it; it must return the host:port of other instances"},
		"founders": {founders, literal, false, "",
			`founding waits: missing founders: "b", "c"; no answer from b:1, c:1, which Join leads to. ` +
				"If these machines are gone, take them out of Join, or out of the records of its names and, if " +
				"they are founders, out of Founders"},
		"no secret there": {replicas(3), literal, true, plainText, "founding waits: c:1 cannot be asked: " + plainText},
		"no secret at one, nothing from the other": {replicas(3), literal, false, plainText,
			"founding waits: c:1 cannot be asked: " + plainText +
				"; no answer from b:1, which Join names. If that machine is gone, take it out of Join"},
		"no secret at a founder": {founders, literal, true, plainText,
			`founding waits: missing founders: "c"; c:1 cannot be asked: ` + plainText},
	} {
		t.Run(name, func(t *testing.T) {
			core := newborn(c.settings)
			core.Places(c.join, nil)
			core.arrange()
			if len(core.contacts.places) == 0 {
				if got := core.Waiting(); got != c.want {
					t.Errorf("waits for\n%s, want\n%s", got, c.want)
				}
				return
			}
			core.end("b:1", Silent)
			if c.here {
				core.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.settings,
					Rules: 3, WallUnixMS: core.wall})
			}
			at, _ := find(core.contacts.places, "c:1")
			core.contacts.places[at].pending = 1 << 40
			core.Result(core.now, 1<<40, core.now, Silent, nodeid.ID{}, []byte(c.why))
			if got := core.Waiting(); got != c.want {
				t.Errorf("waits for\n%s, want\n%s", got, c.want)
			}
		})
	}
}
