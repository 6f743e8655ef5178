package cluster

import "sync"

// inbox carries work from other goroutines to the owner. The owner takes the whole slice of items.
// A one-slot channel wakes the owner.
type inbox struct {
	wake chan struct{}

	mu     sync.Mutex // guards the fields below; held only for a few instructions
	items  []item
	life   uint64
	closed bool
}

// item is work for the owner. It is dropped if the incarnation with the number life has ended, so
// that a late report is not applied to the next incarnation.
type item struct {
	life uint64 // zero means never dropped
	do   func()
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1), life: 1} }

// post queues work for the owner and never blocks. After close it drops the work and reports false.
func (in *inbox) post(do func()) bool { return in.add(do, false) }

// postOfLife queues work that is dropped when the current incarnation ends.
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
	default: // a wake-up is already queued
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
