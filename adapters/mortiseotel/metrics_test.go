package mortiseotel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

func TestNamesPassPrometheusLinter(t *testing.T) {
	r := newRig(t)
	r.live(t)
	problems, err := testutil.GatherAndLint(r.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	printed := r.gather(t)
	for _, m := range table.Metrics() {
		if f := printed[table.Prom(m.Name)]; f == nil {
			t.Errorf("%s is not printed", table.Prom(m.Name))
		} else if f.GetHelp() != m.Help {
			t.Errorf("%s says %q", f.GetName(), f.GetHelp())
		}
		delete(printed, table.Prom(m.Name))
	}
	delete(printed, "target_info")
	for name := range printed {
		t.Errorf("%s is printed and not in the table", name)
	}
}

func TestKeysAreNoLabels(t *testing.T) {
	for _, classed := range []bool{false, true} {
		r := newRig(t, func(o *mortiseotel.Options) {
			o.Attributes = []attribute.KeyValue{attribute.String("node", "one")}
			if classed {
				o.Class = func(key string) string { return "class of " + key[:3] }
			}
		})
		r.live(t)
		classes := map[string]bool{}
		for name, f := range r.gather(t) {
			for _, m := range f.GetMetric() {
				node := name == "target_info"
				for _, l := range m.GetLabel() {
					if strings.Contains(l.GetValue(), "orders/") {
						t.Errorf("%s: %s is %q", name, l.GetName(), l.GetValue())
					}
					if l.GetName() == "class" {
						classes[l.GetValue()] = true
					}
					node = node || l.GetName() == "node" && l.GetValue() == "one"
				}
				if !node {
					t.Errorf("%s lacks the attribute of the user: %v", name, m)
				}
			}
		}
		if want := map[bool]int{false: 0, true: 1}[classed]; len(classes) != want ||
			classed && !classes["class of ord"] {
			t.Errorf("the classes are %v", classes)
		}
	}
}

func members(n *mortise.Node) int {
	if h := n.Status().Health; h != nil {
		return h.Members
	}
	return 0
}

func TestFiguresAreThoseOfTheNode(t *testing.T) {
	r := newRig(t)
	// An alert rule notices an increase only if the series existed before the increase.
	for _, reason := range []string{"lease", "overdue", "idle", "forced", "expired"} {
		if f := r.gather(t)["mortise_lock_losses_total"]; len(f.GetMetric()) != 9 ||
			r.value(t, "mortise_lock_losses_total", "reason", reason) != 0 {
			t.Fatalf("%v", f)
		}
	}
	r.live(t)
	held := r.acquire(t, t.Context(), mortise.Request{Key: "k", Mode: mortise.Shared})
	// The leader counts members at intervals.
	for end := time.Now().Add(10 * time.Second); members(r.node) != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the leader does not count its own session")
		}
	}
	for _, c := range []struct {
		name, label, value string
		want               float64
	}{
		{"mortise_lock_wait_duration_seconds", "outcome", "granted", 3},
		{"mortise_lock_wait_duration_seconds", "outcome", "held", 1},
		{"mortise_lock_wait_duration_seconds", "outcome", "deadlock", 1},
		{"mortise_lock_wait_duration_seconds", "kind", "shared", 1},
		{"mortise_lock_wait_duration_seconds", "kind", "permits", 1},
		{"mortise_lock_unlock_duration_seconds", "outcome", "confirmed", 1},
		{"mortise_lock_hold_duration_seconds", "end", "unlocked", 1},
		{"mortise_lock_hold_duration_seconds", "end", "lost", 1},
		{"mortise_lock_losses_total", "", "", 1},
		{"mortise_lock_leaks_total", "", "", 0},
		{"mortise_lock_held", "", "", 1},
		{"mortise_lock_waiters", "", "", 0},
		{"mortise_leader_known", "", "", 1},
		{"mortise_leader_here", "", "", 1},
		{"mortise_leader_changes_total", "", "", 1},
		{"mortise_members", "", "", 1},
		{"mortise_voters", "", "", 1},
		{"mortise_voters_missing", "", "", 0},
		{"mortise_surplus_instances", "", "", 0},
		{"mortise_replicas_diverged", "", "", 0},
		{"mortise_disk_fault", "", "", 0},
		{"mortise_disk_low", "", "", 0},
		{"mortise_session_changes_total", "state", "opened", 1},
		{"mortise_lease_changes_total", "state", "safe", 1},
		{"mortise_node_failed", "", "", 0},
		{"mortise_hooks_dropped_total", "", "", 0},
	} {
		if got := r.value(t, c.name, c.label, c.value); got != c.want {
			t.Errorf("%s{%s=%q} is %v, want %v", c.name, c.label, c.value, got, c.want)
		}
	}
	if left := r.value(t, "mortise_lease_remaining_seconds", "", ""); left <= 0 || left > 2 {
		t.Errorf("a lease of 2 s has %v s left", left)
	}
	if can, age := r.value(t, "mortise_node_available_time_seconds_total", "", ""),
		r.value(t, "mortise_node_time_seconds_total", "", ""); can <= 0 || can >= age || age > 120 {
		t.Errorf("available for %v of %v s", can, age)
	}
	if starved := r.gather(t)["mortise_node_starved_time_seconds_total"].GetMetric(); len(starved) != 1 {
		t.Errorf("a voter reports its time without a processor as %v", starved)
	}
	if n := r.value(t, "mortise_log_sync_duration_seconds", "outcome", "synced"); n < 5 {
		t.Errorf("%v appends to the log", n)
	}
	unlock(t, held)
}

func TestHistogramsAreInSeconds(t *testing.T) {
	r := newRig(t)
	r.live(t)
	for _, m := range table.Metrics() {
		if m.Kind != table.Histogram || m.Unit != "s" {
			continue
		}
		for _, series := range r.gather(t)[table.Prom(m.Name)].GetMetric() {
			if h := series.GetHistogram(); h.GetSampleSum()/float64(h.GetSampleCount()) > 20 {
				t.Errorf("%s: %v in all for %d", m.Name, h.GetSampleSum(), h.GetSampleCount())
			}
		}
	}
}
