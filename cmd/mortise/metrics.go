package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file exports metrics of an agent in the text format of Prometheus. The dashboard and the
// alert rules of adapters/mortiseotel apply, because names, labels and buckets are equal.

type measure struct {
	name, kind, help string
	label            string   // label of a counter; empty means none
	values           []string // values of the label; each count begins at 0, so that rules see a rise
	bounds           []float64
}

const (
	waitTime    = "mortise_lock_wait_duration_seconds"
	queueLength = "mortise_lock_queue_length"
	unlockTime  = "mortise_lock_unlock_duration_seconds"
	holdTime    = "mortise_lock_hold_duration_seconds"
	losses      = "mortise_lock_losses_total"
	doubts      = "mortise_lock_doubts_total"
	leaks       = "mortise_lock_leaks_total"
	renewals    = "mortise_session_renewal_duration_seconds"
	unanswered  = "mortise_session_renewal_failures_total"
	sessionsMet = "mortise_session_changes_total"
	leaseMet    = "mortise_lease_changes_total"
	leadersMet  = "mortise_leader_changes_total"
	syncTime    = "mortise_log_sync_duration_seconds"
)

func measures() []measure {
	fast := []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}
	slow := []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300, 1800}
	gauge := func(name, help string) measure { return measure{name: "mortise_" + name, kind: "gauge", help: help} }
	sum := func(name, help string) measure { return measure{name: "mortise_" + name, kind: "counter", help: help} }
	return []measure{
		{waitTime, "histogram", "How long calls for a lock took, by how they ended", "", nil, slow},
		{queueLength, "histogram", "Length of the queue when a request was made, where it is known", "", nil,
			[]float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000}},
		{unlockTime, "histogram", "How long Unlock took, by how it ended", "", nil, fast},
		{holdTime, "histogram", "How long locks were held, by how the hold ended", "", nil, slow},
		{losses, "counter", "Locks that ended before they were unlocked, by reason", "reason",
			[]string{"lease", "overdue", "forced", "expired", "restarted", "stopped", "resumed", "idle", "unknown"}, nil},
		{doubts, "counter", "Locks with a JeopardyGrace that began to be in doubt, and how their doubts ended", "state",
			[]string{"in_doubt", "regained", "lost", "unlocked"}, nil},
		{leaks, "counter", "Locks that the program holds but no longer references", "", nil, nil},
		gauge("lock_hold_oldest_seconds",
			"Age of the oldest lock that this instance holds, except those that are held long by design"),
		gauge("lock_held", "Locks that this instance holds"),
		gauge("lock_waiters", "Calls on this instance that wait for a lock, except those that wait long by design"),
		gauge("lock_standby",
			"Calls on this instance that wait for a lock that is held long by design, such as an election's"),
		gauge("lock_kept", "Locks that this instance keeps although no caller holds them"),
		sum("lock_kept_grants_total", "Grants out of kept locks, which needed no message"),
		sum("lock_kept_recalls_total", "Kept locks that were given back because another request waited"),
		sum("lock_kept_recall_time_seconds_total",
			"Time from hearing that another request waited until a kept lock was given back, for all together"),
		sum("lock_kept_in_use_total", "Answers to a TryLock that a caller holds the kept lock"),
		{renewals, "histogram", "Round trip of the renewals of the lease that were acknowledged", "", nil, fast},
		{unanswered, "counter", "Renewals of the lease that got no answer", "", nil, nil},
		{sessionsMet, "counter", "Sessions of this instance, opened and ended", "state",
			[]string{"opened", "closed", "expired", "restarted", "stopped"}, nil},
		{leaseMet, "counter", "Changes of the state of the lease", "state", []string{"safe", "jeopardy", "lost"}, nil},
		gauge("lease_remaining_seconds",
			"Time until this instance loses locks unless a renewal is acknowledged; the minimum of its sessions"),
		{leadersMet, "counter", "How often this instance found another leader, or the same in a new term", "", nil,
			nil},
		gauge("leader_known", "1 if this instance knows a leader, else 0"),
		gauge("leader_here", "1 if this instance leads, else 0"),
		gauge("term", "Term of the group, as an instance that votes sees it"),
		gauge("members", "Members of the group and programs that take locks in it; only the leader reports it"),
		gauge("voters", "Voters of the group, as this instance knows them"),
		gauge("voters_missing",
			"Voters that are silent, or that the configuration asks for and the group lacks; only the leader reports it"),
		gauge("surplus_instances",
			"Instances that run beyond the number in Replicas, which breaks exclusion in a cut; only the leader reports it"),
		gauge("replicas_diverged",
			"Replicas that had another state than the majority, until they start anew; only the leader reports it"),
		{syncTime, "histogram", "How long an append to the log on disk took until it was durable", "", nil, fast},
		gauge("disk_fault", "1 if the disk of this instance has failed or hangs, or its directory was removed, else 0"),
		gauge("disk_low", "1 if the disk of this instance has less room than Config.DirFreeBytes, else 0"),
		sum("node_time_seconds_total", "How long the node has been running"),
		sum("node_available_time_seconds_total", "How long this instance could be granted locks while the node ran"),
		sum("node_starved_time_seconds_total",
			"How long the machine gave the process no processor, in gaps of 250 ms and more; only a voter reports it"),
		gauge("node_failed", "1 if the node has failed or was closed, else 0"),
		sum("hooks_dropped_total", "Events that were dropped because hooks were too slow"),
	}
}

func observed(s mortise.Status) map[string]float64 {
	voters := 0
	for _, v := range s.Voters {
		if v.Votes {
			voters++
		}
	}
	low := s.Disk != nil && s.Disk.State == mortise.DiskLow
	f := map[string]float64{
		"lock_held": float64(s.Held), "lock_waiters": float64(max(s.Waiters-s.Standby, 0)),
		"lock_standby": float64(s.Standby), "lock_kept": float64(s.Sticky.Kept),
		"lock_kept_grants_total": float64(s.Sticky.Grants), "lock_kept_recalls_total": float64(s.Sticky.Recalls),
		"lock_kept_recall_time_seconds_total": s.Sticky.RecallTime.Seconds(),
		"lock_kept_in_use_total":              float64(s.Sticky.InUse),
		"lease_remaining_seconds":             s.LeaseFor.Seconds(), "leader_known": truth(s.Leader != ""),
		"leader_here": truth(s.Leading),
		"voters":      float64(voters), "disk_fault": truth(s.Disk != nil && !low), "disk_low": truth(low),
		"node_time_seconds_total": s.Age.Seconds(), "node_available_time_seconds_total": s.Available.Seconds(),
		"node_failed": truth(s.Err != nil), "hooks_dropped_total": float64(s.HooksDropped),
	}
	if s.Votes {
		f["term"], f["node_starved_time_seconds_total"] = float64(s.Term), s.Starved.Seconds()
	}
	// A removed voter that has not been replaced counts as missing too, although the group no
	// longer waits for it.
	if s.Health != nil {
		f["members"] = float64(s.Health.Members)
		f["voters_missing"] = float64(max(len(s.Health.Missing), s.VotersWanted-voters, 0))
		f["surplus_instances"], f["replicas_diverged"] = float64(s.Health.Surplus), 0
		for _, sentence := range s.Health.Differs {
			f["replicas_diverged"] += truth(strings.HasPrefix(sentence, "State: "))
		}
	}
	return f
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// meter is safe for concurrent use.
type meter struct {
	mu    sync.Mutex // guards the fields below
	all   map[string]measure
	count map[string]map[string]uint64
	times map[string]map[string]*histogram
	began map[mortise.Token]time.Time // of the holds that have not ended and are not long by design
	doubt map[mortise.Token]bool      // the locks that are in doubt
}

type histogram struct {
	below []uint64
	sum   float64
}

func newMeter() *meter {
	m := &meter{all: map[string]measure{}, count: map[string]map[string]uint64{},
		times: map[string]map[string]*histogram{}, began: map[mortise.Token]time.Time{},
		doubt: map[mortise.Token]bool{}}
	for _, row := range measures() {
		m.all[row.name], m.count[row.name], m.times[row.name] = row, map[string]uint64{}, map[string]*histogram{}
		for _, value := range row.values {
			m.count[row.name][labels(row.label, value)] = 0
		}
	}
	for _, name := range [...]string{leaks, unanswered, leadersMet} {
		m.count[name][""] = 0
	}
	return m
}

func labels(pairs ...string) string {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf("%s=%q", pairs[i], pairs[i+1]))
	}
	return strings.Join(list, ",")
}

func (m *meter) add(name string, pairs ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[name][labels(pairs...)]++
}

func (m *meter) record(name string, value float64, pairs ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	bounds, key := m.all[name].bounds, labels(pairs...)
	h := m.times[name][key]
	if h == nil {
		h = &histogram{below: make([]uint64, len(bounds)+1)}
		m.times[name][key] = h
	}
	at, _ := slices.BinarySearch(bounds, value) // the first bound that is not below the value
	h.below[at]++
	h.sum += value
}

// hooks returns the hooks that feed the meter. It does not set the hook for leaked locks, because
// this hook costs time and an agent leaks no lock.
func (m *meter) hooks() *mortise.Hooks {
	return &mortise.Hooks{
		Acquired: m.acquired, Unlocked: m.unlocked, Lost: m.lost, InDoubt: m.inDoubt, Node: m.node,
		Synced: func(took time.Duration, err error) {
			m.record(syncTime, took.Seconds(), "outcome", map[bool]string{true: "synced", false: "failed"}[err == nil])
		},
	}
}

// kindOf returns the mode, without the numbers of permits.
func kindOf(m mortise.Mode) string {
	if m > mortise.Upgradable {
		return "permits"
	}
	return m.String()
}

func (m *meter) acquired(_ context.Context, e mortise.LockEvent) any {
	kind := kindOf(e.Mode)
	if e.Purpose != "" {
		kind = e.Purpose
	}
	m.record(waitTime, e.Took.Seconds(), "kind", kind, "outcome", string(e.Outcome))
	if e.Waiting >= 0 && e.Outcome != mortise.OutcomeEntered {
		m.record(queueLength, float64(e.Waiting), "kind", kind)
	}
	if e.Outcome == mortise.OutcomeGranted && e.Purpose == "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.began[e.Token] = time.Now()
	}
	return nil
}

// ended forgets a lock. If it was in doubt, state is how the doubt has ended.
func (m *meter) ended(token mortise.Token, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.began, token)
	if m.doubt[token] {
		delete(m.doubt, token)
		m.count[doubts][labels("state", state)]++
	}
}

func (m *meter) inDoubt(e mortise.LockEvent) {
	m.add(doubts, "state", string(e.Outcome))
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Outcome == mortise.OutcomeInDoubt {
		m.doubt[e.Token] = true
	} else {
		delete(m.doubt, e.Token)
	}
}

// oldest must be called under mu.
func (m *meter) oldest() time.Duration {
	age := time.Duration(0)
	for _, at := range m.began {
		age = max(age, time.Since(at))
	}
	return age
}

func (m *meter) unlocked(_ context.Context, e mortise.LockEvent) {
	m.record(unlockTime, e.Took.Seconds(), "outcome", string(e.Outcome))
	if e.Outcome != mortise.OutcomeLeft {
		m.ended(e.Token, map[bool]string{true: "lost", false: "unlocked"}[e.Outcome == mortise.OutcomeLost])
	}
	if e.Outcome != mortise.OutcomeLeft && e.Outcome != mortise.OutcomeLost {
		m.record(holdTime, e.Held.Seconds(), "kind", kindOf(e.Mode), "end", "unlocked")
	}
}

func (m *meter) lost(e mortise.LockEvent) {
	m.ended(e.Token, "lost")
	m.record(holdTime, e.Held.Seconds(), "kind", kindOf(e.Mode), "end", "lost")
	m.add(losses, "reason", string(e.Outcome))
}

func (m *meter) node(e mortise.NodeEvent) {
	switch e.State {
	case mortise.RenewalAcknowledged:
		m.record(renewals, e.Took.Seconds())
	case mortise.RenewalUnanswered:
		m.add(unanswered)
	case mortise.SessionOpened, mortise.SessionClosed, mortise.SessionExpired, mortise.SessionRestarted,
		mortise.SessionStopped:
		m.add(sessionsMet, "state", string(e.State))
	case mortise.LeaseSafe, mortise.LeaseJeopardy, mortise.LeaseLost:
		m.add(leaseMet, "state", string(e.State))
	case mortise.LeaderNew:
		m.add(leadersMet)
	}
}

func (m *meter) write(w io.Writer, s mortise.Status) {
	asked := observed(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	asked["lock_hold_oldest_seconds"] = m.oldest().Seconds()
	for _, row := range measures() {
		fmt.Fprintf(w, "# HELP %[1]s %[3]s\n# TYPE %[1]s %[2]s\n", row.name, row.kind, row.help)
		if value, is := asked[strings.TrimPrefix(row.name, "mortise_")]; is {
			fmt.Fprintf(w, "%s %g\n", row.name, value)
		}
		for _, key := range slices.Sorted(maps.Keys(m.count[row.name])) {
			fmt.Fprintf(w, "%s %d\n", series(row.name, key), m.count[row.name][key])
		}
		for _, key := range slices.Sorted(maps.Keys(m.times[row.name])) {
			m.times[row.name][key].write(w, row, key)
		}
	}
}

func series(name string, pairs ...string) string {
	pairs = slices.DeleteFunc(pairs, func(pair string) bool { return pair == "" })
	if len(pairs) == 0 {
		return name
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

func (h *histogram) write(w io.Writer, row measure, key string) {
	total := uint64(0)
	for i, n := range h.below {
		total += n
		bound := "+Inf"
		if i < len(row.bounds) {
			bound = fmt.Sprint(row.bounds[i])
		}
		fmt.Fprintf(w, "%s %d\n", series(row.name+"_bucket", key, labels("le", bound)), total)
	}
	fmt.Fprintf(w, "%s %g\n%s %d\n", series(row.name+"_sum", key), h.sum, series(row.name+"_count", key), total)
}
