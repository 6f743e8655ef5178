package lockfsm

// The machine reuses the structs of locks and entries, so that an Acquire and its Release allocate
// nothing but the key. The pools are bounded, so that a burst does not pin memory.
const (
	maxSpare       = 4096
	maxBufferItems = 4096
)

type spares struct {
	entries []*entry
	locks   []*lock // without queues
	queues  []*queue
}

func (s *spares) spareEntry() *entry {
	if n := len(s.entries); n > 0 {
		e := s.entries[n-1]
		s.entries = s.entries[:n-1]
		return e
	}
	return new(entry)
}

// recycleEntry clears e. If e is in the list of touched entries, fire then skips it. No command
// creates an entry after it has removed one, so e is not reused before fire has run.
func (s *spares) recycleEntry(e *entry) {
	*e = entry{}
	if len(s.entries) < maxSpare {
		s.entries = append(s.entries, e)
	}
}

// spareLock returns a lock with a queue of its own.
func (s *spares) spareLock() *lock {
	n := len(s.locks)
	if n == 0 {
		return &lock{queue: s.spareQueue()}
	}
	l := s.locks[n-1]
	s.locks = s.locks[:n-1]
	l.queue = s.spareQueue()
	return l
}

func (s *spares) spareQueue() *queue {
	if n := len(s.queues); n > 0 {
		q := s.queues[n-1]
		s.queues = s.queues[:n-1]
		return q
	}
	return new(queue)
}

// recycleQueue must not be called with the shared queue.
func (s *spares) recycleQueue(q *queue) {
	*q = queue{}
	if len(s.queues) < maxSpare {
		s.queues = append(s.queues, q)
	}
}

func (s *spares) recycleLock(l *lock) {
	if !l.shared {
		s.recycleQueue(l.queue)
	}
	*l = lock{}
	if len(s.locks) < maxSpare {
		s.locks = append(s.locks, l)
	}
}

func emptied[T any](buffer []T) []T {
	if cap(buffer) > maxBufferItems {
		return nil
	}
	return buffer[:0]
}
