package main

import "time"

// A goal is one row of the table of goals. The limit `must` has to be met by every merge, and the
// limit `reach` is the target.
type goal struct {
	about       string
	workload    string
	ours        string // the name of the peer that runs mortise, with TLS
	theirs      string // the peer to compare with; if empty, the limits are for the value itself
	base        string // the value is a share of that of this workload of the same peer; if empty, it is no share
	value       func(Result) float64
	lower       bool
	must, reach float64
	show        func(float64) string
}

func rate(r Result) float64        { return r.Rate }
func halfTime(r Result) float64    { return float64(r.P50) }
func allocsPair(r Result) float64  { return r.Allocs }
func heapOfLock(r Result) float64  { return r.Heap }
func tail(r Result) float64        { return float64(r.P99) }
func wholeTime(r Result) float64   { return float64(r.Took) }
func cpuOfEach(r Result) float64   { return r.CPU.Seconds() / r.Count }
func sockets(r Result) float64     { return r.Sockets }
func timesAlone(r Result) float64  { return r.Least }
func showShare(v float64) string   { return threeDigits(100*v) + "%" }
func showTimes(v float64) string   { return threeDigits(v) + " times" }
func showTime(v float64) string    { return shortTime(time.Duration(v)) }
func showBytes(v float64) string   { return shortBytes(v) }
func showRate(v float64) string    { return shortNumber(v) + "/s" }
func showPlainly(v float64) string { return shortNumber(v) }

func goals() []goal {
	var list []goal
	versus := func(ours, theirs, workload string, must, reach float64) {
		g := goal{about: workloadTitle(workload), workload: workload, ours: ours, theirs: theirs,
			value: rate, must: must, reach: reach, show: showRate}
		if workload == "serial" || workload == "relock" {
			g.value, g.lower, g.show, g.about = halfTime, true, showTime, g.about+", median of Lock"
		}
		list = append(list, g)
	}
	const durable, memory = "mortise-dir-tls", "mortise-tls"
	const stickyDurable, sticky = "mortise-dir-sticky-tls", "mortise-sticky-tls"
	versus(durable, "wire-sync-tls", "serial", 0, 1/1.15)
	versus(memory, "wire-tls", "serial", 0, 1/1.4)
	versus(durable, "etcd", "serial", 1.3, 1.75)
	versus(durable, "etcd", "parallel64", 4, 9)
	versus(durable, "etcd", "parallel1024", 10, 25)
	versus(durable, "etcd", "handover3", 35, 90)
	versus(durable, "etcd", "handover64", 3, 5.5)
	versus(memory, "etcd-nosync", "serial", 1.6, 3.7)
	versus(memory, "etcd-nosync", "parallel64", 10, 20)
	versus(memory, "etcd-nosync", "parallel1024", 15, 40)
	versus(memory, "etcd-nosync", "handover3", 150, 400)
	versus(memory, "etcd-nosync", "handover64", 8, 20)
	versus(memory, "redis", "serial", 1, 0)
	versus(memory, "redis", "parallel64", 3, 5)
	versus(memory, "redis", "parallel1024", 6, 12)
	versus(memory, "redis", "handover3", 0, 1.5)
	versus(memory, "redis", "handover64", 0, 2)
	versus(memory, "postgres", "parallel64", 2, 3.5)
	versus(memory, "postgres", "parallel1024", 4, 8)
	versus(memory, "postgres", "handover3", 0, 1.1)
	versus(memory, "postgres", "handover64", 0, 1.6)
	versus(sticky, "postgres", "relock", 0, 10)
	versus(sticky, memory, "mostly", 10, 30)
	versus(sticky, memory, "turns3", 0.9, 1)
	versus(stickyDurable, durable, "mostly", 10, 30)
	versus(stickyDurable, durable, "turns3", 0.9, 1)
	absolute := func(about, ours, workload string, value func(Result) float64, must, reach float64,
		show func(float64) string) {
		list = append(list, goal{about: about, workload: workload, ours: ours, value: value, lower: true, must: must,
			reach: reach, show: show})
	}
	absolute("kill -9 of the leader to the next grant, durable", durable, "kill", halfTime,
		float64(500*time.Millisecond), float64(100*time.Millisecond), showTime)
	absolute("kill -9 of the leader to the next grant, memory", memory, "kill", halfTime,
		float64(500*time.Millisecond), float64(100*time.Millisecond), showTime)
	absolute("sticky: re-lock on the same instance", sticky, "relock", halfTime, float64(2*time.Microsecond),
		float64(100*time.Nanosecond), showTime)
	absolute("sticky: Lock on another instance than before, free", sticky, "recall", halfTime,
		float64(150*time.Microsecond), float64(80*time.Microsecond), showTime)
	absolute("sticky: allocations of a re-lock", sticky, "relock", allocsPair, 2, 0.1, showPlainly)
	absolute("allocations of all three nodes for a pair, serial", memory, "serial", allocsPair, 700, 500, showPlainly)
	absolute("allocations of all three nodes for a pair, 1,024 callers", memory, "parallel1024", allocsPair, 20, 6,
		showPlainly)
	absolute("heap of all three nodes for a held lock", memory, "held", heapOfLock, 2048, 600, showBytes)
	absolute("1,000 instances in one process, from nothing to all ready", memory, "coldstart1000", wholeTime,
		float64(time.Minute), float64(20*time.Second), showTime)
	absolute("sockets for an idle member of 1,000, at both ends", memory, "idle1000", sockets, 40, 10,
		showPlainly)
	absolute("heap of an idle member of 1,000", memory, "idle1000", heapOfLock, 1.2e6, 700e3, showBytes)
	absolute("share of a core that an idle member of 1,000 uses", memory, "idle1000", cpuOfEach, 1e-3, 3e-4, showShare)
	absolute("share of a core that a single idle instance uses", memory, "idle1", cpuOfEach, 3e-3, 5e-4,
		showShare)
	absolute("heap and stacks of the leader for each of 10,000 attached sessions", memory, "sessions", heapOfLock,
		60e3, 20e3, showBytes)
	absolute("10,000 sessions after kill -9 of the leader: 99th percentile of Lock once a session is "+
		"attached again", memory, "storm", tail, float64(2*time.Second), float64(300*time.Millisecond), showTime)
	absolute("the same: until the last is attached again", memory, "storm", wholeTime, float64(15*time.Second),
		float64(time.Second), showTime)
	absolute("99th percentile of Lock beside 1,000 idle members, compared with none", memory, "beside1000", timesAlone, 2,
		1.1, showTimes)
	atLeast := func(about, ours, workload string, must, reach float64) {
		list = append(list, goal{about: about, workload: workload, ours: ours, value: rate, must: must, reach: reach,
			show: showRate})
	}
	for _, peer := range []string{memory, durable} {
		list = append(list, goal{about: peer + ": rate of 8,192 callers as a share of that of 1,024",
			workload: "parallel8192", ours: peer, base: "parallel1024", value: rate, must: 0.5, reach: 0.95, show: threeDigits})
	}
	atLeast("hand-overs of a million waiters on 1,000 keys, served in order", memory, "line", 1, 100e3)
	atLeast("sticky: 64 callers with own keys, each on one instance, memory", sticky, "own64", 2e6, 8e6)
	atLeast("sticky: 64 callers with own keys, each on one instance, durable", stickyDurable, "own64", 2e6, 8e6)
	atLeast("sticky: hand-overs of 64 callers on one instance", sticky, "local64", 500e3, 3e6)
	return list
}

const (
	reached     = "reach"
	met         = "must"
	missed      = "missed"
	below       = "below reach"
	notMeasured = "not measured"
)

func (g goal) measured(r Record) string {
	v, ok := g.compared(r)
	if !ok {
		return ""
	}
	if v == 0 {
		return "0"
	}
	return g.limit(v)
}

func (g goal) verdict(r Record) string {
	v, ok := g.compared(r)
	if !ok {
		return notMeasured
	}
	return g.judge(v)
}

func (g goal) compared(r Record) (float64, bool) {
	ours, ok := r.find(g.ours, g.workload)
	if ok && g.base != "" {
		base, ok := r.find(g.ours, g.base)
		return g.value(ours) / g.value(base), ok
	}
	if !ok || g.theirs == "" {
		return g.value(ours), ok
	}
	theirs, ok := r.find(g.theirs, g.workload)
	if !ok {
		return 0, false
	}
	ratio := g.value(ours) / g.value(theirs)
	if g.lower {
		ratio = 1 / ratio
	}
	return ratio, true
}

// judge compares v with the limits. They are upper limits if the field lower is true and the
// field theirs is empty. Otherwise they are lower limits. A limit of 0 means no limit.
func (g goal) judge(v float64) string {
	meets := func(limit float64) bool {
		if g.lower && g.theirs == "" {
			return v <= limit
		}
		return v >= limit
	}
	switch {
	case g.reach > 0 && meets(g.reach):
		return reached
	case g.must > 0 && meets(g.must):
		return met
	case g.must > 0:
		return missed
	}
	return below
}

func (g goal) limit(v float64) string {
	switch {
	case v == 0:
		return ""
	case g.theirs == "":
		return g.show(v)
	}
	return shortRatio(v)
}
