package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/memnet"
)

// wrongState is a trouble that begins in a group that runs. The instances have directories.
type wrongState struct {
	issue    string
	replicas int // Config.Replicas of all instances; zero means Founders
	play     func(r *wrongRig)
	lasts    time.Duration // from the end of play until the views are read
	// seen matches, for each view, the text that names the culprit. The views are those of an
	// instance that leads, or else of one that runs.
	seen map[string]string
	// silent is how long the culprit has been silent at the end of lasts, in the texts of all views
	// that have a time. Zero means that they have none.
	silent time.Duration
	do     []wrongStep // the steps of doctor, in the order in which they are carried out
}

type wrongStep struct {
	says string
	do   func(r *wrongRig)
}

func wrongStates() []wrongState {
	const twoGone = `of its voters, "n[23]" \(10\.0\.0\.[23]:7947\) \(no answer since [^)]* or earlier\), "n[23]" ` +
		`\(10\.0\.0\.[23]:7947\) \(no answer since [^)]* or earlier\) cannot be reached: bring them back`
	// A leader that was elected after the end of n3 has never heard from it.
	const span = `silent for (at least )?\d+s(, as this leader has never heard from it)?`
	back := func(i int) func(*wrongRig) { return func(r *wrongRig) { r.start(i) } }
	return []wrongState{
		{issue: "more instances than Replicas says", replicas: 2, play: func(r *wrongRig) { r.start(2) },
			lasts: 30 * time.Second,
			seen: map[string]string{
				"doctor":   `^3 instances run \(n1, n2, n3\), but Replicas says 2: `,
				"Health":   `3 instances run \(n1, n2, n3\), but Replicas says 2: `,
				"the page": `3 instances run \(n1, n2, n3\), but Replicas says 2: .*Next: Set Replicas to 3`,
				"the log":  `level=WARN msg="3 instances run \(n1, n2, n3\), but Replicas says 2: [^\n]*for_at_least=2\ds`,
			},
			do: []wrongStep{{`^set Replicas to 3 on all instances and roll that out, or scale back to 2`,
				func(r *wrongRig) { r.stop(2) }}},
		},
		{issue: "the loss of a voter is logged nowhere", play: func(r *wrongRig) { r.stop(2) }, lasts: 20 * time.Second,
			silent: 20 * time.Second,
			seen: map[string]string{
				"doctor": `^the voter n3 has been ` + span + `: its process does not run: 10\.0\.0\.3:7947 refuses`,
				"Health": `missing: n3 \(` + span + `\)`,
				"the page": `The voter n3 has been ` + span + `\. .*Next: Stop no instance now: n3 \(` + span + `\) is ` +
					`being replaced, or must come back`,
				"the log": `level=WARN msg="a voter is silent" [^\n]*voter=n3 [^\n]*for_at_least=\d+(\.\d)?s next=`,
			},
			do: []wrongStep{{`^stop no instance now: n3 \(` + span + `\) is being replaced, or must come back`, back(2)}},
		},
		{issue: "the loss of the quorum is logged at INFO", play: func(r *wrongRig) { r.stop(1); r.stop(2) },
			lasts: 40 * time.Second, silent: 40 * time.Second,
			seen: map[string]string{
				"doctor": `^the quorum is lost for at least \d+s: 2 of 3 voters are missing, so no lock is granted`,
				"Status": twoGone, "Ready": twoGone,
				"the page": `No leader: .*Next: Bring back a majority of the voters: those that cannot be reached are named ` +
					`above`,
				"the log": `level=WARN msg="[^\n]*"n[23]" \(10\.0\.0\.[23]:7947\)`,
			},
			do: []wrongStep{
				{`^bring back 1 of the missing voters with their directories \(n[23] at 10\.0\.0\.[23]:7947, n[23] at ` +
					`10\.0\.0\.[23]:7947\)`,
					back(1)},
				{`^stop no instance now: n3 \(silent for \S+ ?[^)]*\) is being replaced, or must come back`, back(2)},
			},
		},
		{issue: "a voter without its directory", play: func(r *wrongRig) {
			r.stop(2)
			r.dirs[2] = filepath.Join(r.root, "new")
			r.start(2)
		}, lasts: 20 * time.Second}, // it heals itself
		{issue: "a directory put back in an older state", play: func(r *wrongRig) {
			copied := filepath.Join(r.root, "copy")
			r.stop(2)
			if err := os.CopyFS(copied, os.DirFS(r.dirs[2])); err != nil {
				r.t.Fatal(err)
			}
			r.start(2)
			r.settle()
			r.stop(2)
			r.dirs[2], r.mayFail = copied, true
			r.start(2)
		}, lasts: 10 * time.Second, silent: 10 * time.Second,
			seen: map[string]string{
				"Start": `the directory is a copy: .* was copied or restored from a backup\. .*Remove the whole ` +
					`directory, and the instance starts as a new one`,
				"doctor": `^the voter n3 has been ` + span + `: its process does not run: 10\.0\.0\.3:7947 refuses`,
			},
			do: []wrongStep{{`^stop no instance now: n3 \(silent for `, func(r *wrongRig) { // as the error of Start says
				if err := os.RemoveAll(r.dirs[2]); err != nil {
					r.t.Fatal(err)
				}
				r.start(2)
			}}},
		},
	}
}

// See wrongState. After the steps of doctor the trouble has ended in all views.
func TestWrongStatesOfARunningGroupAreNamed(t *testing.T) {
	for _, s := range wrongStates() {
		t.Run(s.issue, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) { playWrongState(t, root, s) })
		})
	}
}

func playWrongState(t *testing.T, root string, s wrongState) {
	r := &wrongRig{t: t, net: memnet.New(), root: root, replicas: s.replicas}
	t.Cleanup(func() {
		for i := range r.nodes {
			r.stop(i)
		}
	})
	for i := range r.nodes {
		r.dirs[i] = filepath.Join(root, wrongHost(i))
		if s.replicas == 0 || i < s.replicas {
			r.start(i)
		}
	}
	r.settle()
	began := time.Now()
	s.play(r)
	stopped := time.Now()
	for time.Since(stopped) < s.lasts { // fake time
		time.Sleep(time.Second)
		for i := range r.nodes {
			r.note(i)
		}
	}
	views := r.viewsOfAll()
	for view, want := range s.seen {
		if !regexp.MustCompile(want).MatchString(views[view]) {
			t.Errorf("%s says\n%s\nwant in it\n%s", view, views[view], want)
		}
	}
	for view, text := range views {
		spans := regexp.MustCompile(`(?:silent|is lost) for (?:at least )?(\S+?)[:;,.)]`)
		for _, m := range spans.FindAllStringSubmatch(text, -1) {
			is, err := time.ParseDuration(m[1])
			if off := (is - s.silent).Abs(); err != nil || s.silent == 0 || off > 3*time.Second && view != "the log" {
				t.Errorf("%s says %q, and it is %v: %v", view, m[0], s.silent, err)
			}
		}
	}
	for _, m := range regexp.MustCompile(`since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC`).FindAllStringSubmatch(
		views["Status"]+views["Ready"]+views["the page"], -1) {
		if is, err := time.Parse(time.DateTime, m[1]); err != nil || is.Before(began.Add(-time.Second)) ||
			is.After(stopped.Add(2*time.Second)) {
			t.Errorf("%q, and it was between %v and %v: %v", m[0], began, stopped, err)
		}
	}
	for _, step := range s.do {
		d := r.doctor()
		if d.Well || len(d.Steps) == 0 || !regexp.MustCompile(step.says).MatchString(d.Steps[0]) {
			t.Fatalf("the first step is not %s:\n%s", step.says, r.all())
		}
		step.do(r)
		r.settle()
	}
	time.Sleep(time.Minute)
	if d := r.doctor(); !d.Well && !(s.replicas == 2 && strings.HasPrefix(d.Problem, "Replicas says")) {
		t.Errorf("after the steps:\n%s", r.all())
	}
	for i, n := range r.nodes {
		if n == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := errors.Join(n.Ready(ctx), n.Err()); err != nil {
			t.Errorf("after the steps n%d: %v", i+1, err)
		}
		cancel()
		if page := r.views(i)["the page"]; strings.Contains(page, "silent") || strings.Contains(page, "Replicas") {
			t.Errorf("after the steps the page of n%d says\n%s", i+1, page)
		}
	}
}

// viewsOfAll returns the views of the leader, or else of an instance that runs, with those of
// doctor and Health.
func (r *wrongRig) viewsOfAll() map[string]string {
	var from int
	for i, n := range r.nodes {
		if n != nil && (r.nodes[from] == nil || n.Status().Leading) {
			from = i
		}
	}
	views := r.views(from)
	if h := r.nodes[from].Status().Health; h != nil {
		views["Health"] = h.String()
	}
	d := r.doctor()
	if r.refused != nil {
		views["Start"] = r.refused.Error()
	}
	views["doctor"] = d.Problem + "\n" + strings.Join(d.Why, "\n") + "\n" + strings.Join(d.Steps, "\n")
	return views
}

// The complaints of the issue about states that this world cannot make, and the tests that make
// them.
func TestOtherWrongStatesAreTested(t *testing.T) {
	for _, c := range []struct{ issue, file, test string }{
		{"a voter that lost its directory, and Ready",
			"internal/lab/e2e/lostdir_test.go", "TestARollingDeployThatLosesEachDirectory"},
		{"a second process of a living voter's name",
			"internal/lab/e2e/lostdir_test.go", "TestASecondProcessOfALivingVoter"},
		{"Ready of a node that has failed or leaves",
			"internal/lab/e2e/ready_test.go", "TestReadyOfANodeThatEnds"},
		{"the last reason of Ready, for short probes",
			"internal/lab/e2e/ready_test.go", "TestReadyOfShortProbes"},
		{"a build that cannot read the group's rules",
			"internal/lab/e2e/oldbuild_test.go", "TestAnOldBuildIsRefused"},
		{"a slow answer to Prepare costs a vote",
			"internal/lab/e2e/lostdir_test.go", "TestASlowDiskCostsNoVote"},
		{"scaling, with restarts, is no surplus",
			"internal/lab/e2e/surplus_test.go", "TestMoreInstancesThanReplicas"},
		{"a time that was not observed",
			"cmd/mortise/led_test.go", "TestNoSilenceIsInvented"},
		{"both values of a setting, and which counts",
			"cluster/founding/differs_test.go", "TestADifferingSettingIsToldWithBothValues"},
		{"Start(nil), and a missing parent of Dir",
			"starterrors_test.go", "TestStartNamesTheMistakeAndTheStep"},
		{"doctor says stop of a holder that is gone",
			"cmd/mortise/led_test.go", "TestHolderFate"},
		{"doctor's order of the steps",
			"cmd/mortise/led_test.go", "TestTheStepForSettingsThatDiffer"},
		{"a directory put back in place",
			"internal/lab/e2e/putback_test.go", "TestADirectoryPutBack"},
		{"250 lines an hour for a session with 1 s",
			"internal/instance/losslog_test.go", "TestLossesAreToldSeldom"},
		{"barrier returns 5 s after its context",
			"barrier/double_test.go", "TestEnterReturnsSoonAfterItsContext"},
		{"what a starved machine costs",
			"internal/clock/starvation_test.go", "TestStarvation"},
		{"a starved process blames its disk",
			"internal/instance/verdicts_test.go", "TestAStarvedProcessDoesNotBlameItsDisk"},
		{"IPv6 off",
			"internal/instance/env_test.go", "TestAnAddressThatThisMachineLacksRefuses"},
		{"EMFILE is called a broken disk",
			"internal/lab/e2e/files_test.go", "TestALeaderWithoutFileDescriptorsHandsOver"},
		{"Ctrl-C before a group is founded",
			"internal/lab/e2e/unfounded_test.go", "TestAnEndBeforeTheFoundingIsPrompt"},
		{"the voters of a lost quorum, above figures",
			"console/findings_test.go", "TestTheVotersOfALostQuorumStandAboveTheFigures"},
		{"lists instead of a wall of text on the page",
			"console/findings_test.go", "TestALongReasonIsAList"},
	} {
		text, err := os.ReadFile(filepath.Join("../..", c.file))
		if err != nil || !strings.Contains(string(text), "\nfunc "+c.test+"(t *testing.T) {\n") {
			t.Errorf("%s: there is no test %s in %s (%v)", c.issue, c.test, c.file, err)
		}
	}
}
