package storage

import "time"

// timedMutex is a mutex with a timeout, because its holder may wait for a disk. Its one slot is
// full while it is locked.
type timedMutex chan struct{}

func (g timedMutex) lock() { g <- struct{}{} }

func (g timedMutex) unlock() { <-g }

// lockWithin reports whether it could lock the mutex within the limit.
func (g timedMutex) lockWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case g <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}
