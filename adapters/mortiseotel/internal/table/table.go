// Package table lists the metrics of mortiseotel. The instruments, the dashboard and the alert
// rules are made from this table. The package imports no other package, so that the generator does
// not depend on OpenTelemetry.
package table

import (
	"slices"
	"strings"
)

// Kind is the kind of an instrument.
type Kind uint8

// The kinds of instruments.
const (
	Counter   Kind = iota + 1 // hooks add to it
	Histogram                 // receives values from hooks
	Gauge                     // its value is read from Node.Status
	Sum                       // its value is read from Node.Status, and never decreases
)

// Metric is one row of the table.
type Metric struct {
	Name   string // the name in OpenTelemetry, without the unit and without _total
	Kind   Kind
	Unit   string // a UCUM unit: "s", or a word in braces
	Help   string
	Label  string   // a label in addition to the class of the key; empty means none
	Values []string // all values of Label, so that each series begins at 0; only for a Counter
	Bounds []float64
}

// Names of the metrics.
const (
	Wait        = "mortise.lock.wait.duration"
	Queue       = "mortise.lock.queue.length"
	Unlock      = "mortise.lock.unlock.duration"
	Hold        = "mortise.lock.hold.duration"
	Losses      = "mortise.lock.losses"
	Doubts      = "mortise.lock.doubts"
	Leaks       = "mortise.lock.leaks"
	Oldest      = "mortise.lock.hold.oldest"
	Held        = "mortise.lock.held"
	Waiters     = "mortise.lock.waiters"
	Standby     = "mortise.lock.standby"
	Kept        = "mortise.lock.kept"
	KeptGrants  = "mortise.lock.kept.grants"
	Recalls     = "mortise.lock.kept.recalls"
	RecallTime  = "mortise.lock.kept.recall.time"
	InUse       = "mortise.lock.kept.in_use"
	Renewal     = "mortise.session.renewal.duration"
	Unanswered  = "mortise.session.renewal.failures"
	Sessions    = "mortise.session.changes"
	Lease       = "mortise.lease.changes"
	LeaseLeft   = "mortise.lease.remaining"
	Leader      = "mortise.leader.changes"
	LeaderKnown = "mortise.leader.known"
	LeaderHere  = "mortise.leader.here"
	Term        = "mortise.term"
	Members     = "mortise.members"
	Voters      = "mortise.voters"
	Missing     = "mortise.voters.missing"
	Surplus     = "mortise.surplus.instances"
	Diverged    = "mortise.replicas.diverged"
	Sync        = "mortise.log.sync.duration"
	DiskFault   = "mortise.disk.fault"
	DiskLow     = "mortise.disk.low"
	Time        = "mortise.node.time"
	Available   = "mortise.node.available.time"
	Starved     = "mortise.node.starved.time"
	Failed      = "mortise.node.failed"
	Dropped     = "mortise.hooks.dropped"
)

// Metrics returns the table. The caller may change it.
func Metrics() []Metric {
	fast := []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}
	slow := []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300, 1800}
	return []Metric{
		{Wait, Histogram, "s", "How long calls for a lock took, by how they ended", "outcome", nil, slow},
		{Queue, Histogram, "{request}", "Length of the queue when a request was made, where it is known",
			"kind", nil, []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000}},
		{Unlock, Histogram, "s", "How long Unlock took, by how it ended", "outcome", nil, fast},
		{Hold, Histogram, "s", "How long locks were held, by how the hold ended", "end", nil, slow},
		{Losses, Counter, "{lock}", "Locks that ended before they were unlocked, by reason", "reason",
			[]string{"lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed", "idle", "unknown"}, nil},
		{Doubts, Counter, "{lock}", "Locks with a JeopardyGrace that began to be in doubt, and how their doubts ended",
			"state", []string{"in_doubt", "regained", "lost", "unlocked"}, nil},
		{Leaks, Counter, "{lock}", "Locks that the program holds but no longer references", "", nil, nil},
		{Oldest, Gauge, "s",
			"Age of the oldest lock that this instance holds, except those that are held long by design", "", nil, nil},
		{Held, Gauge, "{lock}", "Locks that this instance holds", "", nil, nil},
		{Waiters, Gauge, "{call}",
			"Calls on this instance that wait for a lock, except those that wait long by design", "", nil, nil},
		{Standby, Gauge, "{call}",
			"Calls on this instance that wait for a lock that is held long by design, such as an election's", "", nil, nil},
		{Kept, Gauge, "{lock}", "Locks that this instance keeps although no caller holds them", "", nil, nil},
		{KeptGrants, Sum, "{lock}", "Grants out of kept locks, which needed no message", "", nil, nil},
		{Recalls, Sum, "{lock}", "Kept locks that were given back because another request waited", "", nil, nil},
		{RecallTime, Sum, "s",
			"Time from hearing that another request waited until a kept lock was given back, for all together", "", nil, nil},
		{InUse, Sum, "{answer}", "Answers to a TryLock that a caller holds the kept lock", "", nil, nil},
		{Renewal, Histogram, "s", "Round trip of the renewals of the lease that were acknowledged", "", nil, fast},
		{Unanswered, Counter, "{renewal}", "Renewals of the lease that got no answer", "", nil, nil},
		{Sessions, Counter, "{change}", "Sessions of this instance, opened and ended", "state",
			[]string{"opened", "closed", "expired", "restarted", "stopped"}, nil},
		{Lease, Counter, "{change}", "Changes of the state of the lease", "state",
			[]string{"safe", "jeopardy", "lost"}, nil},
		{LeaseLeft, Gauge, "s",
			"Time until this instance loses locks unless a renewal is acknowledged; the minimum of its sessions", "", nil, nil},
		{Leader, Counter, "{change}", "How often this instance found another leader, or the same in a new term", "",
			nil, nil},
		{LeaderKnown, Gauge, "{leader}", "1 if this instance knows a leader, else 0", "", nil, nil},
		{LeaderHere, Gauge, "{leader}", "1 if this instance leads, else 0", "", nil, nil},
		{Term, Gauge, "{term}", "Term of the group, as an instance that votes sees it", "", nil, nil},
		{Members, Gauge, "{instance}",
			"Members of the group and programs that take locks in it; only the leader reports it", "", nil, nil},
		{Voters, Gauge, "{instance}", "Voters of the group, as this instance knows them", "", nil, nil},
		{Missing, Gauge, "{instance}",
			"Voters that are silent, or that the configuration asks for and the group lacks; only the leader reports it",
			"", nil, nil},
		{Surplus, Gauge, "{instance}",
			"Instances that run beyond the number in Replicas, which breaks exclusion in a cut; only the leader reports it",
			"", nil, nil},
		{Diverged, Gauge, "{replica}",
			"Replicas that had another state than the majority, until they start anew; only the leader reports it",
			"", nil, nil},
		{Sync, Histogram, "s", "How long an append to the log on disk took until it was durable", "outcome", nil, fast},
		{DiskFault, Gauge, "{disk}",
			"1 if the disk of this instance has failed or hangs, or its directory was removed, else 0", "", nil, nil},
		{DiskLow, Gauge, "{disk}", "1 if the disk of this instance has less room than Config.DirFreeBytes, else 0",
			"", nil, nil},
		{Time, Sum, "s", "How long the node has been running", "", nil, nil},
		{Available, Sum, "s", "How long this instance could be granted locks while the node ran", "", nil, nil},
		{Starved, Sum, "s",
			"How long the machine gave the process no processor, in gaps of 250 ms and more; only a voter reports it", "", nil,
			nil},
		{Failed, Gauge, "{node}", "1 if the node has failed or was closed, else 0", "", nil, nil},
		{Dropped, Sum, "{call}", "Events that were dropped because hooks were too slow", "", nil, nil},
	}
}

// Find returns the row with this name. It panics if there is no such row.
func Find(name string) Metric {
	all := Metrics()
	at := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if at < 0 {
		panic("mortiseotel: no metric " + name)
	}
	return all[at]
}

// Prom returns the name of a metric in Prometheus. For a histogram, the suffixes _bucket, _sum and
// _count are left out.
func Prom(name string) string {
	m := Find(name)
	text := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		text += "_seconds"
	}
	if m.Kind == Counter || m.Kind == Sum {
		text += "_total"
	}
	return text
}
