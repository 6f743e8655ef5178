package storage

import "time"

// timedMutex is a mutex with a timeout, because its holder may wait for a disk. It is a channel
// with one slot, which is full while the gate is locked.
type timedMutex chan struct{}

func (g timedMutex) lock() { g <- struct{}{} }

func (g timedMutex) unlock() { <-g }

// lockWithin locks the gate if that is possible within the limit, and reports whether it did.
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
