package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

var update = flag.Bool("update", false, "write the texts in testdata anew")

// furtherFacts are situations in which only the whole text of a diagnosis counts.
func furtherFacts() map[string]facts {
	health := func(change func(*mortise.Health)) *mortise.Health {
		h := &mortise.Health{Leader: "a", Eligible: 5, Target: 5, Advice: "any one instance may be stopped"}
		change(h)
		return h
	}
	wanted := func(r *guest.Report) { r.Status.VotersWanted = 5 }
	reports := []guest.Report{instance("a", wanted), instance("b", wanted), instance("c", wanted)}
	none := func(h *mortise.Health) { h.CannotLose = []string{"a", "b"} }
	return map[string]facts{
		"in its grace": {reports: []guest.Report{
			instance("a", func(r *guest.Report) { r.Status.GraceFor = 7 * time.Second }),
			instance("b", nil), instance("c", nil)}, health: health(func(*mortise.Health) {})},
		"none can be lost": {reports: reports, health: health(none)},
		"none can be lost in a change": {reports: reports, health: health(func(h *mortise.Health) {
			none(h)
			h.Due = true
		})},
		"none can be lost, and a surplus": {reports: reports, health: health(func(h *mortise.Health) {
			none(h)
			h.Surplus = 2
		})},
		"a change, and a surplus": {reports: reports, health: health(func(h *mortise.Health) {
			h.Due, h.Surplus, h.Change = true, 2, "c gets a vote"
		})},
		"all settings differ": {reports: reports, health: health(func(h *mortise.Health) {
			h.Differs = []string{"Name: a founder is missing", "Build: d has an old build", "State: c had another state",
				"Surplus: 5 instances run", "Voters: the group has 3; 5 on c"}
		})},
	}
}

// TestDiagnosesAreAsRecorded compares each sentence of the diagnoses of all facts of these tests
// with testdata/diagnoses.txt. In these facts each field has another value: see apart. After a
// change of a text, write the file anew (go test ./cmd/mortise -run DiagnosesAre -update) and read
// its diff.
func TestDiagnosesAreAsRecorded(t *testing.T) {
	all := furtherFacts()
	maps.Copy(all, rareFacts())
	for what, c := range diagnosedFacts() {
		all["of TestDiagnose: "+what] = c.facts
	}
	for what, c := range headedFacts() {
		all["of TestTheHeadlineIsTheWorst: "+what] = c.facts
	}
	var text bytes.Buffer
	for _, what := range slices.Sorted(maps.Keys(all)) {
		d := diagnose(apart(all[what]))
		fmt.Fprintf(&text, "%s\n  well: %v, %s\n", what, d.Well, d.Problem)
		for _, why := range d.Why {
			fmt.Fprintf(&text, "  why: %s\n", why)
		}
		for _, step := range d.Steps {
			fmt.Fprintf(&text, "  step: %s\n", step)
		}
	}
	sameAs(t, "testdata/diagnoses.txt", text.Bytes())
}

// sameAs compares a text with a file, or writes the file with -update.
func sameAs(t *testing.T, file string, text []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(string(text), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("%s is no longer what it was, from line %d on: see it with -update and git diff", file, i+1)
		}
	}
}
