package cluster

import "sync"

// inbox is how other goroutines reach the owner: a slice that is swapped whole, and a one-slot
// channel that wakes it.
type inbox struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards the rest; held only for a few instructions
	items  []item
	life   uint64
	closed bool
}

// item is work for the owner. Items of a life are dropped once that life is over, so that nothing
// that an old life reported late is taken for news of the new one.
type item struct {
	life uint64 // 0: of no life in particular
	do   func()
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1), life: 1} }

// post hands work to the owner and never blocks. It reports false, and drops the work, after close.
func (in *inbox) post(do func()) bool { return in.add(do, false) }

// postOfLife hands over work that means something only in the present life.
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
	default: // it is awake already
	}
	return true
}

// take returns what has arrived. Only the owner calls it.
func (in *inbox) take() []item {
	in.mu.Lock()
	defer in.mu.Unlock()
	items := in.items
	in.items = nil
	return items
}

// lives reports whether the item still means something.
func (in *inbox) lives(it item) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return it.life == 0 || it.life == in.life
}

// nextLife makes all items of the present life meaningless.
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
