package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Result contains the figures of one workload for one peer, either of one run or as medians of
// several runs. The workloads idle and sessions report CPU per second, and sessions reports the CPU
// of the leader's process.
type Result struct {
	Peer     string
	Workload string

	Rate       float64       `json:",omitempty"` // pairs of Lock and Unlock, hand-overs or grants, per second
	P50, P99   time.Duration `json:",omitempty"` // time of Lock; in hand-overs, from Unlock to the next grant
	Least      float64       `json:",omitempty"` // the smallest number of turns of any caller
	Most       float64       `json:",omitempty"` // the largest number of turns of any caller
	CPU        time.Duration `json:",omitempty"` // processor time of this process per pair or hand-over
	Allocs     float64       `json:",omitempty"` // allocations of this process per pair or hand-over
	Heap       float64       `json:",omitempty"` // bytes for each held lock
	Count      float64       `json:",omitempty"` // number of locks, grants, instances, sessions or kills
	Took       time.Duration `json:",omitempty"` // time of the whole workload
	Wire       float64       `json:",omitempty"` // bytes per second over loopback
	Sockets    float64       `json:",omitempty"` // sockets per instance; both ends of a connection are counted
	Runs       int
	Others     float64 // cores that other processes used during the run
	OthersMost float64 // maximum of Others over the runs
	Failed     string  `json:",omitempty"` // why there is no result
}

// median returns the median of the runs of one workload of one peer, field by field. It ignores
// failed runs, unless all runs have failed.
func median(runs []Result) Result {
	good := slices.DeleteFunc(slices.Clone(runs), func(r Result) bool { return r.Failed != "" })
	if len(good) == 0 {
		return runs[0]
	}
	m := Result{Peer: good[0].Peer, Workload: good[0].Workload, Runs: len(good)}
	m.Rate = middleOf(good, func(r Result) float64 { return r.Rate })
	m.P50 = middleOf(good, func(r Result) time.Duration { return r.P50 })
	m.P99 = middleOf(good, func(r Result) time.Duration { return r.P99 })
	m.Least = middleOf(good, func(r Result) float64 { return r.Least })
	m.Most = middleOf(good, func(r Result) float64 { return r.Most })
	m.CPU = middleOf(good, func(r Result) time.Duration { return r.CPU })
	m.Allocs = middleOf(good, func(r Result) float64 { return r.Allocs })
	m.Heap = middleOf(good, func(r Result) float64 { return r.Heap })
	m.Count = middleOf(good, func(r Result) float64 { return r.Count })
	m.Took = middleOf(good, func(r Result) time.Duration { return r.Took })
	m.Wire = middleOf(good, func(r Result) float64 { return r.Wire })
	m.Sockets = middleOf(good, func(r Result) float64 { return r.Sockets })
	m.Others = middleOf(good, func(r Result) float64 { return r.Others })
	for _, r := range good {
		m.OthersMost = math.Max(m.OthersMost, r.OthersMost)
	}
	return m
}

// middleOf returns the median of a field, or the lower of the two middle values.
func middleOf[T cmp.Ordered](runs []Result, field func(Result) T) T {
	values := make([]T, len(runs))
	for i, r := range runs {
		values[i] = field(r)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// A Record contains the results of one run of the benchmark, as in docs/speed.json.
type Record struct {
	Machine  Machine
	Peers    []PeerRecord
	Results  []Result
	Rounds   int
	Duration time.Duration // for each measurement
	Quick    bool          // fewer held locks and waiters than the goals require
	Warnings []string
}

// PeerRecord is the description of a peer for tables.
type PeerRecord struct {
	Name, Kind, Version, Promise string
	Durable                      bool
	Missing                      string `json:",omitempty"` // why the peer was not measured
	Lacks                        map[string]string
}

func (r Record) find(peer, workload string) (Result, bool) {
	i := slices.IndexFunc(r.Results, func(x Result) bool {
		return x.Peer == peer && x.Workload == workload &&
			x.Failed == ""
	})
	if i < 0 {
		return Result{}, false
	}
	return r.Results[i], true
}
