package lockfsm

func (m *Machine) put(c *view, res *Result) {
	if !validKey(c.key, m.charter.Limits.KeyBytes) {
		res.Code = BadKey
		return
	}
	var now Data
	l := m.locks.byKey[string(c.key)]
	if l != nil && l.data != nil {
		now = *l.data
	}
	switch {
	case now.Revision != 0 && now.nonce == c.nonce: // a repetition
	case now.Revision != c.revision:
		res.Code, res.Data = Changed, &now
		return
	case c.token != 0 && !m.guards(c):
		res.Code = NotHeld
		return
	case len(c.value) == 0:
		now = m.clear(l)
	case now.Revision == 0 && m.data >= MaxData:
		res.Code = TooMuchData
		return
	default:
		if code, budget := m.overPut(l, c); code != 0 {
			res.Code, res.Budget = code, budget
			return
		}
		now = Data{Value: copied(c.value), Revision: m.bump(), nonce: c.nonce}
		m.set(c.key, now)
	}
	res.Code, res.Data = Done, &now
}

// guards reports whether the lock that c names is held with the token that c names. A stay does not
// count, because only its session knows which of its callers holds the lock. The Put that a Release
// overtakes therefore changes nothing, and so does the Put of a holder whose session is gone.
func (m *Machine) guards(c *view) bool {
	e := m.holds(c.lock, c.token)
	return e != nil && !e.session.gone && !e.stays()
}

func (m *Machine) set(key []byte, d Data) {
	l := m.lockFor(key)
	m.captures.lockChanges(l)
	m.own(l)
	if l.data != nil {
		m.countData(l.data, -1)
		m.digest.drop(l.data.hash())
	}
	m.countData(&d, 1)
	l.data = &d
	m.digest.add(d.hash())
	m.noteData(l, d)
}

func (m *Machine) clear(l *lock) Data {
	if l == nil || l.data == nil {
		return Data{}
	}
	m.captures.lockChanges(l)
	m.countData(l.data, -1)
	m.digest.drop(l.data.hash())
	l.data = nil
	m.noteData(l, Data{Revision: m.bump()})
	if l.first == nil {
		m.dropLock(l)
	}
	return Data{}
}
