package instance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// A voter may give up its vote only if the voters that are left, which are active and whose disks
// are well, are a majority of all voters.
func TestWhichVoteMayBeGivenUp(t *testing.T) {
	instance := func(i uint64) nodeid.ID { return nodeidtest.Key(i).ID() }
	const now = clock.Time(time.Hour)
	reported := func(of uint64, state DiskState, ago time.Duration) func(r *rig) {
		return func(r *rig) { r.n.diskReports.keep(now.Add(-ago), instance(of), &DiskFault{State: state}) }
	}
	own := func(state DiskState) func(r *rig) {
		return func(r *rig) { r.n.disk.passes = &DiskFault{State: state} }
	}
	silent := func(id uint64) func(r *rig) {
		return func(r *rig) { r.survey.Replicas[id-1].Active = false }
	}
	for what, c := range map[string]struct {
		asks   uint64
		change func(r *rig)
		want   bool
	}{
		"all are well":               {2, func(*rig) {}, true},
		"another is silent":          {2, silent(3), false},
		"the one that asks":          {2, silent(2), true},
		"another disk has failed":    {2, reported(3, DiskFailed, 0), false},
		"another disk is full":       {2, reported(3, DiskLow, 0), true},
		"its own report":             {2, reported(2, DiskRemoved, 0), true},
		"a report that still holds":  {2, reported(3, DiskHung, diskReportFor), false},
		"a report that has ended":    {2, reported(3, DiskHung, diskReportFor+1), true},
		"the leader's disk hangs":    {2, own(DiskHung), false},
		"the leader's disk is full":  {2, own(DiskLow), true},
		"an instance without a vote": {4, silent(3), true},
		"two are gone beside it":     {4, func(r *rig) { silent(3)(r); silent(2)(r) }, false},
		"a change is under way":      {2, func(r *rig) { r.survey.Pending = true }, false},
		"it does not lead":           {2, func(r *rig) { r.survey.Term = 0 }, false},
		"a learner is no voter": {2, func(r *rig) {
			r.survey.Config.Voters = []uint64{1, 2}
		}, false},
		"a voter that is not in reach is not left": {2, func(r *rig) { r.survey.Replicas = r.survey.Replicas[:2] }, false},
	} {
		r := newRig(t)
		r.leading()
		r.survey = raftlog.Survey{Term: 5, Config: raftlog.Configuration{Voters: []uint64{1, 2, 3}}}
		for _, v := range places() {
			r.survey.Config.Members = append(r.survey.Config.Members,
				raftlog.Member{ID: v.Raft, Context: founding.AppendPlace(nil, v)})
			r.survey.Replicas = append(r.survey.Replicas, raftlog.Progress{ID: v.Raft, Active: true})
		}
		c.change(r)
		if got := r.voted().mayYield(now, instance(c.asks)); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		r.end()
	}
}

func TestAMajorityOfTheVoters(t *testing.T) {
	for voters := range 6 {
		for left := range voters + 1 {
			ids, in := make([]uint64, voters), map[uint64]bool{99: true}
			for i := range ids {
				ids[i] = uint64(i + 1)
				in[ids[i]] = i < left
			}
			if got := majorityOf(ids, in); got != (2*left > voters) {
				t.Errorf("%d of %d: %v", left, voters, got)
			}
		}
	}
}

// The faults that an instance knows are those of the reports that still hold, and its own.
func TestTheFaultyDisks(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.withReplica()
	n, now := r.n, r.n.env.clock.Now()
	if got := n.faultyDisks(); got != nil {
		t.Errorf("%+v", got)
	}
	fault := DiskFault{State: DiskFailed, Since: time.Unix(5, 6), Cause: "cause", Remedy: "remedy"}
	two, three := nodeidtest.Key(2).ID(), nodeidtest.Key(3).ID()
	n.known.learn(two, InstanceName{Name: "b"})
	n.known.learn(three, InstanceName{Name: "a"})
	n.known.learn(n.instance(), InstanceName{Name: "c"})
	n.diskReports.keep(now, two, &fault)
	n.diskReports.keep(now, three, &fault)
	n.disk.passes = &DiskFault{State: DiskLow}
	var names []string
	for _, f := range n.faultyDisks() {
		names = append(names, fmt.Sprint(f.Name, " ", f.State))
		if f.Instance == two.String() && f.DiskFault != fault {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"a " + string(DiskFailed), "b " + string(DiskFailed), "c " + string(DiskLow)}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	answer, err := disks{n}.Disks(t.Context(), nil)
	if err != nil || len(answer.Disks) != 3 || answer.Disks[1].Name != "b" || answer.Disks[1].Instance != two.String() ||
		!reflect.DeepEqual(diskFaultIn(answer.Disks[1].Fault), &fault) {
		t.Errorf("%v, %v", answer, err)
	}
	n.diskReports.keep(now, two, nil)
	if got := n.faultyDisks(); len(got) != 2 {
		t.Errorf("after the end of a fault: %+v", got)
	}
	// The end of a fault is reported, too. Only a leader lets a voter give up its vote.
	for _, q := range []*query.DiskReport{{}, {Yield: true}} {
		n.diskReports.keep(now, nodeid.ID{}, &fault)
		if verdict, err := (disks{n}).ReportDisk(t.Context(), q); err != nil || verdict.May || len(n.faultyDisks()) != 2 {
			t.Errorf("%v: %v, %v, %+v", q, verdict, err, n.faultyDisks())
		}
	}
}

func TestAFaultOnItsWay(t *testing.T) {
	if diskFaultOut(nil) != nil || diskFaultIn(nil) != nil {
		t.Error("no fault becomes one")
	}
	fault := DiskFault{State: DiskHung, Since: time.Unix(5, 6), Cause: "\xff cause", Remedy: "remedy \xff"}
	want := DiskFault{State: DiskHung, Since: time.Unix(5, 6), Cause: "? cause", Remedy: "remedy ?"}
	if got := diskFaultIn(diskFaultOut(&fault)); *got != want {
		t.Errorf("%+v", got)
	}
	long := strings.Repeat("x", maxDiskText+1)
	got := diskFaultIn(&query.DiskFault{State: long, Cause: long, Remedy: long})
	if len(got.State) > maxDiskText+8 || len(got.Cause) > maxDiskText+8 || len(got.Remedy) > maxDiskText+8 {
		t.Errorf("%d, %d and %d bytes", len(got.State), len(got.Cause), len(got.Remedy))
	}
}

// Each state of a disk has words and a step of its own.
func TestEachStateOfADiskHasItsWords(t *testing.T) {
	words, steps := map[string]bool{DiskWords("another"): true}, map[string]bool{}
	for _, state := range []DiskState{DiskFailed, DiskHung, DiskRemoved, DiskLow, DiskNoFiles} {
		if text := DiskWords(state); words[text] || text == "its disk is "+string(state) {
			t.Errorf("%s: %q", state, text)
		}
		if steps[remedy(state)] {
			t.Errorf("%s: %q", state, remedy(state))
		}
		words[DiskWords(state)], steps[remedy(state)] = true, true
	}
}

// The step after the loss of a directory says what a restart of the only voter costs. More
// instances are no way out: it cannot write the snapshot that they need, and retires.
func TestTheOnlyVoterIsNotRestartedFirst(t *testing.T) {
	if text := remedy(DiskRemoved); !strings.Contains(text, "all locks and data end with it") || len(text) > maxDiskText {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// The leader is asked for the faults that it knows, if this instance has a directory and another
// instance leads.
func TestWhoseFaultyDisksAreAskedFor(t *testing.T) {
	for what, c := range map[string]struct {
		dir    bool
		leader uint64
		want   bool
	}{
		"another leads": {true, 2, true}, "without a directory": {false, 2, false}, "this instance leads": {true, 1, false},
		"the leader is not known": {true, 4, false},
	} {
		r := newRig(t)
		r.status.Voters = places()
		if c.dir {
			r.withDir()
		}
		asked := func() (is bool) {
			defer func() { is = recover() != nil }() // the port of the rig has no connection
			r.n.askDisks(t.Context(), nodeidtest.Key(c.leader).ID())
			return false
		}()
		if asked != c.want {
			t.Errorf("%s: asked %v", what, asked)
		}
		r.end()
	}
}
