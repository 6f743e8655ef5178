package storage

import "time"

// timedMutex is a mutex that can be locked with a timeout, because its holder may wait for a disk.
// The channel has one slot, which is full while the mutex is locked.
type timedMutex chan struct{}

func (g timedMutex) lock() { g <- struct{}{} }

func (g timedMutex) unlock() { <-g }

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
