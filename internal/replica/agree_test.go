package replica

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

func groupOf(change func(*Settings)) Settings {
	g := Settings{Founders: []string{"a", "b", "c"}, Voters: 3, SessionTTL: 10 * time.Second, Grace: 10 * time.Second,
		SessionBytes: 64 << 20, GroupBytes: 256 << 20}
	if change != nil {
		change(&g)
	}
	return g
}

func registeredAs(each ...Settings) []Record {
	var all []Record
	for i, g := range each {
		all = append(all, Record{Instance: nodeidtest.ID(uint64(i + 1)).String(), Name: fmt.Sprint("n", i+1),
			Rules: 1, Settings: g.Named(), Founders: g.Founders})
	}
	return all
}

func counted(records ...Record) *census {
	var c census
	for i := range records {
		c.add(&records[i])
	}
	return &c
}

// TestSettingsAreAdoptedWhenAllNameThem checks that a setting is adopted exactly when all
// registered instances and the leader have the same new value. Until then operators can read the
// value of each instance.
func TestSettingsAreAdoptedWhenAllNameThem(t *testing.T) {
	old := groupOf(nil)
	five := groupOf(func(g *Settings) { g.Voters = 5 })
	long := groupOf(func(g *Settings) { g.SessionTTL, g.Grace = time.Minute, time.Minute })
	longOnly := groupOf(func(g *Settings) { g.SessionTTL = time.Minute })
	short := groupOf(func(g *Settings) { g.SessionTTL = 2 * time.Second })
	others := groupOf(func(g *Settings) { g.Founders = []string{"a", "d", "n1"} })
	replicas := groupOf(func(g *Settings) { g.Founders, g.Replicas = nil, 3 })
	budget := groupOf(func(g *Settings) { g.SessionBytes, g.GroupBytes = 128<<20, 1<<30 })
	noGrace := groupOf(func(g *Settings) { g.Grace = 0 })
	both := groupOf(func(g *Settings) { g.Voters, g.Founders = 5, []string{"a", "d", "n1"} })
	many := groupOf(func(g *Settings) {
		g.Founders, g.Voters = nil, 5
		for i := range 63 {
			g.Founders = append(g.Founders, fmt.Sprintf("%02d%s", i, strings.Repeat("x", 100)))
		}
		g.Founders = append(g.Founders, "n1")
	})
	for name, c := range map[string]struct {
		own      Settings
		say      []Settings
		longest  time.Duration
		adopt    Settings
		disagree string
	}{
		"all as the group":       {old, []Settings{old, old}, 0, old, ""},
		"none is registered":     {five, nil, 0, old, ""},
		"one of three differs":   {five, []Settings{five, old, old}, 0, old, "Voters 3: 5 n1"},
		"one of three is behind": {five, []Settings{five, old, five}, 0, old, "Voters 3: 5 n1,n3"},
		"three values": {five, []Settings{five, old, groupOf(func(g *Settings) { g.Voters = 1 })}, 0, old,
			"Voters 3: 1 n3, 5 n1"},
		"all differ alike": {five, []Settings{five, five, five}, 0, five, "Voters 3: 5 n1,n2,n3"},
		"all but this one": {old, []Settings{five, five}, 0, old, "Voters 3: 5 n1,n2"},
		"a budget": {budget, []Settings{budget, budget}, 0, budget,
			"MaxSessionBytes 64 MiB: 128 MiB n1,n2; MaxGroupBytes 256 MiB: 1 GiB n1,n2"},
		"a budget of one": {budget, []Settings{budget, old}, 0, old,
			"MaxSessionBytes 64 MiB: 128 MiB n1; MaxGroupBytes 256 MiB: 1 GiB n1"},
		"a longer TTL": {long, []Settings{long, long}, 10 * time.Second, long,
			"SessionTTL 10s: 1m0s n1,n2; Grace 10s: 1m0s n1,n2"},
		"a longer TTL than the grace": {
			longOnly, []Settings{longOnly}, 10 * time.Second, old,
			"SessionTTL 10s: 1m0s n1 (the grace would be shorter than the TTL)",
		},
		"a shorter TTL": {short, []Settings{short}, 2 * time.Second, short, "SessionTTL 10s: 2s n1"},
		"a shorter TTL, a longer session": {short, []Settings{short}, 10 * time.Second, old,
			"SessionTTL 10s: 2s n1 (a live session has a TTL of 10s)"},
		"no grace": {noGrace, []Settings{noGrace}, 10 * time.Second, noGrace,
			"Grace 10s: 0s n1"},
		"other founders": {others, []Settings{others, others}, 0, others,
			"Founders [a, b, c]: [a, d, n1] n1,n2"},
		"replicas, not founders": {replicas, []Settings{replicas, replicas}, 0, replicas,
			"Founders [a, b, c]: 3 replicas n1,n2"},
		"one setting of two": {
			both, []Settings{both, five}, 0, five,
			"Voters 3: 5 n1,n2; Founders [a, b, c]: [a, d, n1] n1",
		},
		"too long for the state, the others adopted": {
			many, []Settings{many}, 0, five,
			"Voters 3: 5 n1; Founders [a, b, c]: 64 names (" + many.Named().Founders +
				") n1 (the names of the founders are longer than 4096 bytes together)",
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
			again, err := InForce(lockfsm.Charter{
				SessionTTL: a.adopt.SessionTTL, Settings: a.blob,
				Limits: lockfsm.Limits{SessionBytes: uint64(a.adopt.SessionBytes),
					GroupBytes: uint64(a.adopt.GroupBytes)},
			})
			if err != nil || !reflect.DeepEqual(again, c.adopt) {
				t.Fatalf("the adopted settings are decoded as %+v, %v", again, err)
			}
			if b := agree(again, c.own, counted(registeredAs(c.say...)...), c.longest); b.blob != nil {
				t.Errorf("adopted twice: %+v", b)
			}
		})
	}
}

// TestLeaversDoNotCount checks that founders are adopted when all instances that stay have these
// founders, and one of the founders is present. A leader that leaves proposes the founders of the
// other instances, if their records list the names.
func TestLeaversDoNotCount(t *testing.T) {
	one := groupOf(func(g *Settings) { g.Founders = []string{"n1"} })
	three := groupOf(func(g *Settings) { g.Founders = []string{"n1", "n2", "n3"} })
	replicas := groupOf(func(g *Settings) { g.Founders, g.Replicas = nil, 3 })
	for name, c := range map[string]struct {
		group, own Settings
		say        []Settings
		leave      []int // indexes of the leaving instances; index 0 is the leader
		change     func(all []Record)
		adopt      Settings
	}{
		"the founder leaves":          {one, one, []Settings{one, three, three}, []int{0}, nil, three},
		"the founder stays":           {one, one, []Settings{one, three, three}, nil, nil, one},
		"another leaves":              {one, one, []Settings{one, three, one}, []int{1}, nil, one},
		"one that stays names others": {one, one, []Settings{one, three, one}, []int{0}, nil, one},
		"to replicas":                 {one, one, []Settings{one, replicas, replicas}, []int{0}, nil, replicas},
		"all leave":                   {one, one, []Settings{one, three, three}, []int{0, 1, 2}, nil, one},
		"a follower leaves":           {three, one, []Settings{one, three, three}, []int{1, 2}, nil, one},
		"the one founder leaves":      {three, one, []Settings{one, one, one}, []int{0}, nil, three},
		"no names": {one, one, []Settings{one, three, three}, []int{0}, func(all []Record) {
			all[1].Founders, all[2].Founders = nil, nil
		}, one},
		"other names": {one, one, []Settings{one, three, three}, []int{0}, func(all []Record) {
			all[1].Founders, all[2].Founders = []string{"n1", "n2", "x"}, []string{"n1", "n2", "n3", "n3"}
		}, one},
		"unreadable records": {one, one, []Settings{one, three}, []int{0}, func(all []Record) { all[1] = Record{} },
			one},
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

// TestWhatADifferenceSays compares the whole text of differing settings: the group's value and each
// other one with its instances, which value counts, and why none is adopted.
func TestWhatADifferenceSays(t *testing.T) {
	old := groupOf(nil)
	change := func(change func(*Settings)) Settings { return groupOf(change) }
	five := change(func(g *Settings) { g.Voters = 5 })
	one := change(func(g *Settings) { g.Voters = 1 })
	three := change(func(g *Settings) { g.Founders, g.Replicas = nil, 3 })
	four := change(func(g *Settings) { g.Founders, g.Replicas = nil, 4 })
	eleven := change(func(g *Settings) { g.Founders = strings.Split("abcdefghijk", "") })
	ten := change(func(g *Settings) { g.Founders = strings.Split("abcdefghij", "") })
	absent := change(func(g *Settings) { g.Founders = []string{"d", "e", "f"} })
	counts := func(of string) string { return "; " + founding.Counts(of) }
	long := "11 names (" + eleven.Named().Founders + ")"
	for i, c := range []struct {
		group, own Settings
		say        []Settings
		want       []string
	}{
		{old, old, []Settings{old, old}, nil},
		{old, five, []Settings{five, one, five}, []string{
			"Voters: the group has 3; 1 on n2; 5 on n1, n3" + counts("Voters")}},
		{old, five, []Settings{five, old, old}, []string{
			"Voters: the group has 3 (also on n2, n3); 5 on n1" + counts("Voters")}},
		{old, five, slices.Concat(slices.Repeat([]Settings{five}, 11), slices.Repeat([]Settings{old}, 12)), []string{
			"Voters: the group has 3 (also on n12, n13, n14, n15, n16, n17, n18, n19, n20, n21 and 2 more); " +
				"5 on n1, n10, n11, n2, n3, n4, n5, n6, n7, n8 and 1 more" + counts("Voters")}},
		{three, old, []Settings{three, old, old}, []string{
			"Replicas: the group has 3 replicas (also on n1); [a, b, c] on n2, n3" + counts("Replicas")}},
		{three, four, []Settings{four, three}, []string{
			"Replicas: the group has 3 replicas (also on n2); 4 replicas on n1" + counts("Replicas")}},
		{old, three, []Settings{old, three}, []string{
			"Founders: the group has [a, b, c] (also on n1); 3 replicas on n2" + counts("Founders")}},
		{old, eleven, []Settings{old, eleven}, []string{
			"Founders: the group has [a, b, c] (also on n1); " + long + " on n2" + counts("Founders")}},
		{eleven, old, []Settings{old, eleven}, []string{
			"Founders: the group has " + long + " (also on n2); [a, b, c] on n1" + counts("Founders")}},
		{old, ten, []Settings{old, ten}, []string{
			"Founders: the group has [a, b, c] (also on n1); [a, b, c, d, e, f, g, h, i, j] on n2" + counts("Founders")}},
		{old, absent, []Settings{absent, absent}, []string{"Founders: the group has [a, b, c]; [d, e, f] on n1, n2" +
			counts("Founders") + "; not adopted, because none of them is present, or the only one is leaving"}},
		{old, absent, []Settings{absent, absent, old}, []string{
			"Founders: the group has [a, b, c] (also on n3); [d, e, f] on n1, n2" + counts("Founders")}},
	} {
		var got []string
		for _, d := range agree(c.group, c.own, counted(registeredAs(c.say...)...), 0).differ {
			got = append(got, d.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("row %d:\n%q\nwant\n%q", i, got, c.want)
		}
	}
}

func spoken(all []disagreement) string {
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

func TestUnreadableRecordsAgreeToNothing(t *testing.T) {
	five := groupOf(func(g *Settings) { g.Voters = 5 })
	for _, b := range []string{"", "{", `{"name":7,"rules":9}`, "null", `{"settings":{"voters":"5"}}`} {
		all := counted(append(registeredAs(five), DecodeRecord([]byte(b)))...)
		a := agree(groupOf(nil), five, all, 0)
		if a.blob != nil {
			t.Errorf("%q: adopted %s", b, a.blob)
		}
		if got := spoken(a.differ); !strings.HasPrefix(got, "Voters 3: 5 n1, unknown ?; ") {
			t.Errorf("%q: shows %s", b, got)
		}
		if v := supported(all, nil); v != 0 {
			t.Errorf("%q: supports version %d", b, v)
		}
	}
}

// TestManyThatDifferAreCounted checks that one line reports a thousand instances that differ.
func TestManyThatDifferAreCounted(t *testing.T) {
	var all census
	each := groupOf(func(g *Settings) { g.Voters = 5 })
	other := groupOf(func(g *Settings) { g.Voters, g.Grace = 5, time.Minute })
	for i := range 1000 {
		r := Record{Name: fmt.Sprintf("n%03d", i), Settings: each.Named()}
		if i%2 == 0 {
			r.Settings = other.Named()
		}
		all.add(&r)
	}
	differ := agree(groupOf(nil), each, &all, 0).differ
	if got, want := differ[0].String(),
		"Voters: the group has 3; 5 on n000, n001, n002, n003, n004, n005, n006, n007, n008, n009 and 990 more; "+
			"the group's value counts"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestTheCensusForgets checks that a removed record leaves nothing in the census, and that a record
// added twice must be removed twice.
func TestTheCensusForgets(t *testing.T) {
	var c census
	all := registeredAs(groupOf(nil), groupOf(nil), groupOf(func(g *Settings) { g.Voters = 5 }))
	all = append(all, all[0], Record{})
	for i := range all {
		c.add(&all[i])
		c.count(time.Duration(i+1), 1)
	}
	c.remove(&all[0])
	c.count(5, -1)
	if n := c.contents[contentOf(&all[0])]; n.count != 2 || len(n.names) != 2 || c.instances[nodeidtest.ID(1)] != 1 ||
		c.longest() != 4 {
		t.Errorf("%+v of %+v, the longest %v", n, c, c.longest())
	}
	for i := range all[1:] {
		c.remove(&all[i+1])
		c.count(time.Duration(i+1), -1)
	}
	if len(c.contents)+len(c.instances)+len(c.ttls) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestTheTTLInForceIsTheMachines checks that the charter's TTL and budgets are in force, not those
// of the settings.
func TestTheTTLInForceIsTheMachines(t *testing.T) {
	g, err := InForce(lockfsm.Charter{SessionTTL: 7 * time.Second, Settings: groupOf(nil).Encode(),
		Limits: lockfsm.Limits{SessionBytes: 5, GroupBytes: 6}})
	if err != nil || !reflect.DeepEqual(g,
		groupOf(func(g *Settings) { g.SessionTTL, g.SessionBytes, g.GroupBytes = 7*time.Second, 5, 6 })) {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := InForce(lockfsm.Charter{}); err == nil {
		t.Error("no settings, and no error")
	}
}

func TestFoundersGoByTheirNames(t *testing.T) {
	named := func(names ...string) Named { return Settings{Founders: Unique(names)}.Named() }
	if named("b", "a") != named("a", "b") || named("a", "b", "a") != named("a", "b") {
		t.Error("the order of the founders matters")
	}
	all := []Named{named(), named("a"), named("ab"), named("a", "b"), named("a", "bc"), named("ab", "c"),
		named("a", "b", "c")}
	for i, s := range all {
		if slices.Index(all, s) != i {
			t.Errorf("two lists have the fingerprint of %v", s)
		}
	}
	if s := named("b", "a"); s.Founders != "59b271ae1bbcb1d3" || s.FounderCount != 2 {
		t.Errorf("the fingerprint has changed: %+v; builds side by side would differ forever", s)
	}
}

// TestRulesAreRaisedWhenAllKnowThem checks that the rules version is not raised above what the
// oldest build of any instance or replica supports.
func TestRulesAreRaisedWhenAllKnowThem(t *testing.T) {
	for name, c := range map[string]struct {
		rules    []uint32
		replicas []nodeid.ID
		want     uint32
	}{
		"none":                               {nil, nil, 0},
		"one":                                {[]uint32{2}, ids(1), 2},
		"all":                                {[]uint32{2, 2, 2}, ids(1, 2, 3), 2},
		"an old voter":                       {[]uint32{2, 1, 2}, ids(1, 2, 3), 1},
		"the first is old":                   {[]uint32{1, 2, 2}, ids(1, 2, 3), 1},
		"the last is old":                    {[]uint32{2, 2, 1}, ids(1, 2, 3), 1},
		"an old plain member":                {[]uint32{2, 2, 2, 1}, ids(1, 2, 3), 1},
		"newer than this build":              {[]uint32{7, 5, 7}, ids(1), 5},
		"a voter without a session":          {[]uint32{2, 2}, ids(1, 2, 3), 0},
		"a replica with an unreadable place": {[]uint32{2, 2}, ids(1, 0), 0},
		"a record of no build":               {[]uint32{2, 0}, ids(1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := registeredAs(make([]Settings, len(c.rules))...)
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
