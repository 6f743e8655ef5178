package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets that are 3% wide. add allocates no memory, so that it does
// not influence the measurement.
type histogram struct {
	buckets [64 * subBuckets]atomic.Uint32
}

const subBuckets = 32

func (h *histogram) add(d time.Duration) { h.buckets[bucketOf(uint64(max(d, 0)))].Add(1) }

// bucketOf returns the bucket of n. Up to subBuckets, buckets are linear. Above subBuckets, there
// are subBuckets buckets for each power of two.
func bucketOf(n uint64) int {
	if n < subBuckets {
		return int(n)
	}
	shift := bits.Len64(n) - 6 // n>>shift is between subBuckets and 2*subBuckets
	return shift*subBuckets + int(n>>shift)
}

func middle(bucket int) time.Duration {
	if bucket < 2*subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket/subBuckets - 1
	low := uint64(bucket-shift*subBuckets) << shift
	return time.Duration(low + 1<<shift/2)
}

func (h *histogram) count() (n uint64) {
	for i := range h.buckets {
		n += uint64(h.buckets[i].Load())
	}
	return n
}

func (h *histogram) quantile(q float64) time.Duration {
	rank, seen := uint64(q*float64(h.count())), uint64(0)
	for i := range h.buckets {
		seen += uint64(h.buckets[i].Load())
		if seen > rank {
			return middle(i)
		}
	}
	return 0
}
