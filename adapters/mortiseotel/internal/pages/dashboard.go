package pages

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

type panel struct {
	title string
	unit  string // the name of the unit in Grafana
	lines []line
}

type line struct{ expr, legend string }

const chosen = `{job=~"$job", instance=~"$instance"}`

func rows() []struct {
	title  string
	panels []panel
} {
	rate := func(name, by string) string {
		return fmt.Sprintf("sum by (%s) (rate(%s%s[$__rate_interval]))", by, table.Prom(name), chosen)
	}
	count := func(name, by string) string {
		return fmt.Sprintf("sum by (%s) (rate(%s_count%s[$__rate_interval]))", by, table.Prom(name), chosen)
	}
	now := func(name string) string { return table.Prom(name) + chosen }
	quantiles := func(name string) []line {
		var lines []line
		for _, q := range []string{"0.5", "0.99"} {
			expr := fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s[$__rate_interval])))",
				q, table.Prom(name), chosen)
			lines = append(lines, line{expr, "p" + q[2:]})
		}
		return lines
	}
	each := func(name string) []line { return []line{{now(name), "{{instance}}"}} }
	return []struct {
		title  string
		panels []panel
	}{
		{"Can locks be had?", []panel{
			{"Share of time in which locks could be granted", "percentunit",
				[]line{{fmt.Sprintf("rate(%s[$__rate_interval]) / rate(%s[$__rate_interval])", now(table.Available),
					now(table.Time)), "{{instance}}"}}},
			{"Knows a leader", "short", each(table.LeaderKnown)},
			{"Leads", "short", each(table.LeaderHere)},
			{"Failed", "short", each(table.Failed)},
		}},
		{"Locks", []panel{
			{"Calls by how they ended", "ops", []line{{count(table.Wait, "outcome"), "{{outcome}}"}}},
			{"Wait", "s", quantiles(table.Wait)},
			{"Queue length at a request", "short", quantiles(table.Queue)},
			{"Hold", "s", quantiles(table.Hold)},
			{"Oldest hold", "s", each(table.Oldest)},
			{"Unlock", "s", quantiles(table.Unlock)},
			{"Unlocks by how they ended", "ops", []line{{count(table.Unlock, "outcome"), "{{outcome}}"}}},
			{"Held", "short", each(table.Held)},
			{"Waiting", "short", each(table.Waiters)},
			{"Waiting long by design", "short", each(table.Standby)},
			{"Kept (sticky), and held by no caller", "short", each(table.Kept)},
			{"Grants out of kept locks", "ops", []line{{rate(table.KeptGrants, "instance"), "{{instance}}"}}},
			{"Kept locks wanted by others", "ops", []line{{rate(table.Recalls, "instance"), "given back by {{instance}}"},
				{rate(table.InUse, "instance"), "in use at {{instance}}"}}},
			{"Time to give a kept lock back", "s", []line{{fmt.Sprintf(
				"rate(%s[$__rate_interval]) / rate(%s[$__rate_interval])", now(table.RecallTime), now(table.Recalls)),
				"{{instance}}"}}},
			{"Lost, by reason", "ops", []line{{rate(table.Losses, "reason"), "{{reason}}"}}},
			{"Locks in doubt, and how doubts end", "ops", []line{{rate(table.Doubts, "state"), "{{state}}"}}},
			{"Leaked by the program", "ops", []line{{rate(table.Leaks, "instance"), "{{instance}}"}}},
		}},
		{"Lease and session", []panel{
			{"Time left on the lease", "s", each(table.LeaseLeft)},
			{"Renewal", "s", quantiles(table.Renewal)},
			{"Renewals without an answer", "ops", []line{{rate(table.Unanswered, "instance"), "{{instance}}"}}},
			{"Changes of the lease", "ops", []line{{rate(table.Lease, "state"), "{{state}}"}}},
			{"Changes of the session", "ops", []line{{rate(table.Sessions, "state"), "{{state}}"}}},
		}},
		{"Group", []panel{
			{"Members", "short", []line{{now(table.Members), "says {{instance}}"}}},
			{"Voters", "short", append(each(table.Voters), line{now(table.Missing), "missing according to {{instance}}"})},
			{"Instances beyond Replicas", "short", each(table.Surplus)},
			{"Replicas with another state", "short", each(table.Diverged)},
			{"Term", "short", each(table.Term)},
			{"Changes of the leader", "ops", []line{{rate(table.Leader, "instance"), "{{instance}}"}}},
			{"Log on disk", "s", quantiles(table.Sync)},
			{"Disks", "short", append(each(table.DiskFault), line{now(table.DiskLow), "almost full: {{instance}}"})},
			{"Seconds without a processor, in a second", "short", []line{{rate(table.Starved, "instance"), "{{instance}}"}}},
			{"Events dropped by slow hooks", "ops", []line{{rate(table.Dropped, "instance"), "{{instance}}"}}},
		}},
	}
}

type object = map[string]any

// Dashboard returns a Grafana dashboard.
func Dashboard() ([]byte, error) {
	const width, height, columns = 8, 7, 3
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	y, id := 0, 0
	for _, row := range rows() {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": row.title, "collapsed": false,
			"gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}, "panels": []object{}})
		y++
		for i, p := range row.panels {
			id++
			var targets []object
			for j, l := range p.lines {
				targets = append(targets, object{"refId": string(rune('A' + j)), "datasource": source, "expr": l.expr,
					"legendFormat": l.legend})
			}
			panels = append(panels, object{
				"id": id, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
				"gridPos":     object{"h": height, "w": width, "x": i % columns * width, "y": y + i/columns*height},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
			})
		}
		y += (len(row.panels) + columns - 1) / columns * height
	}
	one := table.Prom(table.Time)
	variable := func(name, query string) object {
		return object{"name": name, "type": "query", "datasource": source, "query": query, "refresh": 2,
			"multi": true, "includeAll": true, "current": object{"text": "All", "value": "$__all"}}
	}
	return json.MarshalIndent(object{
		"title": "mortise", "uid": "mortise", "tags": []string{"mortise"}, "schemaVersion": 39, "version": 1,
		"editable": true, "refresh": "30s",
		"time": object{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "query": "prometheus"},
			variable("job", "label_values("+one+", job)"),
			variable("instance", `label_values(`+one+`{job=~"$job"}, instance)`),
		}},
	}, "", "  ")
}
