package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func instance(name string, change func(*guest.Report)) guest.Report {
	r := guest.Report{
		Addr: name + ":1", From: "test", Outcome: guest.Answered,
		Status: &mortise.Status{Member: mortise.Member{Name: name, Instance: name, Address: name + ":1", Votes: true},
			Joined: true,
			Group:  "g", Leader: "a", Lease: mortise.LeaseSafe, Attached: true,
			Voters: voting("a", "b", "c")},
		Answer: &query.HereAnswer{Replicas: 3},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func voting(names ...string) (list []mortise.Member) {
	for _, n := range names {
		list = append(list, mortise.Member{Name: n, Instance: n, Address: n + ":1", Votes: true})
	}
	return list
}

func missing(name string, outcome guest.Outcome) guest.Report {
	return guest.Report{Addr: name + ":1", From: "test", Outcome: outcome, Err: errors.New("it is " + string(outcome))}
}

func leaderless(r *guest.Report) {
	r.Status.Leader, r.Status.Lease, r.Answer.Leaderless = "", mortise.LeaseLost, int64(90*time.Second)
}

var burnt = mortise.DiskFault{Name: "c", Instance: "c", State: mortise.DiskFailed, Cause: "EIO",
	Remedy: "free or repair it"}

func illDisk(r *guest.Report) {
	fault := burnt
	fault.Name, fault.Instance = r.Status.Name, r.Status.Instance
	r.Status.Disk = &fault
}

func illLeaderless(r *guest.Report) {
	illDisk(r)
	leaderless(r)
}

type diagnosed struct {
	facts facts
	well  bool
	want  []string
	not   []string
}

func diagnosedFacts() map[string]diagnosed {
	well := &mortise.Health{Leader: "a", Eligible: 3, Target: 3, Advice: "any one instance may be stopped"}
	return map[string]diagnosed{
		"all is well": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", nil)},
				health: well},
			well: true, want: []string{"a leads group g", "any one instance may be stopped"},
			not: []string{"differ", "recover"},
		},
		"the work under locks does not move": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", func(r *guest.Report) {
				r.Status.Idle = []mortise.IdleHold{
					{Key: "orders/\x1b42", Token: 7, MaxIdle: 10 * time.Second, Idle: 6 * time.Second},
					{Key: "half", Token: 8, MaxIdle: 20 * time.Second, Idle: 10 * time.Second},
					{Key: "late", Token: 9, MaxIdle: time.Minute, Idle: 31 * time.Second}}
			}), instance("c", func(r *guest.Report) {
				for i := range 9 {
					r.Status.Idle = append(r.Status.Idle,
						mortise.IdleHold{Key: "c" + strconv.Itoa(i), Token: 20, MaxIdle: time.Minute, Idle: 50 * time.Second})
				}
			})}, health: well},
			well: true, want: []string{"a leads group g",
				`b holds orders/\u{1b}42 (token 7), and has not called Beat for 6s: the hold ends at 10s, its MaxIdle`,
				"b holds late (token 9), and has not called Beat for 31s", "see where the code under such a lock hangs",
				"c holds c2"},
			not: []string{"half", "c holds c3"},
		},
		"no answer": {
			facts: facts{reports: []guest.Report{missing("a", guest.Refused), missing("b", guest.Silent),
				missing("c", guest.Foreign)}, lookups: []error{errors.New("dns:///x resolves to no address")}},
			want: []string{"no instance answers", "a:1: refused", "start the instances", "firewall", "secret",
				"resolves to no address"},
		},
		"Join leads nowhere": {want: []string{"no instance answers", "correct Join"}},
		"two groups": {
			facts: facts{reports: []guest.Report{instance("a", nil),
				instance("b", func(r *guest.Report) { r.Status.Group, r.Status.Leader = "h", "b" })}, health: well},
			want: []string{"two groups", "b belongs to group h", "stop the instances of one"},
		},
		"not founded": {
			facts: facts{reports: []guest.Report{instance("a", func(r *guest.Report) {
				r.Status.Joined, r.Status.Group, r.Status.Leader, r.Status.Waiting = false, "", "", "waits for 3 instances"
			}), missing("b", guest.Refused)}},
			want: []string{"no group is founded yet", "waits for 3 instances", "start the instance at b:1, or correct"},
		},
		"quorum lost, with directories": {
			facts: facts{reports: []guest.Report{instance("a",
				func(r *guest.Report) { leaderless(r); r.Answer.Durable = true }), missing("b", guest.Silent),
				instance("new", func(r *guest.Report) {
					r.Addr, r.Status.Joined, r.Status.Group, r.Status.Leader = "c:1", false, "", ""
				})}},
			want: []string{"the quorum is lost for at least 1m30s", "2 of 3 voters are missing",
				"b at b:1: its machine or its network",
				"c at c:1: its process has been restarted: at c:1 a new instance answers, new",
				"bring back 1 of the missing", "mortise recover g"},
		},
		"quorum lost, in memory": {
			facts: facts{reports: []guest.Report{instance("a", leaderless), missing("b", guest.Refused),
				missing("c", guest.Refused)}},
			want: []string{"the quorum is lost", "its process does not run", "this group is in memory",
				"b at b:1, c at c:1"}, not: []string{"recover g"},
		},
		"a majority without a leader": {
			facts: facts{reports: []guest.Report{instance("a", leaderless), instance("b", leaderless),
				missing("c", guest.Refused)}},
			want: []string{"there is no leader for at least 1m30s, although a majority of the voters answers",
				"a at a:1, b at b:1"}, not: []string{"recover g", "the quorum is lost"},
		},
		"the leader has just gone": {
			facts: facts{reports: []guest.Report{missing("a", guest.Refused), instance("b", nil), instance("c", nil)}},
			want:  []string{"although a majority", "b still reports a as the leader"},
		},
		"one is cut off": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", leaderless)},
				health: &mortise.Health{
					Missing: []mortise.MissingVoter{{Silent: 7 * time.Second,
						Member: mortise.Member{Name: "c", Instance: "c", Seen: true}}},
					Advice: "stop no instance now",
				}},
			want: []string{"c at c:1 knows no leader",
				"the voter c has been silent for 7s: it answers here, so the network between the instances is cut"},
		},
		"fewer than promised": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), missing("c", guest.Silent)},
				health: well},
			want: []string{"Replicas says that 3 instances run, and 2 answer", "c at c:1: silent"},
		},
		"a founder is missing": {
			facts: facts{reports: []guest.Report{instance("a",
				func(r *guest.Report) { r.Answer = &query.HereAnswer{Founders: []string{"a", "z"}} })}, health: well},
			want: []string{"the founder z does not answer"},
		},
		"a disk has failed": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", illDisk)},
				health: &mortise.Health{
					Missing: []mortise.MissingVoter{{Silent: 7 * time.Second,
						Member: mortise.Member{Name: "c", Instance: "c", Seen: true}}},
					Disks:  []mortise.DiskFault{burnt},
					Advice: "stop no other instance now",
				}},
			want: []string{"disk of c: its disk has failed, noticed", "(EIO): free or repair it",
				"c: free or repair it\nstop no other"},
			not: []string{"the voter c is not heard of", "the network between them"},
		},
		"all disks have failed": {
			facts: facts{reports: []guest.Report{instance("a", illLeaderless), instance("b", illLeaderless),
				instance("c", illLeaderless)}},
			want: []string{"there is no leader", "disk of a: its disk has failed", "disk of c: its disk has failed",
				"a: free or repair it\nb: free or repair it\nc: free"},
		},
		"one has failed": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", nil),
				instance("d", func(r *guest.Report) { r.Answer.Failed = "its disk burns" })}, health: well},
			want: []string{"d at d:1 has failed: its disk burns", "restart d"},
		},
		"clocks differ": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil),
				instance("c", func(r *guest.Report) { r.Skew = -4 * time.Second })}, health: well},
			want: []string{"the wall clocks of c and a differ by about 4s", "set the clocks"},
		},
		"settings differ": {
			facts: facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", nil)},
				health: &mortise.Health{Differs: []string{"Voters: the group has 3; 5 on c"}}},
			want: []string{"settings differ: Voters: the group has 3; 5 on c"},
		},
	}
}

func TestDiagnose(t *testing.T) {
	for what, c := range diagnosedFacts() {
		d := diagnose(c.facts)
		text := d.Problem + "\n" + strings.Join(d.Why, "\n") + "\n" + strings.Join(d.Steps, "\n")
		if d.Well != c.well || len(d.Steps) == 0 {
			t.Errorf("%s: well is %v, %d steps:\n%s", what, d.Well, len(d.Steps), text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", what, want, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q is in\n%s", what, not, text)
			}
		}
	}
}

// TestADiskIsIllByItsInstance checks that the instance, and not its name, decides whose disk is
// faulty, and that a disk with little room is not faulty.
func TestADiskIsIllByItsInstance(t *testing.T) {
	for _, state := range []mortise.DiskState{mortise.DiskFailed, mortise.DiskHung, mortise.DiskRemoved,
		mortise.DiskLow, mortise.DiskNoFiles} {
		f := facts{health: &mortise.Health{Disks: []mortise.DiskFault{{Name: "a", Instance: "i1", State: state}}}}
		if f.ill("a") || f.ill("") || f.ill("i1") == (state == mortise.DiskLow) {
			t.Errorf("%s: the disk of the instance is ill: %t, and of its name: %t", state, f.ill("i1"), f.ill("a"))
		}
	}
}

// Each outcome of a question has a step, and a step is given once, however many instances need it.
func TestEachOutcomeHasItsStep(t *testing.T) {
	for outcome, want := range map[guest.Outcome]string{guest.Foreign: "the same secret",
		guest.Refused: "start the instance", guest.Silent: "no firewall blocks", guest.OtherVersion: "the same version"} {
		d := &diagnosis{}
		d.begin(facts{reports: []guest.Report{missing("a", outcome), missing("a", outcome)}})
		if len(d.Steps) != 1 || !strings.Contains(d.Steps[0], want) || len(d.Why) > 0 {
			t.Errorf("%s: %+v", outcome, d)
		}
		d.why("%s", d.Steps[0])
		if d.step("%s", d.Steps[0]); len(d.Steps) != 1 || len(d.Why) != 1 {
			t.Errorf("%s: %+v", outcome, d)
		}
	}
}
