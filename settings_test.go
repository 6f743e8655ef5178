package mortise

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

func groupOf(change func(*groupSettings)) groupSettings {
	g := groupSettings{Founders: []string{"a", "b", "c"}, Voters: 3, SessionTTL: 10 * time.Second, Grace: 10 * time.Second, SessionBytes: 64 << 20, GroupBytes: 256 << 20}
	if change != nil {
		change(&g)
	}
	return g
}

func registeredAs(each ...groupSettings) []record {
	var all []record
	for i, g := range each {
		all = append(all, record{Instance: nodeidtest.ID(uint64(i + 1)).String(), Name: fmt.Sprint("n", i+1), Rules: 1, Settings: g.named(), Founders: g.Founders})
	}
	return all
}

func counted(records ...record) *census {
	var c census
	for i := range records {
		c.add(&records[i])
	}
	return &c
}

// TestSettingsAreAdoptedWhenAllNameThem: a setting is adopted exactly when all registered instances, and the one that looks, name the same value
// and the group has another. Until then people are shown who says what.
func TestSettingsAreAdoptedWhenAllNameThem(t *testing.T) {
	old := groupOf(nil)
	five := groupOf(func(g *groupSettings) { g.Voters = 5 })
	long := groupOf(func(g *groupSettings) { g.SessionTTL, g.Grace = time.Minute, time.Minute })
	longOnly := groupOf(func(g *groupSettings) { g.SessionTTL = time.Minute })
	short := groupOf(func(g *groupSettings) { g.SessionTTL = 2 * time.Second })
	others := groupOf(func(g *groupSettings) { g.Founders = []string{"a", "d", "n1"} })
	replicas := groupOf(func(g *groupSettings) { g.Founders, g.Replicas = nil, 3 })
	budget := groupOf(func(g *groupSettings) { g.SessionBytes, g.GroupBytes = 128<<20, 1<<30 })
	noGrace := groupOf(func(g *groupSettings) { g.Grace = 0 })
	both := groupOf(func(g *groupSettings) { g.Voters, g.Founders = 5, []string{"a", "d", "n1"} })
	many := groupOf(func(g *groupSettings) {
		g.Founders, g.Voters = nil, 5
		for i := range 63 {
			g.Founders = append(g.Founders, fmt.Sprintf("%02d%s", i, strings.Repeat("x", 100)))
		}
		g.Founders = append(g.Founders, "n1")
	})
	for name, c := range map[string]struct {
		own      groupSettings
		say      []groupSettings
		longest  time.Duration
		adopt    groupSettings
		disagree string
	}{
		"all as the group":       {old, []groupSettings{old, old}, 0, old, ""},
		"nobody is registered":   {five, nil, 0, old, ""},
		"one of three differs":   {five, []groupSettings{five, old, old}, 0, old, "Voters 3: 5 n1"},
		"one of three is behind": {five, []groupSettings{five, old, five}, 0, old, "Voters 3: 5 n1,n3"},
		"three values":           {five, []groupSettings{five, old, groupOf(func(g *groupSettings) { g.Voters = 1 })}, 0, old, "Voters 3: 1 n3, 5 n1"},
		"all differ alike":       {five, []groupSettings{five, five, five}, 0, five, "Voters 3: 5 n1,n2,n3"},
		"all but this one":       {old, []groupSettings{five, five}, 0, old, "Voters 3: 5 n1,n2"},
		"a budget":               {budget, []groupSettings{budget, budget}, 0, budget, "MaxSessionBytes 64 MiB: 128 MiB n1,n2; MaxGroupBytes 256 MiB: 1 GiB n1,n2"},
		"a budget of one":        {budget, []groupSettings{budget, old}, 0, old, "MaxSessionBytes 64 MiB: 128 MiB n1; MaxGroupBytes 256 MiB: 1 GiB n1"},
		"a longer TTL":           {long, []groupSettings{long, long}, 10 * time.Second, long, "SessionTTL 10s: 1m0s n1,n2; Grace 10s: 1m0s n1,n2"},
		"a longer TTL than the grace": {
			longOnly, []groupSettings{longOnly}, 10 * time.Second, old, "SessionTTL 10s: 1m0s n1 (the grace would be shorter than the TTL)",
		},
		"a shorter TTL":                   {short, []groupSettings{short}, 2 * time.Second, short, "SessionTTL 10s: 2s n1"},
		"a shorter TTL, a longer session": {short, []groupSettings{short}, 10 * time.Second, old, "SessionTTL 10s: 2s n1 (a session with a TTL of 10s lives)"},
		"no grace":                        {noGrace, []groupSettings{noGrace}, 10 * time.Second, noGrace, "Grace 10s: 0s n1"},
		"other founders":                  {others, []groupSettings{others, others}, 0, others, "Founders [a, b, c]: [a, d, n1] n1,n2"},
		"replicas, not founders":          {replicas, []groupSettings{replicas, replicas}, 0, replicas, "Founders [a, b, c]: 3 replicas n1,n2"},
		"one setting of two": {
			both, []groupSettings{both, five}, 0, five,
			"Voters 3: 5 n1,n2; Founders [a, b, c]: [a, d, n1] n1",
		},
		"too long for the state, the others adopted": {
			many, []groupSettings{many}, 0, five,
			"Voters 3: 5 n1; Founders [a, b, c]: 64 names (" + many.named().Founders + ") n1 (the names of the founders are longer than 4096 bytes together)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := agree(old, c.own, counted(registeredAs(c.say...)...), c.longest)
			if !reflect.DeepEqual(a.adopt, c.adopt) || (a.blob != nil) != !reflect.DeepEqual(a.adopt, old) {
				t.Errorf("adopts %+v with %q, want %+v", a.adopt, a.blob, c.adopt)
			}
			if got := spoken(a.differ); got != c.disagree {
				t.Errorf("shows\n%s\nwant\n%s", got, c.disagree)
			}
			if a.blob == nil {
				return
			}
			again, err := presentSettings(lockfsm.Charter{
				SessionTTL: a.adopt.SessionTTL, Settings: a.blob,
				Limits: lockfsm.Limits{SessionBytes: uint64(a.adopt.SessionBytes), GroupBytes: uint64(a.adopt.GroupBytes)},
			})
			if err != nil || !reflect.DeepEqual(again, c.adopt) {
				t.Fatalf("what is adopted comes back as %+v, %v", again, err)
			}
			if b := agree(again, c.own, counted(registeredAs(c.say...)...), c.longest); b.blob != nil {
				t.Errorf("adopted, and then again: %+v", b)
			}
		})
	}
}

// TestLeaversDoNotCount: founders are adopted when all that stay name them, and one of them is there. A
// leader that leaves proposes what the others name, if they say which names that are.
func TestLeaversDoNotCount(t *testing.T) {
	one := groupOf(func(g *groupSettings) { g.Founders = []string{"n1"} })
	three := groupOf(func(g *groupSettings) { g.Founders = []string{"n1", "n2", "n3"} })
	replicas := groupOf(func(g *groupSettings) { g.Founders, g.Replicas = nil, 3 })
	for name, c := range map[string]struct {
		group, own groupSettings
		say        []groupSettings
		leave      []int // places among say; 0 is the one that looks
		change     func(all []record)
		adopt      groupSettings
	}{
		"the founder leaves":          {one, one, []groupSettings{one, three, three}, []int{0}, nil, three},
		"the founder stays":           {one, one, []groupSettings{one, three, three}, nil, nil, one},
		"another leaves":              {one, one, []groupSettings{one, three, one}, []int{1}, nil, one},
		"one that stays names others": {one, one, []groupSettings{one, three, one}, []int{0}, nil, one},
		"to replicas":                 {one, one, []groupSettings{one, replicas, replicas}, []int{0}, nil, replicas},
		"all leave":                   {one, one, []groupSettings{one, three, three}, []int{0, 1, 2}, nil, one},
		"a follower leaves":           {three, one, []groupSettings{one, three, three}, []int{1, 2}, nil, one},
		"the one founder leaves":      {three, one, []groupSettings{one, one, one}, []int{0}, nil, three},
		"no names": {one, one, []groupSettings{one, three, three}, []int{0}, func(all []record) {
			all[1].Founders, all[2].Founders = nil, nil
		}, one},
		"other names": {one, one, []groupSettings{one, three, three}, []int{0}, func(all []record) {
			all[1].Founders, all[2].Founders = []string{"n1", "n2", "x"}, []string{"n1", "n2", "n3", "n3"}
		}, one},
		"unreadable records": {one, one, []groupSettings{one, three}, []int{0}, func(all []record) { all[1] = record{} }, one},
	} {
		t.Run(name, func(t *testing.T) {
			all := registeredAs(c.say...)
			for _, i := range c.leave {
				all[i].leaving = true
			}
			if c.change != nil {
				c.change(all)
			}
			registered := counted(all...)
			a := agree(c.group, proposed(c.own, registered, slices.Contains(c.leave, 0)), registered, 0)
			if !reflect.DeepEqual(a.adopt, c.adopt) || (a.blob != nil) != !reflect.DeepEqual(c.adopt, c.group) {
				t.Errorf("adopts %+v, want %+v", a.adopt, c.adopt)
			}
		})
	}
}

// spoken is what people are shown, on one line.
func spoken(all []Disagreement) string {
	var lines []string
	for _, d := range all {
		var others []string
		for _, o := range d.Others {
			others = append(others, o.Value+" "+strings.Join(o.Names, ","))
		}
		line := d.Setting + " " + d.Group + ": " + strings.Join(others, ", ")
		if d.Why != "" {
			line += " (" + d.Why + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// TestUnreadableRecordsAgreeToNothing: whoever wrote them may want anything.
func TestUnreadableRecordsAgreeToNothing(t *testing.T) {
	five := groupOf(func(g *groupSettings) { g.Voters = 5 })
	for _, b := range []string{"", "{", `{"name":7,"rules":9}`, "null", `{"settings":{"voters":"5"}}`} {
		all := counted(append(registeredAs(five), decodeRecord([]byte(b)))...)
		a := agree(groupOf(nil), five, all, 0)
		if a.blob != nil {
			t.Errorf("%q: adopted %s", b, a.blob)
		}
		if got := spoken(a.differ); !strings.HasPrefix(got, "Voters 3: 5 n1, not known ?; ") {
			t.Errorf("%q: shows %s", b, got)
		}
		if v := supported(all, nil); v != 0 {
			t.Errorf("%q: knows version %d", b, v)
		}
	}
}

// TestManyThatDifferAreCounted: a fleet of a thousand that is half updated is told in a line.
func TestManyThatDifferAreCounted(t *testing.T) {
	var all census
	each := groupOf(func(g *groupSettings) { g.Voters = 5 })
	other := groupOf(func(g *groupSettings) { g.Voters, g.Grace = 5, time.Minute })
	for i := range 1000 {
		r := record{Name: fmt.Sprintf("n%03d", i), Settings: each.named()}
		if i%2 == 0 {
			r.Settings = other.named()
		}
		all.add(&r)
	}
	differ := agree(groupOf(nil), each, &all, 0).differ
	if got, want := differ[0].String(), "Voters: the group has 3; 5 on n000, n001, n002, n003, n004, n005, n006, n007, n008, n009 and 990 more"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestTheCensusForgets: what is taken away leaves nothing, and what is added twice is there until it is taken away twice.
func TestTheCensusForgets(t *testing.T) {
	var c census
	all := registeredAs(groupOf(nil), groupOf(nil), groupOf(func(g *groupSettings) { g.Voters = 5 }))
	all = append(all, all[0], record{})
	for i := range all {
		c.add(&all[i])
		c.lives(time.Duration(i+1), 1)
	}
	c.remove(&all[0])
	c.lives(5, -1)
	if n := c.contents[contentOf(&all[0])]; n.count != 2 || len(n.names) != 2 || c.instances[nodeidtest.ID(1)] != 1 || c.longest() != 4 {
		t.Errorf("%+v of %+v, the longest %v", n, c, c.longest())
	}
	for i := range all[1:] {
		c.remove(&all[i+1])
		c.lives(time.Duration(i+1), -1)
	}
	if len(c.contents)+len(c.instances)+len(c.ttls) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestTheTTLInForceIsTheMachines: the rules go by the charter's TTL and budgets, whatever the settings say.
func TestTheTTLInForceIsTheMachines(t *testing.T) {
	g, err := presentSettings(lockfsm.Charter{SessionTTL: 7 * time.Second, Settings: groupOf(nil).encode(), Limits: lockfsm.Limits{SessionBytes: 5, GroupBytes: 6}})
	if err != nil || !reflect.DeepEqual(g, groupOf(func(g *groupSettings) { g.SessionTTL, g.SessionBytes, g.GroupBytes = 7*time.Second, 5, 6 })) {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := presentSettings(lockfsm.Charter{}); err == nil {
		t.Error("settings out of nothing")
	}
}

// TestFoundersGoByTheirNames: in any order, and no two different lists pass for one.
func TestFoundersGoByTheirNames(t *testing.T) {
	named := func(names ...string) settings { return Config{Join: []string{"x"}, Founders: names}.group().named() }
	if named("b", "a") != named("a", "b") || named("a", "b", "a") != named("a", "b") {
		t.Error("the order of the founders matters")
	}
	all := []settings{named(), named("a"), named("ab"), named("a", "b"), named("a", "bc"), named("ab", "c"), named("a", "b", "c")}
	for i, s := range all {
		if slices.Index(all, s) != i {
			t.Errorf("%v are several lists", s)
		}
	}
	if s := named("b", "a"); s.Founders != "59b271ae1bbcb1d3" || s.FounderCount != 2 {
		t.Errorf("the fingerprint has changed: %+v; builds beside each other would differ for ever", s)
	}
}

// TestRecordsNameWhatFounds: an instance must name in its record what it founds with, or a fresh group would adopt at once what it has.
func TestRecordsNameWhatFounds(t *testing.T) {
	for name, c := range map[string]Config{
		"alone":    {},
		"founders": {Join: []string{"x:1"}, Founders: []string{"b", "a"}},
		"replicas": {Join: []string{"x:1"}, Replicas: 3, Grace: -1},
	} {
		c = c.withDefaults()
		g := c.group()
		if g.Grace < 0 || c.alone() && g.Grace != 0 {
			t.Errorf("%s: a grace of %v", name, g.Grace)
		}
		if back := settingsOf(g.birth(c.alone())); !reflect.DeepEqual(back, g) {
			t.Errorf("%s: founded with %+v, named %+v", name, back, g)
		}
	}
}

// TestRulesAreRaisedWhenEverybodyKnowsThem: registered or not, voter or not, the oldest build decides.
func TestRulesAreRaisedWhenEverybodyKnowsThem(t *testing.T) {
	for name, c := range map[string]struct {
		rules    []uint32 // of the instances 1, 2, ...
		replicas []nodeid.ID
		want     uint32
	}{
		"nobody":                            {nil, nil, 0},
		"one":                               {[]uint32{2}, ids(1), 2},
		"all":                               {[]uint32{2, 2, 2}, ids(1, 2, 3), 2},
		"an old voter":                      {[]uint32{2, 1, 2}, ids(1, 2, 3), 1},
		"the first is old":                  {[]uint32{1, 2, 2}, ids(1, 2, 3), 1},
		"the last is old":                   {[]uint32{2, 2, 1}, ids(1, 2, 3), 1},
		"an old plain member":               {[]uint32{2, 2, 2, 1}, ids(1, 2, 3), 1},
		"newer than this build":             {[]uint32{7, 5, 7}, ids(1), 5},
		"a voter without a session":         {[]uint32{2, 2}, ids(1, 2, 3), 0},
		"a replica whose place is not read": {[]uint32{2, 2}, ids(1, 0), 0},
		"a record of no build":              {[]uint32{2, 0}, ids(1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := registeredAs(make([]groupSettings, len(c.rules))...)
			for i := range all {
				all[i].Rules = c.rules[i]
			}
			if got := supported(counted(all...), c.replicas); got != c.want {
				t.Errorf("version %d, want %d", got, c.want)
			}
		})
	}
}

func ids(numbers ...uint64) (all []nodeid.ID) {
	for _, n := range numbers {
		all = append(all, nodeidtest.ID(n))
	}
	return all
}
