// Package pages makes the Prometheus alert rules and the Grafana dashboard. The names of the
// metrics come from package table.
package pages

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

// Runbook is the address of the page that describes what to do when an alert fires. The anchor of
// an alert is its name in lower case.
const Runbook = "https://github.com/mortise-lock/mortise/blob/main/docs/OPERATION.md#"

// Alert is one alert rule.
type Alert struct {
	Name string
	Expr string
	For  string
	// Severity is "critical" if no locks are granted, or if two processes may hold the same lock.
	// It is "warning" if an operator should look at the problem within a day.
	Severity    string
	Summary     string // one line
	Description string
}

// Link returns the address of the section of the runbook for this alert.
func (a Alert) Link() string { return Runbook + strings.ToLower(a.Name) }

// Alerts returns all rules.
func Alerts() []Alert {
	p := table.Prom
	grown := func(name, labels, window string) string {
		return fmt.Sprintf("sum by (job, instance) (increase(%s%s[%s])) > 0", p(name), labels, window)
	}
	return []Alert{
		{"MortiseNoLeader", fmt.Sprintf("max by (job) (%s) == 0", p(table.LeaderKnown)), "1m", "critical",
			"No instance of {{ $labels.job }} knows a leader: no lock is granted",
			"A majority of the voters must be running and reach each other. Held locks are lost when their leases expire."},
		{"MortiseTwoLeaders", fmt.Sprintf("sum by (job) (%s) > 1", p(table.LeaderHere)), "2m", "critical",
			"{{ $value }} instances of {{ $labels.job }} lead: there are two groups, or the job contains several clusters",
			"Two groups with leaders grant the same locks. This does not end by itself: stop one group."},
		{"MortiseSurplus", fmt.Sprintf("max by (job) (%s) > 0", p(table.Surplus)), "1m", "critical",
			"{{ $labels.job }} runs {{ $value }} instances more than Replicas says",
			"In a cut of the network a second group can be founded, and both groups grant the same locks. Set Replicas to the " +
				"number that runs on all instances and roll that out, or scale back."},
		{"MortiseDiverged", fmt.Sprintf("max by (job) (%s) > 0", p(table.Diverged)), "0s", "critical",
			"{{ $value }} replicas of {{ $labels.job }} had another state than the majority, and have ended",
			"A memory or a disk is damaged, or a build has other rules. Health.Differs and mortise doctor name the replica " +
				"and the next step."},
		{"MortiseRetired", fmt.Sprintf("%s == 1", p(table.Failed)), "1m", "critical",
			"The node on {{ $labels.instance }} has failed and holds nothing any more",
			"Node.Err and the log say why. The process runs without locks until the node is restarted."},
		{"MortiseNotReady", fmt.Sprintf("rate(%s[5m]) / rate(%s[5m]) < 0.9", p(table.Available), p(table.Time)), "5m",
			"critical",
			"{{ $labels.instance }} could be granted locks for only {{ $value | humanizePercentage }} of the last 5 minutes",
			"It is cut off from the leader, or there is none, or the group is in its grace."},
		{"MortiseLocksLost", grown(table.Losses, `{reason!~"overdue|idle|forced|stopped|resumed"}`, "10m"), "0s", "critical",
			"{{ $labels.instance }} has lost locks that it held",
			"Their leases were not renewed in time, or the group ended the session. Work under them may have continued; " +
				"tokens protect the resource."},
		{"MortiseHeldTooLong", grown(table.Losses, `{reason=~"overdue|idle"}`, "10m"), "0s", "warning",
			"{{ $labels.instance }} held a lock for as long as its request allows",
			"The code under the lock hangs, or Request.MaxHold or MaxIdle is too short."},
		{"MortiseHoldGoesOn", p(table.Oldest) + " > 3600", "0s", "warning",
			"{{ $labels.instance }} has held a lock for {{ $value | humanizeDuration }}",
			"The code under the lock hangs, or works longer than an hour by design: then label it as a job."},
		{"MortiseForcedUnlocks", grown(table.Losses, `{reason="forced"}`, "10m"), "0s", "warning",
			"A lock of {{ $labels.instance }} was ended by force",
			"The leader's log has the source and the reason."},
		{"MortiseLeakedHandles", grown(table.Leaks, "", "1h"), "0s", "warning",
			"{{ $labels.instance }} has leaked a lock: it is held, and no handle is left",
			"A path of the program returns without Unlock. The lock stays held until the session ends."},
		{"MortiseLeaseInJeopardy", grown(table.Lease, `{state="jeopardy"}`, "10m"), "0s", "warning",
			"The lease of {{ $labels.instance }} was in jeopardy",
			"No renewal was answered for two thirds of the TTL: an overloaded machine, or a network that loses packets."},
		{"MortiseStuck", fmt.Sprintf(`max by (job, instance) (%s) > 0 unless on (job, instance) `+
			`sum by (job, instance) (increase(%s_count{outcome="granted"}[1m])) > 0`, p(table.Waiters), p(table.Wait)),
			"5m", "warning",
			"{{ $value }} calls of {{ $labels.instance }} wait, and none was granted a lock for minutes",
			"A holder hangs, or there is no leader, or the work under a lock takes long."},
		{"MortiseQueueLong", fmt.Sprintf(`histogram_quantile(0.99, sum by (job, le) `+
			`(rate(%s_bucket{outcome="granted",kind!~"election|tick|job"}[10m]))) > 30`, p(table.Wait)), "10m", "warning",
			"One of a hundred calls of {{ $labels.job }} waits longer than {{ $value | humanizeDuration }} for a lock",
			"Locks are held too long or requested too often."},
		{"MortiseRefused", fmt.Sprintf(`sum by (job, instance, outcome) `+
			`(rate(%s_count{outcome=~"queue_full|overloaded|not_ready|failed"}[5m])) > 0.1`, p(table.Wait)), "5m", "warning",
			"Lock calls of {{ $labels.instance }} are rejected: {{ $labels.outcome }}",
			"A queue or this instance is full, or a try could not be decided in time."},
		{"MortiseDeadlocks", fmt.Sprintf(`sum by (job, instance) (increase(%s_count{outcome="deadlock"}[1h])) > 0`,
			p(table.Wait)), "0s", "warning",
			"A call of {{ $labels.instance }} was rejected because it would have caused a deadlock",
			"Two parts of the program take the same locks in different orders."},
		{"MortiseLeaderFlaps", fmt.Sprintf("max by (job) (increase(%s[15m])) > 3", p(table.Leader)), "0s", "warning",
			"{{ $labels.job }} has changed its leader {{ $value | humanize }} times in 15 minutes",
			"A machine is short of CPU time, the network loses packets, or a disk stalls."},
		{"MortiseVoterMissing", fmt.Sprintf("max by (job) (%s) > 0", p(table.Missing)), "3m", "warning",
			"{{ $labels.job }} lacks {{ $value }} voters: they are silent, or no instance has replaced them",
			"One more loss may cost the majority."},
		{"MortiseDiskFault", p(table.DiskFault) + " == 1", "0s", "critical",
			"The disk of {{ $labels.instance }} does not work, or its directory was removed",
			"Its Status says which, since when and what to do. It continues to lock without a vote; " +
				"stop no other instance before it votes again."},
		{"MortiseDiskLow", p(table.DiskLow) + " == 1", "5m", "warning",
			"The disk of {{ $labels.instance }} has less room than Config.DirFreeBytes",
			"A voter whose disk is full loses its vote."},
		{"MortiseLogSyncSlow",
			fmt.Sprintf("histogram_quantile(0.99, sum by (job, instance, le) (rate(%s_bucket[10m]))) > 0.1",
				p(table.Sync)), "10m", "warning",
			"The log of {{ $labels.instance }} takes {{ $value | humanizeDuration }} to become durable",
			"Every lock waits for a majority of the voters' disks; at 500 ms a leader steps down."},
		{"MortiseTelemetryDropped", grown(table.Dropped, "", "1h"), "0s", "warning",
			"The metrics of {{ $labels.instance }} are not complete: its hooks are too slow",
			"An exporter or a wrapped hook blocks."},
	}
}

// AlertRules returns the rules as a Prometheus rule file.
func AlertRules() []byte {
	var b strings.Builder
	b.WriteString("# Made by go run ./generate; change internal/pages/alerts.go instead.\n" +
		"groups:\n  - name: mortise\n    rules:\n")
	for _, a := range Alerts() {
		fmt.Fprintf(&b, "      - alert: %s\n", a.Name)
		writeText(&b, 8, "expr", a.Expr)
		fmt.Fprintf(&b, "        for: %s\n        labels:\n          severity: %s\n        annotations:\n",
			a.For, a.Severity)
		writeText(&b, 10, "summary", a.Summary)
		writeText(&b, 10, "description", a.Description)
		fmt.Fprintf(&b, "          runbook_url: %s\n", strconv.Quote(a.Link()))
	}
	return []byte(b.String())
}

// width is the maximum width of the lines of the rules. Lines that contain addresses may be wider.
const width = 100

// writeText writes a key and its text. A text that is too long for one line becomes a folded block,
// in which YAML reads each line end as one space.
func writeText(b *strings.Builder, indent int, key, text string) {
	margin := strings.Repeat(" ", indent)
	if line := margin + key + ": " + strconv.Quote(text); utf8.RuneCountInString(line) <= width {
		b.WriteString(line + "\n")
		return
	}
	b.WriteString(margin + key + ": >-\n")
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && utf8.RuneCountInString(margin+"  "+line+" "+word) > width {
			b.WriteString(margin + "  " + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	b.WriteString(margin + "  " + line + "\n")
}
