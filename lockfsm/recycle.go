package lockfsm

// The machine reuses the structs of locks and entries, so that an Acquire and its Release allocate
// nothing but the key. The pools are bounded, so that a burst does not pin memory: 16,384 of each
// kind need about 4 MB, and are enough for the locks of 8,192 callers that are all released and
// requested again in two entries of the log.
const (
	maxSpare       = 16384
	maxBufferItems = 4096
)

type spares struct {
	entries []*entry
	locks   []*lock // without queues
	queues  []*queue
}

// spare takes a struct from a pool, or makes one.
func spare[T any](pool *[]*T) *T {
	n := len(*pool)
	if n == 0 {
		return new(T)
	}
	one := (*pool)[n-1]
	*pool = (*pool)[:n-1]
	return one
}

// recycle clears a struct and puts it into a pool that is not full.
func recycle[T any](pool *[]*T, one *T) {
	var zero T
	if *one = zero; len(*pool) < maxSpare {
		*pool = append(*pool, one)
	}
}

func (s *spares) spareEntry() *entry { return spare(&s.entries) }

// recycleEntry clears e. If e is in the list of touched entries, fire then skips it. No command
// creates an entry after it has removed one, so e is not reused before fire has run.
func (s *spares) recycleEntry(e *entry) { recycle(&s.entries, e) }

// spareLock returns a lock with a queue of its own.
func (s *spares) spareLock() *lock {
	l := spare(&s.locks)
	l.queue = s.spareQueue()
	return l
}

func (s *spares) recycleLock(l *lock) {
	if !l.shared {
		s.recycleQueue(l.queue)
	}
	recycle(&s.locks, l)
}

func (s *spares) spareQueue() *queue { return spare(&s.queues) }

// recycleQueue must not be called with the shared queue.
func (s *spares) recycleQueue(q *queue) { recycle(&s.queues, q) }

func emptied[T any](buffer []T) []T {
	if cap(buffer) > maxBufferItems {
		return nil
	}
	return buffer[:0]
}
