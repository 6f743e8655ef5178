package lockfsm

func (m *Machine) report(e *entry, res *Result) {
	res.Code, res.Token, res.Watch = Granted, e.token, e.watch()
	if e.resumed() || e.sticky() {
		c := e.change()
		res.Last, res.Grant = c.Last, c.Grant
	}
	if e.token == 0 {
		res.Code = Waiting
		if stuck := m.stuck(e); stuck != nil {
			m.name(stuck.lock, stuck.upgraded(), res, e.places() > 1)
		}
	}
}

// name fills res.Holder with the request that delays another request in the queue of l: the
// holder other than except, or the first request of the queue. During the grace, it does nothing.
// ofSeveral means that the waiting request has several keys.
func (m *Machine) name(l *lock, except *entry, res *Result, ofSeveral bool) {
	if !m.graceOver {
		return
	}
	res.Holder = m.answer.name(l.blocker(except, &m.effort).describe())
	if ofSeveral {
		res.Holder.Key = l.key
	}
}
