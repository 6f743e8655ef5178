package founding

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// resumed returns instance 5 at a:2, formerly at a:1, as a member of group 99 or bound to its
// charter. The only other instance is b:1.
func resumed(phase Phase) *Core {
	_, ch := pair()
	ch.Settings = ch.Settings.normal()
	st := State{Instance: nodeidtest.ID(5), Phase: phase, Group: 99, Charter: &ch, Settings: ch.Settings, Addr: "a:1",
		Voters: ch.Voters, At: 1, Raft: 11}
	c := New(Config{
		Instance: nodeidtest.ID(6), Name: "a", Addr: "a:2", Settings: ch.Settings, Rules: 3, Durable: true, Life: 4, Boot: 77,
		Stored: &st,
	})
	c.now, c.wall = time.Second, 1_000_000
	c.Places([]Entry{{Name: "x", Addrs: []string{"b:1"}, Resolved: always}}, nil)
	c.arrange()
	return c
}

func b(phase Phase) InstanceInfo {
	w := InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Phase: phase, Life: 2, Durable: true, Rules: 3,
		WallUnixMS: 1_000_000}
	if phase != Newborn {
		w.Group = 99
	}
	return w
}

func kinds(events []Event) (kinds []EventKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestResumedInstancesLookAroundFirst(t *testing.T) {
	for phase, want := range map[Phase][]EventKind{Bound: {BoundTo}, Member: {BoundTo, Joined}} {
		c := resumed(phase)
		out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
		if len(out.Events) != 0 || len(out.Questions) != 2 || c.Instance() != nodeidtest.ID(5) {
			t.Fatalf("at once: events %v, %d questions as %x; want it to ask b and its own last address first",
				out.Events, len(out.Questions), c.Instance())
		}
		c.tell("b:1", b(Member))
		if out = c.Tick(c.now, c.wall, Random{}); len(out.Events) != 0 {
			t.Errorf("before its last address has refused: %v", kinds(out.Events))
		}
		c.end("a:1", Refused)
		if out = c.Tick(c.now, c.wall, Random{}); len(out.Events) < len(want) ||
			!reflect.DeepEqual(kinds(out.Events)[:len(want)], want) {
			t.Errorf("then: %v, want %v", kinds(out.Events), want)
		}

		c = resumed(phase)
		if out = c.Tick(c.now, c.wall, Random{}); out.Next != c.now+settleWithin {
			t.Errorf("it asks for a Tick in %v, and settles within %v", out.Next-c.now, settleWithin)
		}
		if out = c.Tick(c.now+settleWithin-1, c.wall, Random{}); len(out.Events) != 0 {
			t.Errorf("it has waited too short a time for silent places: %v", kinds(out.Events))
		}
		if out = c.Tick(c.now+1, c.wall, Random{}); !reflect.DeepEqual(kinds(out.Events), want) {
			t.Errorf("alone it does %v, want %v", kinds(out.Events), want)
		}
		if e := out.Events[0]; e.Raft != 11 || e.Charter.Group != 99 {
			t.Errorf("it goes on as raft ID %x of group %x", e.Raft, e.Charter.Group)
		}
	}
	_, ch := pair()
	c := New(Config{Instance: nodeidtest.ID(6), Durable: true, Stored: &State{Instance: nodeidtest.ID(5)},
		Settings: ch.Settings})
	if c.Instance() != nodeidtest.ID(6) {
		t.Error("a newborn that starts again keeps an ID whose refusals were not stored")
	}
}

func settled(phase Phase) *Core {
	c := resumed(phase)
	c.Tick(c.now, c.wall, Random{})
	c.Tick(c.now+settleWithin, c.wall, Random{})
	return c
}

func TestCopiesAndOldCopies(t *testing.T) {
	other := func(life uint64, addr string, resuming bool) InstanceInfo {
		return InstanceInfo{Instance: nodeidtest.ID(5), Name: "a", Addr: addr, Phase: Member, Group: 99, Life: life,
			Durable: true, Resuming: resuming}
	}
	told := func(life uint64, addr string) InstanceInfo {
		w := b(Member)
		w.AskerLife, w.AskerAddr = life, addr
		return w
	}
	started := func(boot uint64) InstanceInfo {
		w := told(4, "a:2")
		w.AskerBoot = boot
		return w
	}
	const life = 4
	for _, tc := range []struct {
		name     string
		settling bool
		who      InstanceInfo
		barred   string
	}{
		{"ourselves by another route", false, other(life, "a:2", false), ""},
		{"ourselves by another route, resuming", true, other(life, "a:2", true), ""},
		{"a living process, older", true, other(3, "z:1", false), "z:1"},
		{"a living process, newer", true, other(5, "z:1", false), "z:1"},
		{"a newcomer while we live", false, other(9, "z:1", true), ""},
		{"both live, ours is the older life", false, other(5, "z:1", false), "z:1"},
		{"both live, ours is the newer life", false, other(3, "z:1", false), ""},
		{"twins, ours sorts last", false, other(life, "a:1", false), "a:1"},
		{"twins, the other sorts last", false, other(life, "z:1", false), ""},
		{"both resume, ours is the older life", true, other(5, "z:1", true), "z:1"},
		{"others know an earlier life", true, told(3, "a:1"), ""},
		{"others know this life", false, told(life, "a:2"), ""},
		{"others know nothing", true, told(0, ""), ""},
		{"others know a later life here", true, told(5, "a:2"), "older copy, and its"},
		{"others know a later life elsewhere", false, told(5, "z:1"),
			"older copy, or another process runs from a copy of it at z:1"},
		{"others know this start", true, started(77), ""},
		{"others know this life and no process", true, started(0), ""},
		{"others know another process of this life", true, started(78), "older copy: another process"},
		{"others know this life elsewhere", true, told(life, "z:1"), "z:1"},
	} {
		c := settled(Member)
		if tc.settling {
			c = resumed(Member)
		}
		before := c.Revision()
		c.tell("b:1", tc.who)
		out := c.Tick(c.now, c.wall, Random{})
		if tc.barred == "" {
			if c.Refusal() != "" {
				t.Errorf("%s: it refuses: %s", tc.name, c.Refusal())
			}
			continue
		}
		if !strings.Contains(c.Refusal(), tc.barred) || !strings.Contains(c.Refusal(), "empty") ||
			c.Waiting() != c.Refusal() {
			t.Errorf("%s: it says %q, want %q and the way out", tc.name, c.Refusal(), tc.barred)
		}
		if len(out.Events) != 1 || out.Events[0].Kind != Barred || len(out.Questions) != 0 ||
			c.Revision() == before || c.State().Refused == "" {
			t.Errorf("%s: events %v, %d questions; want one, stored, and silence", tc.name, kinds(out.Events),
				len(out.Questions))
		}
		if c.Ask(c.now, c.wall, aVoter(), appendQuestion(nil, question{})) != nil {
			t.Errorf("%s: it still answers", tc.name)
		}
	}
}

func TestWhatIsKnownOfLives(t *testing.T) {
	c := settled(Member)
	ask := func(q question) (uint64, string) {
		who, err := decodeInfo(c.Ask(c.now, c.wall, Asker{q.Instance, q.Addr}, appendQuestion(nil, q)))
		if err != nil {
			t.Fatal(err)
		}
		return who.AskerLife, who.AskerAddr
	}
	for _, tc := range []struct {
		q    question
		life uint64
		addr string
	}{
		{question{Instance: nodeidtest.ID(8), Addr: "m:1"}, 0, ""}, // in memory
		{question{Instance: nodeidtest.ID(8), Addr: "m:1", Life: 3, Resuming: true}, 0, ""},
		{question{Instance: nodeidtest.ID(8), Addr: "m:1", Life: 3}, 3, "m:1"},
		{question{Instance: nodeidtest.ID(8), Addr: "n:1", Life: 3}, 3, "m:1"},
		{question{Instance: nodeidtest.ID(8), Addr: "n:1", Life: 2}, 3, "m:1"},
		{question{Instance: nodeidtest.ID(8), Addr: "n:1", Life: 4}, 4, "n:1"},
		{question{Instance: nodeidtest.ID(5), Addr: "z:1", Life: 9, Resuming: true}, 4, "a:2"},
	} {
		if life, addr := ask(tc.q); life != tc.life || addr != tc.addr {
			t.Errorf("%+v is told life %d at %q, want %d at %q", tc.q, life, addr, tc.life, tc.addr)
		}
	}
	ask(question{Instance: nodeidtest.ID(7), Addr: "b:9", Life: 3, Group: 99})
	c.Tick(c.now, c.wall, Random{})
	c.Voters(c.now, 99, 1, []Voter{{Raft: 11, Instance: nodeidtest.ID(5), Addr: "a:2", Life: 4},
		{Raft: 12, Instance: nodeidtest.ID(7), Addr: "b:9", Life: 3}})
	for _, q := range []question{{Instance: nodeidtest.ID(7), Addr: "c:1", Life: 3, Group: 99},
		{Instance: nodeidtest.ID(7), Addr: "c:1", Life: 4, Group: 98}, {Instance: nodeidtest.ID(7), Addr: "c:1",
			Life: 4, Group: 99}} {
		ask(q)
		want := 0
		if q.Life == 4 && q.Group == 99 {
			want = 1
		}
		if out := c.Tick(c.now, c.wall, Random{}); len(out.Events) != want {
			t.Errorf("a voter that says %+v makes %v, want %d to be told", q, kinds(out.Events), want)
		}
	}
	for i := range uint64(2 * maxPlaces) {
		c.acquaintances.alive(presence{instance: nodeidtest.ID(1000 + i), life: 1, boot: 1, addr: "x:1"}, true)
	}
	if len(c.acquaintances.lives) > maxPlaces {
		t.Errorf("%d lives are remembered", len(c.acquaintances.lives))
	}
}

func TestASuspectIsAsked(t *testing.T) {
	c := settled(Member)
	c.Leader(c.now, true)
	c.now += time.Minute
	if out := c.Tick(c.now, c.wall, Random{}); len(out.Questions) != 0 {
		t.Fatal("a member with a leader asks")
	}
	c.SeenElsewhere(c.now, "z:1")
	out := c.Tick(c.now, c.wall, Random{})
	if len(out.Questions) != 1 || out.Questions[0].Addr != "z:1" {
		t.Fatalf("it asks %+v, want a question to z:1", out.Questions)
	}
	c.Result(c.now, out.Questions[0].ID, c.now, Refused, nodeid.ID{}, nil)
	if out = c.Tick(c.now+5*time.Second, c.wall, Random{}); len(out.Questions) != 0 {
		t.Error("it keeps asking though nothing is there")
	}
}

func TestRule5WithADirectory(t *testing.T) {
	c := settled(Bound)
	tick := func(d time.Duration, reached bool) Phase {
		for end := c.now + d; c.now < end; {
			if c.bond.phase == Bound && reached {
				c.tell("b:1", b(Newborn))
			}
			c.Tick(c.now+time.Second, c.wall, Random{Instance: nodeidtest.ID(50)})
		}
		return c.bond.phase
	}
	if tick(time.Minute, false) != Bound ||
		!strings.Contains(c.Waiting(), "its directory keeps the charter until all instances are in reach") {
		t.Errorf("with the other away it is %v and waits for %q", c.bond.phase, c.Waiting())
	}
	if tick(8*time.Second, true) != Bound {
		t.Error("it gave up before the other was in reach for long enough")
	}
	before := c.Revision()
	if tick(4*time.Second, true) != Newborn || c.self.instance != nodeidtest.ID(50) || c.Revision() == before ||
		c.State().Charter != nil {
		t.Errorf("it is %v as %x; want a new life, to be stored without the charter", c.bond.phase, c.self.instance)
	}
	c = settled(Bound)
	c.tell("b:1", b(Member))
	if c.Tick(c.now, c.wall, Random{}); c.bond.phase != Member {
		t.Error("it does not believe a member that the group is born")
	}
	late := b(Member)
	late.Instance, c = nodeidtest.ID(70), settled(Bound)
	c.tell("b:1", late)
	if c.Tick(c.now, c.wall, Random{}); c.bond.phase != Bound {
		t.Error("it believes an instance that is not on the list, so a group that is never born is kept forever")
	}
}

func TestADurableMemberNeverGivesUp(t *testing.T) {
	for _, other := range []InstanceInfo{b(Newborn), b(Member), {Instance: nodeidtest.ID(8), Name: "b", Addr: "b:1",
		Phase: Member, Group: 70, Leader: true}} {
		c := settled(Member)
		for range 100 {
			c.now += time.Minute
			c.tell("b:1", other)
			c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
		}
		if c.bond.phase != Member || c.bond.group != 99 {
			t.Errorf("having met %+v it is %v of %x", other, c.bond.phase, c.bond.group)
		}
		if other.Leader && !strings.Contains(c.Waiting(), `"b" (b:1) belongs to group 0000000000000046`) {
			t.Errorf("it waits for %q", c.Waiting())
		}
	}
}

func TestUnsavedPromisesNothing(t *testing.T) {
	c, out := fresh(t)
	out = c.Unsaved(out, "full")
	if len(out.Events) != 0 || len(out.Questions) != 0 || out.Next != c.now {
		t.Errorf("what could not be stored is carried out: %v, %d questions", kinds(out.Events), len(out.Questions))
	}
	if out = c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(51)}); c.bond.phase != Newborn ||
		c.self.instance != nodeidtest.ID(51) || !reflect.DeepEqual(kinds(out.Events), []EventKind{Restarted}) {
		t.Errorf("then it is %v as %x with %v", c.bond.phase, c.self.instance, kinds(out.Events))
	}
	for range 10 {
		c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Settings: c.self.settings, Rules: 3,
			WallUnixMS: c.wall})
		c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(52), Group: 61, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	}
	if c.bond.phase != Newborn || !strings.Contains(c.Waiting(), "cannot be written (full)") {
		t.Errorf("it is %v and waits for %q", c.bond.phase, c.Waiting())
	}
	m := settled(Member)
	if m.Unsaved(Output{}, "full"); m.bond.phase != Member || !m.directory.durable {
		t.Error("a member whose directory holds its group gave up")
	}
}

// fresh returns a durable newborn that has just bound itself to a charter, and the output of that
// Tick.
func fresh(t *testing.T) (*Core, Output) {
	t.Helper()
	c, _ := pair()
	c.directory.durable = true
	out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50), Group: 60, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	if c.bond.phase != Bound || len(out.Events) != 1 || len(out.Questions) == 0 || c.Revision() == 0 {
		t.Fatalf("no proposal: %v", c.bond.phase)
	}
	return c, out
}

func TestStateReturns(t *testing.T) {
	_, ch := pair()
	ch.Settings = ch.Settings.normal()
	for _, st := range []State{
		{Instance: nodeidtest.ID(5), Addr: "a:1"},
		{Instance: nodeidtest.ID(5), Phase: Bound, Group: 99, Charter: &ch, Settings: ch.Settings, Addr: "a:1", At: 1,
			Raft: 11},
		{Instance: nodeidtest.ID(5), Phase: Member, Group: 98, Settings: ch.Settings, Addr: "a:1", Refused: "copied",
			At: 1 << 40},
		{Instance: nodeidtest.ID(5), Addr: "a:1", GaveUp: []uint64{9, 7}, FloorUnixMS: 1 << 41},
		{
			Instance: nodeidtest.ID(5), Phase: Member, Group: 99, Charter: &ch, Settings: ch.Settings, Addr: "a:1",
			At: 9, Raft: 33, Term: 4, UsedAt: 3,
			Used: []Used{{Raft: 11, At: 4}, {Raft: 22, At: 8}}, Supersedes: []uint64{5, 6},
		},
	} {
		enc := st.Append(nil)
		got, err := DecodeState(enc)
		if err != nil || !bytes.Equal(got.Append(nil), enc) || !reflect.DeepEqual(got, st) {
			t.Errorf("%+v came back as %+v, %v", st, got, err)
		}
		for n := range enc {
			if _, err := DecodeState(enc[:n]); err == nil {
				t.Errorf("the first %d of %d bytes were accepted", n, len(enc))
			}
		}
	}
	strange := ch
	strange.List = ch.List[1:]
	for name, st := range map[string]State{
		"no ID":                    {},
		"bound to nothing":         {Instance: nodeidtest.ID(5), Phase: Bound, Group: 99, At: 1},
		"a newborn with a group":   {Instance: nodeidtest.ID(5), Group: 99, At: 1},
		"the charter of another":   {Instance: nodeidtest.ID(6), Phase: Bound, Group: 99, Charter: &ch, At: 1},
		"another group's charter":  {Instance: nodeidtest.ID(5), Phase: Member, Group: 98, Charter: &ch, At: 1},
		"a newborn with a charter": {Instance: nodeidtest.ID(5), Charter: &ch},
		"a charter that is none":   {Instance: nodeidtest.ID(7), Phase: Bound, Group: 99, Charter: &strange, At: 1},
		"a newborn with a replica": {Instance: nodeidtest.ID(5), Raft: 7},
		"a newborn of replicas":    {Instance: nodeidtest.ID(5), Used: []Used{{Raft: 7, At: 1}}},
		"no configuration":         {Instance: nodeidtest.ID(5), Phase: Member, Group: 98},
		"a present ID that is over": {Instance: nodeidtest.ID(5), Phase: Member, Group: 98, At: 1, Raft: 7,
			Used: []Used{{Raft: 7, At: 1}}},
		"groups out of order": {Instance: nodeidtest.ID(5), Phase: Member, Group: 98, At: 1,
			Supersedes: []uint64{6, 5}},
	} {
		if _, err := DecodeState(st.Append(nil)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzState(f *testing.F) {
	_, ch := pair()
	for _, st := range []State{
		{Instance: nodeidtest.ID(5), Addr: "a:1", GaveUp: []uint64{9, 7}, FloorUnixMS: 1 << 41},
		{Instance: nodeidtest.ID(5), Phase: Bound, Group: 99, Charter: &ch, Settings: ch.Settings, Addr: "a:1", At: 1,
			Raft: 11},
		{
			Instance: nodeidtest.ID(5), Phase: Member, Group: 99, Charter: &ch, Settings: ch.Settings, Addr: "a:1",
			At: 9, Raft: 33, Term: 4,
			Used: []Used{{Raft: 11, At: 4}, {Raft: 22, At: 8}}, Supersedes: []uint64{5, 6},
		},
	} {
		f.Add(st.Append(nil))
	}
	f.Add(AppendVoters(nil, ch.Voters))
	f.Fuzz(func(t *testing.T, b []byte) {
		if voters, err := DecodeVoters(b); err == nil && !bytes.Equal(AppendVoters(nil, voters), b) {
			t.Fatalf("% x came back as % x", b, AppendVoters(nil, voters))
		}
		st, err := DecodeState(b)
		if err != nil {
			return
		}
		if again, err := DecodeState(st.Append(nil)); err != nil || !reflect.DeepEqual(again, st) {
			t.Fatalf("%+v came back as %+v, %v", st, again, err)
		}
		c := New(Config{Instance: nodeidtest.ID(1), Name: "a", Addr: "a:1", Settings: ch.Settings, Durable: true,
			Stored: &st})
		for i := range 40 {
			c.Tick(time.Duration(i)*time.Second, 1, Random{Instance: nodeidtest.ID(1), Group: 2,
				Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
			_ = c.Waiting()
		}
	})
}

// TestTheFirstProcessOfALifeIsKnown checks that a second process of one life does not replace the
// first one in the memory of a voter.
func TestTheFirstProcessOfALifeIsKnown(t *testing.T) {
	c := settled(Member)
	for _, q := range []struct{ life, boot, want uint64 }{{4, 1, 1}, {4, 2, 1}, {3, 3, 1}, {5, 4, 4}, {5, 5, 4}} {
		ask := question{Instance: nodeidtest.ID(8), Addr: "m:1", Life: q.life, Boot: q.boot}
		who, err := decodeInfo(c.Ask(c.now, c.wall, Asker{ask.Instance, ask.Addr}, appendQuestion(nil, ask)))
		if err != nil || who.AskerBoot != q.want {
			t.Errorf("%+v: it knows process %d, %v", q, who.AskerBoot, err)
		}
	}
}

// TestALogThatWentBackIsRefusedForGood checks that the reason is stored, since the directory must
// not be used at the next start either.
func TestALogThatWentBackIsRefusedForGood(t *testing.T) {
	c := settled(Member)
	c.WentBack(c.now, "the log ends at entry 3")
	out := c.Tick(c.now, c.wall, Random{})
	if len(out.Events) != 1 || out.Events[0].Kind != Barred || c.State().Refused != c.Refusal() ||
		c.Refusal() != "this directory was restored from an older copy (the log ends at entry 3): empty the "+
			"directory, and the instance joins as a new one" {
		t.Errorf("%v: %q, stored %q", kinds(out.Events), c.Refusal(), c.State().Refused)
	}
}
