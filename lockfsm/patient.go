package lockfsm

// OnlyWait reports whether all that the commands of a batch would do, if they were applied now, is
// to let new requests wait. Then nobody is kept waiting if they are applied a little later, as long
// as that is not behind whatever lets one of them in: to stand in a queue is no use to anybody
// before the lock is given on. settled says that no command is on its way here: a lock that is held
// stays so until another one comes. Without it a request only waits if others wait before it, since
// the end of the hold may be on its way.
//
// What is to be answered at once is not such a request, though it would wait: one that may find the
// queue too long or a circle of waiters, and one of which the holder wants to be told. When in
// doubt the answer is no. Nothing is changed or allocated.
func (m *Machine) OnlyWait(batch []byte, settled bool) bool {
	for len(batch) > 0 {
		command, rest, err := Next(batch)
		if err != nil || !m.onlyWaits(command, settled) {
			return false
		}
		batch = rest
	}
	return true
}

func (m *Machine) onlyWaits(command []byte, settled bool) bool {
	r := reader{b: command}
	var c view
	r.header(&c.Header)
	switch {
	case r.fault != "" || m.failed != nil || c.Rules > m.charter.Rules:
		return false
	case c.Kind == Stamp:
		return true // it leads every batch of a leader
	case c.Kind != Acquire:
		return false
	}
	r.fields(&c)
	if r.fault != "" || c.try || c.token != 0 || c.more.left > 0 || c.most != 0 || c.owner != 0 {
		return false
	}
	s, _ := m.of(&c)
	l := m.locks[string(c.key)]
	limits := &m.charter.Limits
	switch {
	case s == nil || c.Number < s.next || s.entries >= limits.EntriesPerSession:
		return false
	case overBudget(m.overBudget(s, &c)):
		return false
	case l == nil || l.notices > 0 || l.waiting >= limits.WaitersPerLock:
		return false
	}
	return l.edge != nil || settled && !l.takes(&c)
}
