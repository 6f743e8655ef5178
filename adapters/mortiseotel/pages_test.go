package mortiseotel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/pages"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

// If this test fails, run go run ./generate.
func TestPagesAreCurrent(t *testing.T) {
	dashboard, err := pages.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(dashboard) {
		t.Error("the dashboard is not JSON")
	}
	for name, want := range map[string][]byte{"dashboard.json": append(dashboard, '\n'),
		"alerts.yml": pages.AlertRules()} {
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes (%v): go run ./generate", name, err)
		}
	}
}

var (
	// named matches a metric and its matchers in an expression. matcher matches a label and its
	// value.
	named   = regexp.MustCompile(`\b(mortise_[a-z_]+)(\{[^}]*\})?`)
	matcher = regexp.MustCompile(`([a-z]+)(=~|!~|!=|=)"([^"]*)"`)
	grouped = regexp.MustCompile(`by \(([^)]*)\)`)
)

// A running node must export every metric that a query uses, with the labels that the query uses.
func TestPagesAskForWhatIsThere(t *testing.T) {
	r := newRig(t)
	r.live(t)
	labels := map[string][]string{}
	for name, f := range r.gather(t) {
		of := []string{"job", "instance"} // Prometheus adds these labels
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				of = append(of, l.GetName())
			}
		}
		if f.GetType().String() == "HISTOGRAM" {
			labels[name+"_bucket"], labels[name+"_count"], labels[name+"_sum"] = append(of, "le"), of, of
			continue
		}
		labels[name] = of
	}
	dashboard, err := pages.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]bool{}
	collect(t, dashboard, queries)
	if len(queries) < 20 {
		t.Fatalf("only %d queries in the dashboard: the rule would pass because it sees nothing", len(queries))
	}
	shown := fmt.Sprint(queries)
	for _, a := range pages.Alerts() {
		queries[a.Expr] = true
	}
	for query := range queries {
		for _, fault := range faults(query, labels) {
			t.Errorf("%s: %s", query, fault)
		}
	}
	for _, m := range table.Metrics() {
		if !strings.Contains(shown, table.Prom(m.Name)) {
			t.Errorf("%s is in no picture of the dashboard", table.Prom(m.Name))
		}
	}
	for _, bad := range []string{"mortise_no_such_total > 0", `mortise_lock_losses_total{why="lease"} > 0`,
		"sum by (kind) (mortise_lock_held)", "1 > 0"} {
		if len(faults(bad, labels)) == 0 {
			t.Errorf("the rule sees nothing in %q", bad)
		}
	}
}

func faults(query string, labels map[string][]string) (faults []string) {
	found := named.FindAllStringSubmatch(query, -1)
	if len(found) == 0 {
		return []string{"it names no metric"}
	}
	for _, f := range found {
		has, there := labels[f[1]]
		if !there {
			faults = append(faults, "there is no "+f[1])
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(f[2], -1) {
			if !slices.Contains(has, m[1]) {
				faults = append(faults, f[1]+" has no label "+m[1])
			}
		}
		for _, g := range grouped.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(g[1], ",") {
				if !slices.Contains(has, strings.TrimSpace(label)) {
					faults = append(faults, f[1]+" has no label "+label)
				}
			}
		}
	}
	return faults
}

func collect(t *testing.T, dashboard []byte, into map[string]bool) {
	t.Helper()
	var page struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &page); err != nil {
		t.Fatal(err)
	}
	for _, p := range page.Panels {
		for _, target := range p.Targets {
			into[target.Expr] = true
		}
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	anchors, written := runbook(t)
	seen := map[string]bool{}
	for _, a := range pages.Alerts() {
		if a.Summary == "" || a.Description == "" || a.For == "" || a.Severity != "critical" &&
			a.Severity != "warning" || seen[a.Name] {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
		anchor, ok := strings.CutPrefix(a.Link(), pages.Runbook)
		if !ok || anchor != strings.ToLower(a.Name) {
			t.Errorf("%s links to %s", a.Name, a.Link())
		}
		if written && !slices.Contains(anchors, anchor) {
			t.Errorf("docs/OPERATION.md has no heading %s", a.Name)
		}
	}
	if !written {
		t.Log("*** docs/OPERATION.md is not there: whether the runbook has all anchors was not checked ***")
	}
}

func runbook(t *testing.T) (anchors []string, written bool) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "OPERATION.md"))
	if err != nil {
		return nil, false
	}
	drop := regexp.MustCompile("[^a-z0-9 _-]")
	for line := range strings.Lines(string(text)) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			text := drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return anchors, true
}

func TestFoldedTextsAreWhole(t *testing.T) {
	rules := strings.Join(strings.Fields(string(pages.AlertRules())), " ")
	for _, a := range pages.Alerts() {
		for key, text := range map[string]string{"expr": a.Expr, "summary": a.Summary, "description": a.Description} {
			if !strings.Contains(rules, key+": >- "+text+" ") && !strings.Contains(rules, key+": "+strconv.Quote(text)+" ") {
				t.Errorf("%s has no %s %q", a.Name, key, text)
			}
		}
	}
}

func TestAlertRulesAreValid(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("*** SKIPPED: promtool is not installed: apt-get install -y --no-install-recommends prometheus ***")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules",
		"alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
