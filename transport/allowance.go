package transport

import "time"

// slowest is the rate in bytes per second below which a transfer is ended. A voter with a
// round-trip time of 400 ms reaches this rate.
const slowest = 256 << 10

// allowance returns how long a transfer of n bytes may take.
func allowance(grace time.Duration, n uint64) time.Duration {
	return grace + time.Duration(n/slowest)*time.Second + time.Duration(n%slowest)*time.Second/slowest
}
