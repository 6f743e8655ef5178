package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	resamples   = 2_000
	leastRatio  = 0.97 // a row below it is slower
	widestRatio = 0.2  // a wider interval says nothing
)

type pair struct{ old, new Result }

// ratio is the ratio of two medians, new to old, and its 95 % interval. The zero ratio means that
// there is no figure.
type ratio struct{ middle, low, high float64 }

// ratioOf computes the interval by resampling the pairs (bootstrap). The same pairs always give the
// same interval. It omits pairs that have no figure in one of the builds.
func ratioOf(pairs []pair, figure func(Result) float64) ratio {
	type both struct{ old, new float64 }
	var all []both
	for _, p := range pairs {
		if b := (both{figure(p.old), figure(p.new)}); b.old > 0 && b.new > 0 {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return ratio{}
	}
	olds, news := make([]float64, len(all)), make([]float64, len(all))
	of := func(choose func(i int) both) float64 {
		for i := range all {
			b := choose(i)
			olds[i], news[i] = b.old, b.new
		}
		return centre(news) / centre(olds)
	}
	r := ratio{middle: of(func(i int) both { return all[i] })}
	source, again := rand.New(rand.NewPCG(1, 2)), make([]float64, resamples)
	for i := range again {
		again[i] = of(func(int) both { return all[source.IntN(len(all))] })
	}
	slices.Sort(again)
	r.low, r.high = again[resamples*25/1000], again[resamples*975/1000-1]
	return r
}

// centre sorts all and returns the median.
func centre(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (r ratio) String() string {
	if r.middle == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r.middle, r.low, r.high)
}

// speed is the rate, or the number of median times in a second if the workload has no rate.
func speed(r Result) float64 {
	if r.Rate > 0 || r.P50 <= 0 {
		return r.Rate
	}
	return 1 / r.P50.Seconds()
}

// fault explains why a row with this ratio of speeds cannot be accepted, or returns "".
func (r ratio) fault() string {
	switch {
	case r.middle == 0:
		return "has no figure"
	case r.high < leastRatio:
		return fmt.Sprintf("is slower: %v does not reach %.2f", r, leastRatio)
	case r.low < leastRatio && r.high-r.low > widestRatio:
		return fmt.Sprintf("is not readable: the interval %v is too wide; repeat on a quiet machine", r)
	}
	return ""
}
