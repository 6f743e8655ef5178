package cluster

import "sync"

// inbox carries work from other goroutines to the owner. It is a slice that the owner takes as a
// whole, and a channel with one slot that wakes the owner.
type inbox struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards the rest; held only for a few instructions
	items  []item
	life   uint64
	closed bool
}

// item is work for the owner. Items of a life are dropped when the life ends, so that a late report
// does not affect the new life.
type item struct {
	life uint64 // zero means that the item belongs to no particular life
	do   func()
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1), life: 1} }

// post queues work for the owner and never blocks. After close it drops the work and reports false.
func (in *inbox) post(do func()) bool { return in.add(do, false) }

// postOfLife queues work that is dropped when the present life ends.
func (in *inbox) postOfLife(do func()) bool { return in.add(do, true) }

func (in *inbox) add(do func(), ofLife bool) bool {
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return false
	}
	it := item{do: do}
	if ofLife {
		it.life = in.life
	}
	in.items = append(in.items, it)
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default: // the owner will wake anyway
	}
	return true
}

func (in *inbox) take() []item {
	in.mu.Lock()
	defer in.mu.Unlock()
	items := in.items
	in.items = nil
	return items
}

func (in *inbox) lives(it item) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return it.life == 0 || it.life == in.life
}

func (in *inbox) nextLife() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.life++
}

func (in *inbox) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed, in.items = true, nil
}
