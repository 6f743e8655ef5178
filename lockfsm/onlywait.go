package lockfsm

// OnlyWait reports whether a batch, applied now, would only let new requests wait. Such a batch may
// be applied later without delaying any request, because a waiting request gets nothing before the
// lock is released. It must be applied before any command that could grant one of its requests.
//
// settled means that no command is on its way to this machine, so a held lock stays held until
// another command arrives. Otherwise a request is certain to wait only if others wait before it,
// because the release of the held lock may be on its way.
//
// A request that needs its answer at once does not count, even if it would wait: one that may find
// the queue too long or a circle, and one whose holder asked for a notice. When in doubt OnlyWait
// reports false. It changes and allocates nothing.
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
	return l.boundary != nil || settled && !l.takes(&c)
}
