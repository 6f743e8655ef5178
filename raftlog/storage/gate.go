package storage

import "time"

// gate is a mutex with a timeout, because its holder may wait for a disk. It is a channel with one
// slot, which is full while the gate is locked.
type gate chan struct{}

func (g gate) lock() { g <- struct{}{} }

func (g gate) unlock() { <-g }

// lockWithin locks the gate if that is possible within the limit, and reports whether it did.
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
