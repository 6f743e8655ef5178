package storage

import "time"

// gate is a mutex for which one can wait a limited time, because who holds it waits for a disk. It
// is a channel with one slot: full while it is locked.
type gate chan struct{}

func (g gate) lock() { g <- struct{}{} }

func (g gate) unlock() { <-g }

// lockWithin reports whether it has locked the gate within the limit.
func (g gate) lockWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case g <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}
