package replica

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// TestFactsCarryEachField sets each field of a replica's progress, of the survey and of its
// configuration alone, and checks that exactly the fact of the same name changes. So no fact is
// taken from another one, and a new field needs a row here.
func TestFactsCarryEachField(t *testing.T) {
	elsewhere := []string{"Instance", "Addr", "Linked", "LifeOver", "Renewed"} // not from the progress
	at := func(s *raftlog.Survey) voters.Facts {
		return facts(s, voters.Settings{}, func(uint64) (founding.Voter, bool) { return founding.Voter{}, false },
			func(nodeid.ID) bool { return false })
	}
	progress, fact := reflect.TypeFor[raftlog.Progress](), reflect.TypeFor[voters.Replica]()
	for i := range fact.NumField() {
		name := fact.Field(i).Name
		if _, carried := progress.FieldByName(name); carried == slices.Contains(elsewhere, name) {
			t.Errorf("the fact %s comes from the progress: %t", name, carried)
		}
	}
	for i := range progress.NumField() {
		var p raftlog.Progress
		set(t, reflect.ValueOf(&p).Elem().Field(i))
		got := reflect.ValueOf(at(&raftlog.Survey{Replicas: []raftlog.Progress{p}}).Replicas[0])
		onlySet(t, got, progress.Field(i).Name)
	}
	for from, to := range map[string]string{"Self": "Self", "Pending": "Pending", "Last": "Last", "Term": "",
		"Config": "Config"} {
		var s raftlog.Survey
		field := reflect.ValueOf(&s).Elem().FieldByName(from)
		if from == "Config" {
			s.Config.Index = 3
		} else {
			set(t, field)
		}
		onlySet(t, reflect.ValueOf(at(&s)), to)
	}
	for from, to := range map[string]string{"Index": "At", "Voters": "Voters", "Outgoing": "Outgoing",
		"Learners": "Learners"} {
		var s raftlog.Survey
		set(t, reflect.ValueOf(&s.Config).Elem().FieldByName(from))
		onlySet(t, reflect.ValueOf(at(&s).Config), to)
	}
}

// set gives a field a value that is not zero.
func set(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Uint64:
		field.SetUint(9)
	case reflect.Int, reflect.Int64:
		field.SetInt(9)
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	default:
		t.Fatalf("no value for a %s", field.Type())
	}
}

// onlySet checks that exactly the named field of a struct is not zero. Empty means none.
func onlySet(t *testing.T, s reflect.Value, name string) {
	t.Helper()
	for i := range s.NumField() {
		if field := s.Type().Field(i).Name; s.Field(i).IsZero() == (field == name) {
			t.Errorf("if only %q is set, %s has %s = %v", name, s.Type(), field, s.Field(i))
		}
	}
}

// TestFactsPlaceEachReplica checks that an address from the address book replaces that of the log
// only for the same instance, and that the link is that of the replica's instance.
func TestFactsPlaceEachReplica(t *testing.T) {
	s := &raftlog.Survey{Config: configuration(4), Replicas: []raftlog.Progress{{ID: 1}, {ID: 2}, {ID: 3}}}
	book := map[uint64]founding.Voter{1: {Raft: 1, Instance: nodeidtest.ID(1), Addr: "book:1"},
		2: {Raft: 2, Instance: nodeidtest.ID(9), Addr: "book:9"}}
	f := facts(s, voters.Settings{}, func(raft uint64) (founding.Voter, bool) { v, ok := book[raft]; return v, ok },
		func(id nodeid.ID) bool { return id == nodeidtest.ID(3) })
	want := []voters.Replica{{ID: 1, Instance: nodeidtest.ID(1), Addr: "book:1"},
		{ID: 2, Instance: nodeidtest.ID(2), Addr: "log:2"}, {ID: 3, Instance: nodeidtest.ID(3), Addr: "log:3", Linked: true}}
	if !slices.Equal(f.Replicas, want) {
		t.Errorf("the replicas are %+v, want %+v", f.Replicas, want)
	}
}

// TestAConfigurationIsCarriedWhole checks what package founding learns of a configuration: both
// majorities of a joint one, the learners, and each place.
func TestAConfigurationIsCarriedWhole(t *testing.T) {
	c := configuration(5)
	if a := Applied(&c); a.At != 7 || len(a.Voters) != 5 || a.Incoming != nil || a.Outgoing != nil {
		t.Errorf("a configuration is carried as %+v", a)
	}
	c.Voters, c.Outgoing = []uint64{1, 2, 3}, []uint64{2, 3, 4}
	a := Applied(&c)
	if !slices.Equal(a.Incoming, c.Voters) || !slices.Equal(a.Outgoing, c.Outgoing) {
		t.Errorf("a joint configuration is carried as %+v", a)
	}
	c.Members = append(c.Members, raftlog.Member{ID: 6, Context: []byte("?")})
	for i, v := range Placed(&c) {
		id := uint64(i + 1)
		want := founding.Voter{Raft: id, Learner: id > 4}
		if id < 6 {
			want.Instance, want.Addr = nodeidtest.ID(id), fmt.Sprintf("log:%d", id)
		}
		if v != want || Find(&c, id) != want {
			t.Errorf("replica %d is %+v and %+v, want %+v", id, v, Find(&c, id), want)
		}
		for other := range uint64(8) {
			if named := Names(&c, id, nodeidtest.ID(other)); named != (id == other && id < 6) {
				t.Errorf("the configuration gives %d to the instance %d: %t", id, other, named)
			}
		}
	}
	if v := Find(&c, 7); v != (founding.Voter{}) {
		t.Errorf("a replica that is none is %+v", v)
	}
}

// TestOnlyAWaitingLogIsShown checks that the position of a log is passed on only while the replica
// knows no leader.
func TestOnlyAWaitingLogIsShown(t *testing.T) {
	want := founding.Log{Term: 5, LastTerm: 3, LastIndex: 9}
	if l := LogOf(raftlog.Role{Term: 5, LastTerm: 3, LastIndex: 9}); l != want {
		t.Errorf("without a leader the log is %+v", l)
	}
	for _, role := range []raftlog.Role{{Term: 5, Leader: 2, LastTerm: 3, LastIndex: 9}, {Term: 5, LastTerm: 3}} {
		if l := LogOf(role); l != (founding.Log{}) {
			t.Errorf("with %+v the log is %+v", role, l)
		}
	}
}

// TestASnapshotTellsTheBirthFirst checks the order after a snapshot. Package founding ignores the
// settings of a group until it has learned that the group is born.
func TestASnapshotTellsTheBirthFirst(t *testing.T) {
	machine, err := Founded(&founding.Charter{Group: 1, FoundedUnixMS: 1, Rules: lockfsm.RulesVersion,
		Settings: founding.Settings{Replicas: 3, SessionTTL: time.Second, Grace: time.Second}}, lockfsm.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	born := NewCore(CoreConfig{Group: 1, ID: 5, Machine: machine, Keeper: toKeeper{&heard{}},
		Cluster: toCluster{&heard{}}, Host: &heard{}})
	if err := born.Apply(1, 1, lockfsm.Command{Kind: lockfsm.Born}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	c := NewCore(CoreConfig{Group: 1, ID: 4, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h})
	if err := c.Restore(3, 3, born.Machine().Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "a snapshot of a group that is born", "born", "cluster: 1 is born",
		"cluster: 1 adopts {Replicas:3 Founders:[] Voters:0 SessionTTL:1s Grace:1s Solo:false}")
}
