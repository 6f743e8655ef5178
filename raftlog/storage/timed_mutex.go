package storage

import "time"

// timedMutex is a mutex whose holder may wait for a disk. It can be locked with a timeout. Fake
// time (testing/synctest) goes on while a goroutine waits for it, but would stop at a sync.Mutex.
// The channel has one slot, which is full while the mutex is locked.
type timedMutex chan struct{}

func (g timedMutex) lock() { g <- struct{}{} }

func (g timedMutex) unlock() { <-g }

func (g timedMutex) tryLock() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

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
