package console

import (
	"math/bits"
	"time"
)

// Buckets of a histogram of durations. Each power of two is divided into perOctave parts of equal
// width, so a bucket is at most a quarter wider than its lower bound, and its middle differs from
// every duration in it by at most an eighth.
const (
	perOctave = 4
	octaves   = 28
	shortest  = 32 * time.Microsecond // shorter durations share the first bucket
	longest   = shortest << octaves   // these, and longer ones, share the last bucket: 2 h 23 min
	buckets   = perOctave*octaves + 2
)

// histogram counts durations in buckets of fixed bounds. A count stops at its highest value.
type histogram [buckets]uint32

func (h *histogram) add(d time.Duration) { increase(&h[bucketOf(d)]) }

// increase adds 1 to a count that must not begin again at 0.
func increase(n *uint32) {
	if *n+1 != 0 {
		*n++
	}
}

func bucketOf(d time.Duration) int {
	switch {
	case d < shortest:
		return 0
	case d >= longest:
		return buckets - 1
	}
	octave := bits.Len64(uint64(d/shortest)) - 1
	return 1 + octave*perOctave + int(d*perOctave/(shortest<<octave)) - perOctave
}

// lowerBound returns the shortest duration of a bucket.
func lowerBound(bucket int) time.Duration {
	if bucket == 0 {
		return 0
	}
	octave, part := (bucket-1)/perOctave, (bucket-1)%perOctave
	return (shortest << octave) / perOctave * time.Duration(perOctave+part)
}

// totals is the sum of histograms.
type totals struct {
	in    [buckets]uint64
	count uint64
}

func (t *totals) add(h *histogram) {
	for i, n := range h {
		t.in[i] += uint64(n)
		t.count += uint64(n)
	}
}

// percentile returns the duration that a part of the durations does not exceed: the middle of the
// bucket of that duration. For the first bucket it returns the shortest upper bound, and for the
// last one the lower bound. It returns 0 if there are no durations.
func (t *totals) percentile(part float64) time.Duration {
	if t.count == 0 {
		return 0
	}
	rank := max(uint64(part*float64(t.count)+0.999999), 1)
	for i, n := range t.in {
		if n < rank {
			rank -= n
			continue
		}
		switch i {
		case 0:
			return shortest
		case buckets - 1:
			return longest
		}
		return (lowerBound(i) + lowerBound(i+1)) / 2
	}
	return longest
}
