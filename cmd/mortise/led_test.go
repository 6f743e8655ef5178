package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/shown"
)

type headed struct {
	facts          facts
	headline, step string
}

func headedFacts() map[string]headed {
	well := func() *mortise.Health {
		return &mortise.Health{Leader: "a", Eligible: 3, Target: 3, Advice: "any one instance may be stopped"}
	}
	five := func(r *guest.Report) { r.Answer.Replicas = 5 }
	missingVoter := well()
	missingVoter.Missing = []mortise.MissingVoter{{Member: mortise.Member{Name: "c", Instance: "c", Seen: true},
		Silent: 7 * time.Second}}
	missingVoter.Advice, missingVoter.Differs = "stop no instance now", []string{"Voters: the group has 3; 5 on c"}
	crowded := well()
	crowded.Surplus, crowded.Differs = 3, []string{"Surplus: 5 instances run (a, b, c, d, e), but Replicas says 2: in a " +
		"cut of the network a second group can be founded, and both groups grant the same locks; set Replicas to 5 on all " +
		"instances and roll that out, or scale back to 2", "Voters: the group has 3; 5 on c"}
	due := well()
	due.Due, due.Change, due.Advice = true, "c gets a vote", "stop no instance now; wait until the change is done"
	late := func(r *guest.Report) { r.Skew = 4 * time.Second }
	return map[string]headed{
		"three of five": {facts{reports: []guest.Report{instance("a", five), instance("b", five),
			instance("c", five)}, health: well()},
			"Replicas says that 5 instances run, and 3 answer", "start the instances that are missing"},
		"a voter is missing, and settings differ": {facts{reports: []guest.Report{instance("a", five),
			instance("b", five), missing("c", guest.Silent)}, health: missingVoter},
			"the voter c has been silent for 7s", "stop no instance now"},
		"five, and Replicas says two": {facts{reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("c", func(r *guest.Report) { r.Answer.Failed = "a disk" })}, health: crowded},
			"5 instances run (a, b, c, d, e), but Replicas says 2: in a cut of the network a second group can be founded, and " +
				"both groups grant the same locks", "set Replicas to 5 on all instances and roll that out, or scale back to 2"},
		"two of one name": {facts{reports: []guest.Report{instance("a",
			func(r *guest.Report) { r.Status.Namesake = `"a" is the name of another instance too` }),
			instance("b", nil), instance("c", nil)}, health: well()},
			`a at a:1: "a" is the name of another instance too`, "stop one of the two"},
		"one has failed": {facts{reports: []guest.Report{instance("a", five), instance("b", five),
			instance("c", func(r *guest.Report) { r.Answer.Failed = "a disk" })}, health: well()},
			"c at c:1 has failed: a disk", "restart c"},
		"one is cut off": {facts{reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("c", leaderless)}, health: missingVoter},
			"c at c:1 knows no leader", "check that c at c:1 and the voters reach each other"},
		"a lease in danger": {facts{reports: []guest.Report{instance("a", nil),
			instance("b", func(r *guest.Report) { r.Status.Lease = mortise.LeaseJeopardy }), instance("c", nil)},
			health: well()},
			"the lease of b is jeopardy", "check the network between b and a"},
		"the voters change": {facts{reports: []guest.Report{instance("a", nil), instance("b", nil),
			instance("c", nil)}, health: due},
			"a change of the voters is due or in flight: c gets a vote", "stop no instance now; wait"},
		"another secret": {facts{reports: []guest.Report{instance("a", nil), instance("b", nil),
			missing("c", guest.Foreign)}, health: well()},
			"Replicas says that 3 instances run, and 2 answer", "give c at c:1 the secret"},
		"clocks": {facts{reports: []guest.Report{instance("a", nil), instance("b", late), instance("c", nil)},
			health: well()},
			"the wall clocks of a and b differ", "set the clocks"},
	}
}

func TestTheHeadlineIsTheWorst(t *testing.T) {
	for what, c := range headedFacts() {
		d := diagnose(c.facts)
		if d.Well || !strings.HasPrefix(d.Problem, c.headline) || !strings.HasPrefix(d.Steps[0], c.step) {
			t.Errorf("%s: %q\nwhy: %s\nnext: %s", what, d.Problem, strings.Join(d.Why, "\n     "),
				strings.Join(d.Steps, "\n      "))
		}
		if slices.Contains(d.Why, d.Problem) || !slices.Contains(d.Why, "a leads group g") {
			t.Errorf("%s: why: %q", what, d.Why)
		}
	}
}

// The step for a setting that differs names the setting. Founders have an order of restarts, which
// the leader advises, and no other step may stand above it.
func TestTheStepForSettingsThatDiffer(t *testing.T) {
	for differs, want := range map[string]string{
		"Founders: the group has [a, b, c]; [a, b, d] on d": "restart c last",
		"Replicas: the group has 3 replicas; 5 on d":        "restart c last",
		"SessionTTL: the group has 10s; 5s on c": "unless a roll-out of a new value is under way, set SessionTTL to one " +
			"value on all instances, and restart those that change, one at a time, each stopped with SIGTERM",
	} {
		h := &mortise.Health{Leader: "a", Eligible: 3, Target: 3, Advice: "restart c last", Differs: []string{differs}}
		d := diagnose(facts{reports: []guest.Report{instance("a", nil), instance("b", nil), instance("c", nil)}, health: h})
		if d.Problem != "settings differ: "+differs || d.Steps[0] != want {
			t.Errorf("%s: %q, next: %q", differs, d.Problem, d.Steps)
		}
	}
}

// A leader that has never heard a voter cannot tell how long the voter has been silent.
func TestNoSilenceIsInvented(t *testing.T) {
	heard := mortise.Member{Seen: true}
	for want, m := range map[string]mortise.MissingVoter{
		"silent for 7s":           {Silent: 7 * time.Second, Member: heard},
		"silent for 1m12s":        {Silent: 72*time.Second + 300*time.Millisecond, Member: heard},
		"silent for at least 3s,": {Silent: 3 * time.Second},
	} {
		m.Name, m.Instance = "c", "c"
		h := &mortise.Health{Leader: "a", Eligible: 3, Target: 3, Missing: []mortise.MissingVoter{m}, Advice: "wait"}
		d := diagnose(facts{reports: []guest.Report{instance("a", nil), instance("b", nil)}, health: h})
		if got := m.Silence(); !strings.HasPrefix(got, want) || m.Seen == strings.Contains(got, "at least") ||
			!strings.Contains(h.String(), "c ("+got+")") || !strings.Contains(d.Problem, "the voter c has been "+got) {
			t.Errorf("%q, %q, %q, want %q", got, h.String(), d.Problem, want)
		}
	}
}

// The session decides whether the process that answers is the holder. An operator who stops a
// process that was restarted under the holder's name does not end the hold.
func TestHolderFate(t *testing.T) {
	with := func(sessions ...string) func(*guest.Report) {
		return func(r *guest.Report) { r.Status.Sessions = sessions }
	}
	held := mortise.Standing{Hold: mortise.Hold{Holder: "b", Session: "7", Token: 1}, Left: 6 * time.Second}
	leads := held
	leads.Labels = shown.Purpose(shown.Election)
	for what, c := range map[string]struct {
		standing mortise.Standing
		b        guest.Report
		want     string
		force    bool
	}{
		"alive":                  {held, instance("b", with("7")), "its code has not unlocked", true},
		"alive, its own session": {held, instance("b", with("5", "7")), "its code has not unlocked", true},
		"started anew":           {held, instance("b", with("9")), "an earlier incarnation of b holds it", false},
		"just started":           {held, instance("b", nil), "b answers, but does not report its sessions", false},
		"gone": {held, missing("b", guest.Refused), "the process of b does not run: b:1 refuses the connection. " +
			"Stop nothing: the lock goes to the next waiter in 6s", false},
		"perhaps gone": {held, missing("b", guest.Silent), "its session ends in 6s unless b renews it", true},
		"a leader of others": {leads, instance("b", with("7")), "this lock is held long by design (election)",
			false},
		"it has lost its lease": {held,
			instance("b", func(r *guest.Report) {
				r.Status.Sessions, r.Status.Lease = []string{"7"},
					mortise.LeaseLost
			}),
			"reports that it has lost its lease", false},
	} {
		got := holderFate(c.standing, facts{reports: []guest.Report{instance("a", with("1")), c.b}})
		if !strings.Contains(got.text, c.want) || got.byForce != c.force {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// A queue may contain two sessions with the same name. They may belong to two incarnations.
func TestTwoSessionsOfOneName(t *testing.T) {
	if name := otherLives([]mortise.Standing{{Hold: mortise.Hold{Holder: "a", Session: "1"}},
		{Hold: mortise.Hold{Holder: "b", Session: "2"}},
		{Hold: mortise.Hold{Holder: "a", Session: "3"}}}); name != "a" {
		t.Errorf("%q", name)
	}
	if name := otherLives([]mortise.Standing{{Hold: mortise.Hold{Holder: "a", Session: "1"}},
		{Hold: mortise.Hold{Holder: "b", Session: "2"}},
		{Hold: mortise.Hold{Holder: "a", Session: "1"}}}); name != "" {
		t.Errorf("%q", name)
	}
}
