package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Result is what one workload gave for one peer: of one run, or the medians of several.
type Result struct {
	Peer     string
	Workload string

	Rate       float64       `json:",omitempty"` // pairs of Lock and Unlock, hand-overs or grants a second
	P50, P99   time.Duration `json:",omitempty"` // of Lock; of the gap, where a lock is handed over
	Least      float64       `json:",omitempty"` // turns of the waiter that had fewest
	Most       float64       `json:",omitempty"` // and of the one that had most
	CPU        time.Duration `json:",omitempty"` // of this process for a pair; in Idle for a second
	Allocs     float64       `json:",omitempty"` // of this process for a pair
	Heap       float64       `json:",omitempty"` // bytes for a lock that is held
	Count      float64       `json:",omitempty"` // how many were held, or served
	Took       time.Duration `json:",omitempty"` // the whole of it
	Wire       float64       `json:",omitempty"` // bytes a second over loopback
	Sockets    float64       `json:",omitempty"` // per instance, counted at both ends of its connections
	Runs       int           // how many runs this is of
	Others     float64       // cores that others kept busy meanwhile
	OthersMost float64       // in the worst of the runs
	Failed     string        `json:",omitempty"` // why there is no result
}

// median puts the runs of one workload of one peer together, field by field. A run that failed
// counts only if all have.
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

// middleOf is the median of a field; of an even number the lower one.
func middleOf[T cmp.Ordered](runs []Result, field func(Result) T) T {
	values := make([]T, len(runs))
	for i, r := range runs {
		values[i] = field(r)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// A Record is everything that one run of the benchmark found out; docs/speed.json is one.
type Record struct {
	Machine  Machine
	Peers    []PeerRecord
	Results  []Result
	Rounds   int
	Duration time.Duration // per measurement
	Quick    bool          // fewer held locks and waiters, so not what the goals are about
	Warnings []string
}

// PeerRecord is what a table needs about a peer that it cannot ask.
type PeerRecord struct {
	Name, Kind, Version, Promise string
	Durable                      bool
	Missing                      string `json:",omitempty"` // why it was not measured
	Lacks                        map[string]string
}

// find returns the result of a workload for a peer.
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
