package transport

import (
	"sync"
	"time"
)

// quota limits how much of one resource each peer, and all peers together, use on this node. It is
// safe for concurrent use.
type quota[K comparable] struct {
	each, all int

	mu   sync.Mutex // guards all below
	held map[K]int
	sum  int
}

func newQuota[K comparable](each, all int) *quota[K] {
	return &quota[K]{each: each, all: all, held: map[K]int{}}
}

// take returns false if n more would exceed a limit. Otherwise it adds n to what k uses, and the
// caller must later return n to the quota with the method give.
func (q *quota[K]) take(k K, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[k]+n > q.each || q.sum+n > q.all {
		return false
	}
	q.held[k] += n
	q.sum += n
	return true
}

func (q *quota[K]) give(k K, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.held[k] -= n; q.held[k] == 0 {
		delete(q.held, k)
	}
}

func (q *quota[K]) total() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sum
}

// slowest is the rate in bytes per second below which a transfer is ended. A voter with a
// round-trip time of 400 ms reaches this rate.
const slowest = 256 << 10

// allowance returns how long a transfer of n bytes may take.
func allowance(grace time.Duration, n uint64) time.Duration {
	return grace + time.Duration(n/slowest)*time.Second + time.Duration(n%slowest)*time.Second/slowest
}
