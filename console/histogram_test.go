package console

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Each duration must lie in its bucket, and buckets must follow each other without gaps.
func TestBucketsHaveNoGaps(t *testing.T) {
	for i := 1; i < buckets; i++ {
		low := lowerBound(i)
		if low <= lowerBound(i-1) || bucketOf(low) != i || bucketOf(low-1) != i-1 {
			t.Errorf("bucket %d begins at %v; %v is in bucket %d, and 1 ns less is in bucket %d",
				i, low, low, bucketOf(low), bucketOf(low-1))
		}
	}
	if lowerBound(buckets-1) != longest || bucketOf(math.MaxInt64) != buckets-1 || bucketOf(-1) != 0 {
		t.Errorf("the last bucket begins at %v", lowerBound(buckets-1))
	}
}

// A percentile must differ by at most an eighth from that of the durations themselves.
func TestPercentilesAreNear(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var h histogram
		var all []time.Duration
		for range 1 + r.IntN(300) {
			d := time.Duration(math.Exp(r.Float64()*math.Log(float64(longest/shortest))) * float64(shortest))
			all = append(all, d)
			h.add(d)
		}
		slices.Sort(all)
		var sum totals
		sum.add(&h)
		for _, part := range []float64{0.01, 0.5, 0.99, 1} {
			exact := all[max(int(math.Ceil(part*float64(len(all))))-1, 0)]
			if got := sum.percentile(part); got < exact*7/8 || got > exact*9/8+1 {
				t.Fatalf("seed %d: the percentile %v of %d durations is %v, not %v", seed, part, len(all), got, exact)
			}
		}
	}
	var none, short, long totals
	short.add(&histogram{0: 1})
	long.add(&histogram{buckets - 1: 1})
	if none.percentile(0.5) != 0 || short.percentile(0.5) != shortest || long.percentile(0.5) != longest {
		t.Errorf("%v, %v, %v", none.percentile(0.5), short.percentile(0.5), long.percentile(0.5))
	}
}

func TestACountStopsAtItsHighest(t *testing.T) {
	n := uint32(math.MaxUint32 - 1)
	for range 3 {
		increase(&n)
	}
	if n != math.MaxUint32 {
		t.Errorf("the count is %d", n)
	}
}
