package lockfsm

// OnlyWait reports whether a batch, if it were applied now, would only add waiting requests to
// queues. The leader may propose such a batch later, because a place in a queue has no use before
// the lock is released. The batch must be applied before any command that would admit one of its
// requests.
//
// settled means that no other command is on its way to this machine. If settled is false, the end
// of a hold may be on its way. Then a request counts as waiting only if other requests wait before
// it.
//
// OnlyWait also reports false for a request with an early result: a request that a full queue or a
// deadlock may refuse, and a request for a lock whose holder awaits a notice. An exception is a
// request that waits for one stay. Its owner has been asked to release the stay (see EachYield), so
// the request shares an entry with the release. If the stay remains in use, its notice is late by
// the time for which the leader defers the batch.
//
// In doubt OnlyWait reports false. It changes nothing and does not allocate.
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
		return true // every batch of a leader begins with a Stamp
	case c.Kind != Acquire:
		return false
	}
	r.fields(&c)
	if r.fault != "" || c.try || c.token != 0 || c.more.left > 0 || c.limit != 0 || c.owner != 0 {
		return false
	}
	s, _ := m.sessions.of(&c)
	l := m.locks.byKey[string(c.key)]
	limits := &m.charter.Limits
	switch {
	case s == nil || c.Number < s.next || !c.allowedBy(s.rights) || s.entries >= limits.EntriesPerSession:
		return false
	case overBudget(m.overBudget(s, &c)):
		return false
	case l == nil || l.notices > 0 && !l.yieldsTo(s) || l.waiting >= limits.WaitersPerLock:
		return false
	}
	return l.boundary != nil || settled && !l.takes(c.permits, c.of)
}
