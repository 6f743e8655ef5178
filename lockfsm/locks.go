package lockfsm

import "iter"

// lockTable has all locks.
type lockTable struct {
	byKey       map[string]*lock
	first, last *lock // in the order in which they were created
	lastPlace   uint64
	shared      *queue // see own; never changed
}

func newLockTable() lockTable {
	shared := sharedQueue()
	return lockTable{byKey: map[string]*lock{}, lastPlace: placesOfLocks, shared: &shared}
}

// expect makes room for a number of locks in the empty table.
func (t *lockTable) expect(locks int) { t.byKey = make(map[string]*lock, locks) }

// link adds a new lock to the map and to the list. The list gives all replicas the same order.
func (t *lockTable) link(l *lock) {
	t.byKey[l.key] = l
	t.lastPlace++
	l.position = t.lastPlace
	l.prev = t.last
	if t.last == nil {
		t.first = l
	} else {
		t.last.next = l
	}
	t.last = l
}

func (t *lockTable) unlink(l *lock) {
	if l.prev == nil {
		t.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		t.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	delete(t.byKey, l.key)
}

func (t *lockTable) inOrder() iter.Seq[*lock] {
	return func(yield func(*lock) bool) {
		for l := t.first; l != nil && yield(l); l = l.next {
		}
	}
}

func (m *Machine) lockFor(key []byte) *lock {
	if l := m.locks.byKey[string(key)]; l != nil {
		return l
	}
	l := m.spares.spareLock()
	l.key = string(key)
	m.linkLock(l)
	return l
}

func (m *Machine) linkLock(l *lock) {
	m.locks.link(l)
	l.seen = m.captures.last
	m.countLock(l, 1)
}

// own gives l a queue of its own. It must be called before the queue of l changes.
func (m *Machine) own(l *lock) {
	if l.shared {
		l.takeOver(m.spares.spareQueue())
	}
}

// share makes l use the shared queue if it has the values of l's own.
func (m *Machine) share(l *lock) {
	if own := l.replaceBy(m.locks.shared); own != nil {
		m.spares.recycleQueue(own)
	}
}

func (m *Machine) dropLock(l *lock) {
	m.captures.passOver(l)
	m.locks.unlink(l)
	m.countLock(l, -1)
	m.spares.recycleLock(l)
}

func (m *Machine) holds(key []byte, token Token) *entry {
	l := m.locks.byKey[string(key)]
	if l == nil || token == 0 {
		return nil
	}
	e := l.heldWith(token, &m.effort)
	if e == nil {
		return nil
	}
	return e.lead()
}

// reserver returns the stay of the key that has reserved the token, or nil.
func (m *Machine) reserver(key []byte, token Token) *entry {
	l := m.locks.byKey[string(key)]
	if l == nil || l.stays == 0 {
		return nil
	}
	return l.reservedBy(token, &m.effort)
}
