package whole

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// TestPageHasWhatTheFailureNeeds shrinks the runs of a program that stands for the tests. It fails
// if it has all the parts that the case names, and leaves the report of such a run.
func TestPageHasWhatTheFailureNeeds(t *testing.T) {
	parts := []Part{
		{Kind: Loss, Text: "lossy"}, {Kind: Yields, N: 1, Text: "yields"}, {Kind: ACaller, N: 4, Text: "calls"},
		{Kind: AFault, N: 0, Text: "cut", At: time.Second}, {Kind: AFault, N: 1, Text: "kill", At: 9 * time.Second},
		{Kind: Refusal, N: 7, Of: 2, Text: "no batch", At: 8 * time.Second},
		{Kind: Refusal, N: 9, Of: 2, Text: "no batch", At: 10 * time.Second},
		{Kind: Refusals, N: 2, Text: "no batch, 2 times"}, {Kind: ATrial, N: 3, Text: "trial"}}
	for _, c := range []struct {
		name  string
		needs []string // in MORTISE_ONLY, all of them
		want  []string
		err   string
		lanes bool // the window leaves some out
	}{
		{"one fault", []string{"fault 1"}, []string{"fault 1: kill, at 9.000 s"}, "", true},
		{"a fault and a refusal", []string{"fault 0", "refusal 9"},
			[]string{"fault 0: cut, at 1.000 s", "refusal 9: no batch, at 10.000 s"}, "", false},
		{"plan and calls", []string{"loss 0", "yields 1", "caller 4", "trial 3"},
			[]string{"loss 0: lossy", "yields 1: yields", "caller 4: calls", "trial 3: trial"}, "", true},
		{"nothing", []string{"nothing"}, nil, "", true},
		{"a run that passes", []string{"fault 9"}, nil, "seed 5 passes", false},
		{"no report", []string{"panic"}, nil, "ends without a report:\npanic: at the disco", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			report := Report{Bugs: []string{"two hold k1"}, TTL: time.Second, Parts: parts, Page: timeline.Page{
				At: 11 * time.Second, To: 20 * time.Second, Lanes: []string{"k0", "k1", "node-0", "node-1"},
				Bars: []timeline.Bar{{Lane: "k1", Kind: timeline.Held, From: 10 * time.Second, To: 12 * time.Second},
					{Lane: "k0", Kind: timeline.Held, To: time.Millisecond}},
				Marks: []timeline.Mark{{Lane: "node-0", Kind: timeline.Event, At: 11 * time.Second},
					{Lane: "node-1", Kind: timeline.Event, At: 19 * time.Second}}}}
			text, err := json.Marshal(&report)
			if err != nil {
				t.Fatal(err)
			}
			program := "#!/bin/sh\nprintf '1 begins\\n2 BUG two\\n3 BUG more\\n' >\"$MORTISE_TRANSCRIPT\"\n"
			all := ",loss 0,yields 1,caller 4,fault 0,fault 1,refusal 7,refusal 9,refusals 2,trial 3,nothing,"
			program += `only=",${MORTISE_ONLY-` + strings.Trim(all, ",") + "},\"\n"
			program += `case $only in *",refusals 2,"*) only="$only,refusal 7,refusal 9,";; esac` + "\n"
			for _, need := range c.needs {
				if need == "panic" {
					program += "echo 'panic: at the disco'; exit 2\n"
				}
				program += fmt.Sprintf("case $only in *\",%s,\"*) ;; *) exit 0;; esac\n", need)
			}
			program += "cp " + dir + "/all.json \"$MORTISE_REPORT\"\nexit 1\n"
			binary := filepath.Join(dir, "tests")
			if err := os.WriteFile(binary, []byte(program), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "all.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			s := &Shrinker{Binary: binary, Dir: dir, Transcript: filepath.Join(dir, "5.log"), Seed: 5, Runs: 100, Out: &out}
			p, err := s.Page(context.Background(), "repeat me")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.Faults, c.want) || !p.Minimal {
				t.Errorf("faults %q, minimal %t, want %q:\n%s", p.Faults, p.Minimal, c.want, &out)
			}
			if p.Verdict != "two hold k1" || p.Command != "repeat me" || p.To > 12*time.Second {
				t.Errorf("verdict %q, command %q, to %v", p.Verdict, p.Command, p.To)
			}
			if lanes := []string{"k1", "node-0"}; c.lanes && !slices.Equal(p.Lanes, lanes) {
				t.Errorf("lanes %q, want those with something in the window: %q", p.Lanes, lanes)
			}
			if notes := []string{"1 begins", "2 BUG two", "3 BUG more"}; !slices.Equal(p.Notes, notes) {
				t.Errorf("notes %q", p.Notes)
			}
		})
	}
}

// TestARunHasOnlyItsParts runs one seed with all parts, with none, and with one of its faults.
func TestARunHasOnlyItsParts(t *testing.T) {
	p := planOf(3)
	all := p.reduce(nil)
	if p.loss == 0 || p.yields == [3]uint32{} {
		t.Fatalf("seed 3 has no loss or no yields, choose another: %v", p)
	}
	if len(all) < 2 || all[0].Kind != Loss {
		t.Errorf("the parts of %v are %v", p, all)
	}
	for _, keep := range all {
		q := planOf(3)
		if stay := q.reduce([]string{keep.Name(), nothing}); len(stay) != 1 || stay[0] != keep {
			t.Errorf("only %v: %v stays", keep, stay)
		}
		if (q.loss > 0) != (keep.Kind == Loss) {
			t.Errorf("only %v: loss %v", keep, q.loss)
		}
		for i, rate := range q.yields {
			if want := keep.Kind == Yields && keep.N == i; (rate > 0) != want {
				t.Errorf("only %v: yields %v", keep, q.yields)
			}
		}
	}
	if only, c, err := chosenParts("fault 1,refusals 3,refusal 700,refusal 9000,nothing"); err != nil || len(only) != 5 ||
		c.kinds != [8]bool{3: true} || !c.times[700] || c.times[701] {
		t.Errorf("%q, %v", only, err)
	}
	for _, text := range []string{"fault", "fault x", "fault -1", ","} {
		if _, _, err := chosenParts(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if only, c, err := chosenParts(""); only != nil || c != nil || err != nil {
		t.Error("without a choice a run has not all parts")
	}
}
