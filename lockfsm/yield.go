package lockfsm

// EachYield calls yield for each stay that alone would be in the way of a request for one key, if
// the batch were applied now. The leader asks the owner of such a stay to release it if it is free.
// The release may then be in the same log entry as the request, see [Machine.OnlyWait].
//
// The notice of an applied request (see [Result].Fired) is needed in any case: the stay may be in
// use, or the question may be lost. The batch need not be applied, because the owner may release a
// stay at any time. EachYield calls yield once for each stay, so a flood of requests causes no
// flood of questions. It does not change the replicated state.
func (m *Machine) EachYield(batch []byte, yield func(SessionID, Number)) {
	for m.sticky > 0 && len(batch) > 0 {
		command, rest, err := Next(batch)
		if err != nil {
			return
		}
		if e := m.inTheWay(command); e != nil && !e.extra.stay.yields {
			e.extra.stay.yields = true
			yield(e.session.id, e.number)
		}
		batch = rest
	}
}

func (m *Machine) inTheWay(command []byte) *entry {
	r := reader{b: command}
	var c view
	r.header(&c.Header)
	if r.fault != "" || m.failed != nil || c.Kind != Acquire || c.Rules > m.charter.Rules {
		return nil
	}
	r.fields(&c)
	s, _ := m.sessions.of(&c)
	l := m.locks.byKey[string(c.key)]
	switch {
	case r.fault != "" || c.token != 0 || c.more.left > 0 || s == nil || c.Number < s.next || !c.allowedBy(s.rights):
		return nil // if the stay must know, the notice tells it
	case l == nil || l.takes(c.permits, c.of):
		return nil
	}
	return l.onlyStay(s)
}
