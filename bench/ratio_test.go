package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// samples returns pairs whose rates differ by the factor times, and vary by the given share.
func samples(n int, times, share float64, seed uint64) (pairs []pair) {
	source := rand.New(rand.NewPCG(seed, 0))
	vary := func(rate float64) Result { return Result{Rate: rate * (1 + share*source.NormFloat64())} }
	for range n {
		pairs = append(pairs, pair{vary(1000), vary(1000 * times)})
	}
	return pairs
}

func TestARowThatIsSlowerIsSeen(t *testing.T) {
	for _, c := range []struct {
		times, share float64
		fault        string
	}{
		{1, 0.02, ""}, {1.3, 0.02, ""}, {0.98, 0.02, ""}, {1, 0, ""}, {3, 0.2, ""},
		{0.9, 0.02, "slower"}, {0.9, 0, "slower"}, {0.5, 0.1, "slower"}, {0.96, 0, "slower"},
		{0.95, 0.4, "is "},
	} {
		for seed := range uint64(10) {
			r := ratioOf(samples(20, c.times, c.share, seed), speed)
			if fault := r.fault(); !strings.Contains(fault, c.fault) || c.fault == "" && fault != "" {
				t.Errorf("%v times, varied by %v, seed %d: %v: %q, want %q", c.times, c.share, seed, r, fault, c.fault)
			}
		}
	}
}

// Of 95 % intervals about 95 of 100 contain the true ratio.
func TestTheIntervalContainsTheRatio(t *testing.T) {
	const times, runs = 0.95, 100
	inside := 0
	for seed := range uint64(runs) {
		if r := ratioOf(samples(20, times, 0.05, seed), speed); r.low <= times && times <= r.high {
			inside++
		}
	}
	if inside < runs*90/100 || inside == runs {
		t.Errorf("%d of %d intervals contain the ratio", inside, runs)
	}
}

func TestRowsWithoutARate(t *testing.T) {
	slow := []pair{{Result{P50: time.Second}, Result{P50: 2 * time.Second}}}
	if r := ratioOf(slow, speed); math.Abs(r.middle-0.5) > 1e-9 || r.low != r.middle || r.high != r.middle {
		t.Errorf("twice the time is %v", r)
	}
	failed := []pair{{Result{Rate: 1}, Result{Failed: "no"}}}
	if r := ratioOf(failed, speed); r != (ratio{}) || r.String() != "" || r.fault() == "" {
		t.Errorf("a failed run is %v", r)
	}
}
