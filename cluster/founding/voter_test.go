package founding

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// configuration returns three replicas of other instances and, for each of the given raft IDs, a
// replica of instance 5 at a:2.
func configuration(rafts ...uint64) []Voter {
	voters := []Voter{{Raft: 12, Instance: nodeidtest.ID(7), Addr: "b:1", Life: 1},
		{Raft: 13, Instance: nodeidtest.ID(8), Addr: "c:1", Life: 1},
		{Raft: 14, Instance: nodeidtest.ID(9), Addr: "d:1", Life: 1}}
	for _, raft := range rafts {
		voters = append(voters, Voter{Raft: raft, Instance: nodeidtest.ID(5), Addr: "a:2", Life: 4, Learner: true})
	}
	return voters
}

// aVoter returns the first replica of the list that the function configuration returns.
func aVoter() Asker { return Asker{nodeidtest.ID(7), "b:1"} }

// ordinary returns instance 5 at a:2, a member of group 99. It knows configuration 10, which does
// not name the instance.
func ordinary(durable bool) *Core {
	_, ch := pair()
	c := New(Config{Instance: nodeidtest.ID(5), Name: "a", Addr: "a:2", Settings: ch.Settings, Rules: 3,
		Durable: durable, Life: 4})
	c.now, c.wall = time.Second, 1_000_000
	c.bond.rulesOf = ch.Settings.normal()
	c.belong(99, 10, configuration(), "")
	c.Leader(c.now, true)
	c.happened()
	return c
}

func (c *Core) happened() []Event {
	out := c.Tick(c.now, c.wall, Random{Instance: nodeidtest.ID(50)})
	return slices.DeleteFunc(out.Events, func(e Event) bool { return e.Kind == Heard })
}

func (c *Core) bring(t *testing.T, raft, term, at uint64, voters []Voter) (PreparedState, string) {
	t.Helper()
	b := c.Ask(c.now, c.wall, aVoter(),
		AppendPrepare(nil, Prepare{To: c.self.instance, Group: 99, Raft: raft, Term: term, At: at, Voters: voters}))
	a, err := DecodePrepared(c.self.instance, b)
	if err != nil || a.Instance != c.self.instance || a.Raft != raft {
		t.Fatalf("a Prepare of %d is answered with %+v, %v", raft, a, err)
	}
	return a.State, a.Detail
}

type step struct {
	why               string
	do                func(c *Core) (PreparedState, string)
	state             PreparedState
	detail            string
	raft              uint64 // after the step
	removed, prepared uint64 // raft IDs in the expected events; zero means no event
	unchanged         bool   // nothing needs to be stored
	prepare, term, at uint64 // fields of a Prepare, if do is nil
	voters            []Voter
	// if do is nil, announced makes a voter send the configuration, and voterOwn makes this
	// instance apply it
	announced, voterOwn bool
}

func (s *step) run(t *testing.T, c *Core) {
	t.Helper()
	before := c.Revision()
	var state PreparedState
	var detail string
	switch {
	case s.do != nil:
		state, detail = s.do(c)
	case s.announced:
		if c.Ask(c.now, c.wall, aVoter(),
			AppendPush(nil, Push{To: c.self.instance, Group: 99, At: s.at, Voters: s.voters})) == nil {
			t.Errorf("%s: an announcement is not answered", s.why)
		}
	case s.voterOwn:
		c.Voters(c.now, 99, s.at, s.voters)
	default:
		state, detail = c.bring(t, s.prepare, s.term, s.at, s.voters)
	}
	if state != s.state || !strings.Contains(detail, s.detail) {
		t.Errorf("%s: the answer is %v %q, want %v %q", s.why, state, detail, s.state, s.detail)
	}
	if (c.Revision() == before) != s.unchanged {
		t.Errorf("%s: the revision went from %d to %d before the answer left", s.why, before, c.Revision())
	}
	var want []Event
	if s.removed != 0 {
		want = append(want, Event{Kind: Removed, Group: 99, Raft: s.removed})
	}
	if s.prepared != 0 {
		want = append(want, Event{Kind: Prepared, Group: 99, Raft: s.prepared})
	}
	if got := c.happened(); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: it tells %+v, want %+v", s.why, got, want)
	}
	if c.Raft() != s.raft || c.State().Raft != s.raft {
		t.Errorf("%s: its raft ID is %d, and %d in the State, want %d", s.why, c.Raft(), c.State().Raft, s.raft)
	}
}

func TestTheLifeOfAVoter(t *testing.T) {
	lives := map[string][]step{
		"brought in, and removed": {
			{why: "a Prepare", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, prepared: 77},
			{why: "the same again", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, unchanged: true},
			{why: "a configuration that does not know it yet", announced: true, at: 11, voters: configuration(),
				raft: 77},
			{why: "one that names it", voterOwn: true, at: 12, voters: configuration(77), raft: 77},
			{why: "an older one", announced: true, at: 11, voters: configuration(), raft: 77, unchanged: true},
			{why: "another ID while it is named", prepare: 78, term: 4, at: 12, voters: configuration(77), raft: 77,
				state: Declined, detail: "runs another", unchanged: true},
			{why: "a stale leader that does not know it", prepare: 78, term: 2, at: 11, voters: configuration(),
				raft: 77, state: Declined, detail: "runs another", unchanged: true},
			{why: "one that does not name it any more", announced: true, at: 14, voters: configuration(), removed: 77},
			{why: "the Prepare of then, again", prepare: 77, term: 3, at: 10, voters: configuration(), state: Ended,
				unchanged: true},
			{why: "the configuration of then, again", announced: true, at: 12, voters: configuration(77),
				unchanged: true},
			{why: "another ID", prepare: 79, term: 3, at: 14, voters: configuration(), raft: 79, prepared: 79},
		},
		"prepared anew before it was added": {
			{why: "a Prepare", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, prepared: 77},
			{why: "the next leader", prepare: 78, term: 4, at: 10, voters: configuration(), raft: 78, removed: 77,
				prepared: 78},
			{why: "the leader before", prepare: 76, term: 3, at: 10, voters: configuration(), raft: 78,
				state: Declined, detail: "later leader", unchanged: true},
			{why: "the first again", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 78, state: Ended,
				unchanged: true},
		},
		"removed by what a Prepare brings": {
			{why: "a Prepare", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, prepared: 77},
			{why: "named", voterOwn: true, at: 12, voters: configuration(77), raft: 77},
			{why: "prepared by the leader that has removed it", prepare: 78, term: 3, at: 13, voters: configuration(), raft: 78,
				removed: 77, prepared: 78},
		},
		"it hears of its removal before it hears that it was added": {
			{why: "a Prepare", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, prepared: 77},
			{why: "the later one first", announced: true, at: 14, voters: configuration(), raft: 77},
			{why: "then the earlier", voterOwn: true, at: 12, voters: configuration(77), removed: 77},
		},
		"it stops by itself": {
			{why: "a Prepare", prepare: 77, term: 3, at: 10, voters: configuration(), raft: 77, prepared: 77},
			{why: "retired", do: func(c *Core) (PreparedState, string) { c.Retired(c.now, 77); return 0, "" }},
			{why: "retired again", do: func(c *Core) (PreparedState, string) { c.Retired(c.now, 77); return 0, "" },
				unchanged: true},
			{why: "the Prepare again", prepare: 77, term: 3, at: 10, voters: configuration(), state: Ended,
				unchanged: true},
			{why: "named after all", announced: true, at: 12, voters: configuration(77)},
			{why: "an ID that is in the log and was not used here", prepare: 80, term: 3, at: 13,
				voters: configuration(77, 80), state: Ended},
			{why: "another ID", prepare: 78, term: 3, at: 13, voters: configuration(77), raft: 78, prepared: 78},
		},
	}
	for name, life := range lives {
		for _, durable := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c := ordinary(durable)
				for _, s := range life {
					s.run(t, c)
				}
			})
		}
	}
}

func TestPrepareConditions(t *testing.T) {
	p := Prepare{To: nodeidtest.ID(5), Group: 99, Raft: 77, Term: 3, At: 11, Voters: configuration()}
	for name, tc := range map[string]struct {
		spoil  func(c *Core, p *Prepare)
		silent bool
		detail string
	}{
		"another life": {func(_ *Core, p *Prepare) { p.To = nodeidtest.ID(4) }, true, ""},
		"another group": {func(_ *Core, p *Prepare) { p.Group = 98 }, false,
			"does not belong to group 0000000000000062"},
		"a newborn": {func(c *Core, _ *Prepare) { c.bond.phase, c.bond.group = Newborn, 0 }, false,
			"does not belong"},
		"bound":           {func(c *Core, _ *Prepare) { c.bond.phase = Bound }, false, "does not belong"},
		"it looks around": {func(c *Core, _ *Prepare) { c.directory.settling = true }, false, "still looking for other"},
		"it cannot store it": {func(c *Core, _ *Prepare) { c.Unsaved(Output{}, "full") }, false,
			"cannot be written (full)"},
		"its directory is a copy": {func(c *Core, _ *Prepare) { c.bar("copied") }, true, ""},
		"this life is over":       {func(c *Core, _ *Prepare) { c.doomed = "over" }, true, ""},
	} {
		c, q := ordinary(true), p
		tc.spoil(c, &q)
		b := c.Ask(c.now, c.wall, aVoter(), AppendPrepare(nil, q))
		if tc.silent {
			if b != nil {
				t.Errorf("%s: answered", name)
			}
			continue
		}
		a, err := DecodePrepared(c.self.instance, b)
		if err != nil || a.State != Declined || !strings.Contains(a.Detail, tc.detail) || c.Raft() != 0 {
			t.Errorf("%s: %+v, %v, raft ID %d; want it refused with %q", name, a, err, c.Raft(), tc.detail)
		}
	}
}

func TestMoreIDsThanAreRemembered(t *testing.T) {
	c := ordinary(false)
	for raft := uint64(100); raft < 100+maxUsed+20; raft++ {
		at := 11 + (raft-100)*2
		if state, detail := c.bring(t, raft, 1, at, configuration()); state != Running {
			t.Fatalf("%d: %v %s", raft, state, detail)
		}
		c.Voters(c.now, 99, at+1, configuration(raft))
		if raft%2 == 0 {
			c.Retired(c.now, raft)
		}
	}
	if len(c.replica.used) != maxUsed {
		t.Errorf("%d IDs are remembered", len(c.replica.used))
	}
	c.Retired(c.now, c.Raft())
	for raft := uint64(100); raft < 100+maxUsed+20; raft++ {
		if state, _ := c.bring(t, raft, 1, 11+(raft-100)*2, configuration()); state == Running {
			t.Errorf("%d has begun anew", raft)
		}
	}
	st := c.State()
	if got, err := DecodeState(st.Append(nil)); err != nil || len(got.Used) != maxUsed || got.UsedAt != st.UsedAt {
		t.Errorf("the State does not return: %v", err)
	}
}

// startAgain restarts a core from its directory. It returns the core and its events once the core
// takes part.
func (c *Core) startAgain(t *testing.T) (*Core, []Event) {
	t.Helper()
	st := c.State()
	stored, err := DecodeState(st.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	stored.Voters = st.Voters
	n := New(Config{Instance: nodeidtest.ID(51), Name: c.self.name, Addr: c.self.addr,
		Settings: c.self.settings, Rules: c.self.rules,
		Durable: true, Life: c.self.life + 1, Stored: &stored})
	n.now, n.wall = c.now, c.wall
	events := n.happened()
	n.now += settleWithin
	return n, append(events, n.happened()...)
}

func TestAVoterGoesOnWithItsDirectory(t *testing.T) {
	told := func(events []Event) (text []string) {
		for _, e := range events {
			text = append(text, map[EventKind]string{BoundTo: "bound", Prepared: "prepared", Joined: "joined",
				Removed: "removed"}[e.Kind])
			if e.Kind != Joined {
				text[len(text)-1] += " " + strconv.FormatUint(e.Raft, 16)
			}
		}
		return text
	}
	founder := func() *Core { c := settled(Member); c.happened(); return c }
	for name, tc := range map[string]struct {
		c    *Core
		do   func(c *Core)
		want []string
	}{
		"a plain member": {ordinary(true), func(*Core) {}, []string{"joined"}},
		"prepared": {ordinary(true),
			func(c *Core) { c.bring(t, 0x77, 3, 10, configuration()) }, []string{"prepared 77", "joined"}},
		"a founder": {founder(), func(*Core) {}, []string{"bound b", "joined"}},
		"a founder that was removed": {founder(), func(c *Core) { c.Voters(c.now, 99, 5, configuration()) },
			[]string{"bound b", "joined", "removed b"}},
		"a founder that is no longer needed": {founder(),
			func(c *Core) { c.Voters(c.now, 99, 5, configuration()); c.Retired(c.now, 11) }, []string{"joined"}},
		"a founder that retired": {founder(), func(c *Core) { c.Retired(c.now, 11) }, []string{"joined"}},
		"removed and prepared again": {founder(),
			func(c *Core) { c.Guide(aVoter().Instance); c.bring(t, 0x77, 3, 10, configuration()) },
			[]string{"prepared 77", "joined"}},
	} {
		tc.do(tc.c)
		at := tc.c.At()
		n, events := tc.c.startAgain(t)
		joined := slices.IndexFunc(events, func(e Event) bool { return e.Kind == Joined })
		if !reflect.DeepEqual(told(events), tc.want) || n.At() != at || events[joined].At != at {
			t.Errorf("%s: it tells %v at configuration %d, want %v at %d", name, told(events), n.At(), tc.want, at)
		}
	}

	// If the core learns during settling that its replica was removed, it stores this immediately
	// and emits the event once, after settling.
	c := founder()
	st := c.State()
	n := New(Config{Instance: nodeidtest.ID(51), Name: "a", Addr: "a:2", Settings: c.self.settings, Rules: 3,
		Durable: true, Life: 9, Stored: &st})
	n.now = c.now
	n.happened()
	n.Guide(aVoter().Instance)
	n.Ask(n.now, n.wall, aVoter(),
		AppendPush(nil, Push{To: nodeidtest.ID(5), Group: 99, At: 7, Voters: configuration()}))
	if got := n.happened(); len(got) != 0 || n.State().Raft != 0 {
		t.Errorf("while it looks around it tells %v, and stores raft ID %d", told(got), n.State().Raft)
	}
	n.now += settleWithin
	if got, want := told(n.happened()), []string{"bound b", "joined", "removed b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("then it tells %v, want %v", got, want)
	}
}

// A bound voter learns of the founding only from a later configuration, which may have removed it.
func TestBornLongAgo(t *testing.T) {
	for name, tc := range map[string]struct {
		voters []Voter
		raft   uint64
		want   []EventKind
	}{
		"with it":    {configuration(11), 11, []EventKind{AllBound, Joined}},
		"without it": {configuration(), 0, []EventKind{AllBound, Joined, Removed}},
	} {
		for _, durable := range []bool{true, false} {
			c, ch := pair()
			c.directory.durable = durable
			c.bind(&ch)
			c.happened()
			c.Guide(nodeidtest.ID(7))
			c.tell("b:1", InstanceInfo{Instance: nodeidtest.ID(7), Name: "b", Addr: "b:1", Phase: Member, Group: 99, At: 8,
				Voters: tc.voters, Durable: durable, Life: 1})
			if got := kinds(c.happened()); !reflect.DeepEqual(got, tc.want) || c.Raft() != tc.raft || c.At() != 8 ||
				len(c.bond.voters) != len(tc.voters) {
				t.Errorf("%s (directory: %v): it tells %v, raft ID %d, configuration %d", name, durable, got,
					c.Raft(), c.At())
			}
		}
	}
}

func TestPreparedAndNotSaved(t *testing.T) {
	c := ordinary(true)
	c.bring(t, 77, 3, 10, configuration())
	out := c.Unsaved(c.Tick(c.now, c.wall, Random{}), "full")
	for _, e := range out.Events {
		if e.Kind == Prepared {
			t.Error("a replica is started that the directory does not know")
		}
	}
	if c.Raft() != 0 || len(c.happened()) != 0 {
		t.Errorf("its raft ID is %d", c.Raft())
	}
	if a, err := DecodePrepared(c.self.instance,
		c.Ask(c.now, c.wall, aVoter(),
			AppendPrepare(nil, Prepare{To: nodeidtest.ID(5), Group: 99, Raft: 78, Term: 3, At: 10,
				Voters: configuration()}))); err != nil || a.State != Declined {
		t.Errorf("it answers %+v, %v", a, err)
	}
}
