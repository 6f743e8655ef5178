package replica

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// toTrail records the calls of a core to its Trail.
type toTrail struct{ *heard }

func (r toTrail) Mark() { r.says("trail: mark") }
func (r toTrail) Start(index uint64, m *lockfsm.Machine) {
	r.says("trail: start at %d, a machine: %v", index, m != nil)
}
func (r toTrail) Entry(index uint64, batch []byte) {
	r.says("trail: entry %d, %d bytes", index, len(batch))
}
func (r toTrail) Result(result lockfsm.Result, m *lockfsm.Machine) {
	r.says("trail: %v, a machine: %v", result.Kind, m != nil)
}

// TestATrailIsToldFirst checks the order of the calls for an altered entry and its results, for a
// snapshot, and for a restored state.
func TestATrailIsToldFirst(t *testing.T) {
	machine, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1, Rules: 1, SessionTTL: time.Second,
		Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	h, extra := &heard{}, lockfsm.Command{Kind: lockfsm.EndGrace}.Append(nil)
	c := NewCore(CoreConfig{Group: 1, ID: 4, Machine: machine, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h,
		Trail: toTrail{h}, Alter: func(b []byte) []byte { return append(slices.Clone(b), extra...) }})
	c.Role(raftlog.Role{Term: 2, Leader: 4, Leading: true})
	h.said = nil
	batch := lockfsm.Command{Kind: lockfsm.Born}.Append(nil)
	if err := c.Apply(7, 2, batch); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "an entry", fmt.Sprintf("trail: entry 7, %d bytes", len(batch)+len(extra)),
		"trail: born, a machine: true", "answering: born", "keeper: born is applied",
		"trail: endgrace, a machine: true", "answering: endgrace", "keeper: endgrace is applied", "born",
		"cluster: 1 is born")
	capture, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if capture.Step() {
			break
		}
	}
	h.takes(t, "a snapshot", "trail: mark")
	state := c.Machine().Snapshot(nil)
	if err := c.Restore(9, 2, state); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "a restored state", "trail: start at 9, a machine: true")
	if err := c.Restore(10, 2, state[:len(state)/2]); err == nil {
		t.Error("half of a state is restored")
	}
	h.takes(t, "half of a state")
}

// TestATurnEndPublishes checks what a replica shows after a turn, and that changed sessions cause a
// look at the voters once they were read.
func TestATurnEndPublishes(t *testing.T) {
	empty := NewCore(CoreConfig{Group: 1, ID: 4})
	if empty.TurnEnd(); empty.Digest() != 0 || empty.Deferrable(nil, true) || empty.View.Revision() != 0 {
		t.Error("a replica without a state shows one")
	}
	c, _, h := leading(t)
	h.said = nil
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: time.Second}.Append(nil)
	stamp := lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1 << 42}.Append(nil)
	if err := c.Apply(2, 2, append(stamp, open...)); err != nil {
		t.Fatal(err)
	}
	h.said = nil
	var f voters.Facts
	for i, want := range []string{"", "cluster: look"} {
		if i == 1 { // the reader asks to be told of the next change
			c.SessionIndex.Read(&f, linkedToAll)
			c.SessionIndex.Note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: c.Machine().Sessions()[0].ID})
		}
		c.TurnEnd()
		if got := strings.Join(h.said, ", "); got != want {
			t.Errorf("turn %d: %q, want %q", i, got, want)
		}
		h.said = nil
	}
	m, v := c.Machine(), c.View
	if v.Revision() != m.Revision() || v.Revision() == 0 || v.Counts() != m.Counts() || v.Counts().Sessions != 1 ||
		v.Usage() != m.Usage() || v.Usage().Bytes == 0 || c.Digest() != m.Digest() || c.Digest() == 0 {
		t.Errorf("revision %d, %+v, %+v, digest %d", v.Revision(), v.Counts(), v.Usage(), c.Digest())
	}
}

// TestEachRoundHasItsReceiver confirms a round of each kind.
func TestEachRoundHasItsReceiver(t *testing.T) {
	c, q, h := leading(t)
	one := ask(t, q, Question{Op: OpPeek, Key: "k"})
	h.said = nil
	for _, round := range []uint64{5, keeper.SearchRound | 6, QuestionRound | one.Number} {
		c.Confirmed(3, round)
	}
	h.takes(t, "the rounds", "keeper: round 5 of term 3", "keeper: searched in term 3")
	if !one.answered() {
		t.Error("the question is not answered")
	}
}

// TestWhatALeaderFinds compares all that a look of the leader brings: the facts, the proposals for
// the keeper, and the remarks in their order, which a status shows as well.
func TestWhatALeaderFinds(t *testing.T) {
	h := &heard{book: map[uint64]founding.Voter{}}
	group := groupOf(nil)
	machine, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1, Rules: 1, SessionTTL: group.SessionTTL,
		Limits: lockfsm.DefaultLimits(), Settings: group.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	wall := func() time.Time { return time.Unix(0, 0) }
	c := NewCore(CoreConfig{Group: 1, ID: 4, Machine: machine, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h,
		Wall: wall})
	own := Own{Durable: true,
		Settings: groupOf(func(g *Settings) { g.Voters, g.Founders = 5, []string{"n1", "n2", "n9"} })}
	var sessions []lockfsm.SessionInfo
	for i, r := range registeredAs(own.Settings, own.Settings) {
		r.Rules, r.Build, r.Addr, r.Zone = 7, 8, "a:1", "z"
		id := nodeidtest.ID(uint64(i + 1))
		sessions = append(sessions, lockfsm.SessionInfo{ID: lockfsm.SessionID(i + 1), Record: r.Encode(),
			TTL: group.SessionTTL, Leaving: i == 1, Opener: lockfsm.Opener{Instance: id}})
	}
	c.SessionIndex.Begin(sessions)
	survey := raftlog.Survey{Self: 1, Config: configuration(1), Replicas: []raftlog.Progress{{ID: 1, Differed: 3}}}
	survey.Config.Voters = []uint64{1}
	linked := func(id nodeid.ID) bool { return id == nodeidtest.ID(1) }
	const now = clock.Time(time.Hour)
	if f, term, leads := c.Facts(now, own, &survey, linked); leads || term != 0 || !reflect.DeepEqual(f, voters.Facts{}) {
		t.Errorf("a replica that does not lead finds %+v", f)
	}
	survey.Term = 5
	outdated := session.Outdated{Group: 4, Build: 3}
	c.Refused.Note(now, &Record{Name: "old", Addr: "o:1"}, outdated)

	// the settings of the group are not known yet: those of the leader count, and nothing is proposed
	f, term, leads := c.Facts(now, own, &survey, linked)
	wantSettings := voters.Settings{Voters: 5, Founders: own.Settings.Founders, Durable: true}
	if !reflect.DeepEqual(f.Settings, wantSettings) || term != 5 || !leads {
		t.Errorf("without the settings of a group: %+v in term %d, %v", f.Settings, term, leads)
	}
	state := "State: the replica of n1 had another state than the majority after entry 3 and has ended, found at " +
		"1970-01-01 00:00:00 UTC"
	build := "Build: old at o:1 is refused: " + outdated.String()
	begin := func(when string, remarks []string, want ...string) {
		t.Helper()
		ok := len(remarks) == len(want)
		for i := range want {
			ok = ok && strings.HasPrefix(remarks[i], want[i])
		}
		if !ok || !slices.Equal(remarks, c.View.Remarks()) {
			t.Errorf("%s: remarks\n%q\nand in a status\n%q\nwant\n%q", when, remarks, c.View.Remarks(), want)
		}
	}
	begin("without the settings of a group", f.Remarks, state, build)
	h.takes(t, "without the settings of a group")

	c.charter()
	h.said = nil
	f, _, _ = c.Facts(now, own, &survey, linked)
	begin("with the settings of a group", f.Remarks, "Voters: the group has 3; 5 on n1", "Founders: the group has",
		state, build)
	adopt := own.Settings
	h.takes(t, "with the settings of a group", fmt.Sprintf("keeper: adopt in term 5, ttl 10s, %s, %+v", adopt.Encode(),
		session.Budgets{Session: 64 << 20, Group: 256 << 20}), "keeper: raise to 7 in term 5")
	registered := func(i uint64, reachable bool) voters.Registered {
		return voters.Registered{Instance: nodeidtest.ID(i), Name: fmt.Sprint("n", i), Addr: "a:1", Zone: "z", Rules: 7,
			Build: 8, Order: i, Session: true, Reachable: reachable, Leaving: i == 2}
	}
	want := voters.Facts{Self: 1, Settings: voters.Settings{Voters: 3, Founders: group.Founders, Rules: 1, Durable: true},
		Config:     voters.Config{At: 7, Voters: []uint64{1}},
		Replicas:   []voters.Replica{{ID: 1, Instance: nodeidtest.ID(1), Addr: "log:1", Linked: true}},
		Registered: []voters.Registered{registered(1, true)}, Remarks: f.Remarks}
	others := slices.Collect(f.Others.All())
	if f.Others = nil; !reflect.DeepEqual(f, want) || !slices.Equal(others, []voters.Registered{registered(2, false)}) {
		t.Errorf("finds %+v\nand others %+v, want\n%+v", f, others, want)
	}

	// the same founders, so one under a wrong name is named
	own.Settings, survey.Replicas[0].Differed = groupOf(nil), 0
	sessions = nil
	for i, r := range registeredAs(group, group, group) {
		r.Name, r.Addr = []string{"a", "b", "x"}[i], "a:1"
		sessions = append(sessions, lockfsm.SessionInfo{ID: lockfsm.SessionID(i + 11), Record: r.Encode(),
			TTL: group.SessionTTL, Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(i + 1))}})
	}
	c.SessionIndex.Begin(sessions)
	f, _, _ = c.Facts(now.Add(time.Hour), own, &survey, linkedToAll)
	begin("under a wrong name", f.Remarks, "Name: the founder c does not answer, and x at a:1 runs", state)
	if !slices.Contains(f.Remarks, c.View.Remarks()[0]) {
		t.Errorf("a status shows %q", c.View.Remarks())
	}
}
