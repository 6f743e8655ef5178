package lockfsm

// Apply executes one command, as [Next] returns it. index and term are those of its log entry.
// Apply returns a result for every input and never panics. The caller may change the command after
// the call.
func (m *Machine) Apply(index, term uint64, command []byte) Result {
	var res Result
	m.apply(index, term, command, &res)
	m.digest.fold(command, &res, m.rev)
	return res
}

// apply is like Apply, but writes the result to res, which must be zero.
func (m *Machine) apply(index, term uint64, command []byte, res *Result) {
	m.ripples.begin()
	m.history.setCause(0, nil)
	r := reader{b: command}
	var c view
	r.header(&c.Header)
	if r.fault != "" {
		res.Code = Malformed
		return
	}
	res.Kind, res.Session, res.Epoch, res.Number = c.Kind, c.Session, c.Epoch, c.Number
	m.guardRevisions(index)
	// Check the version before the other fields are read, because a later version may have changed
	// them. All builds must return the same result.
	if m.failed != nil || c.Rules > m.charter.Rules {
		res.Code = Unsupported
		return
	}
	r.fields(&c)
	switch {
	case r.fault != "":
		res.Code = Malformed
		return
	case !m.born && c.Kind != Born:
		res.Nonce, res.Code = c.nonce, NotBorn
		return
	}
	res.Nonce = c.nonce
	m.dispatch(index, term, &c, res)
	if fired := m.ripples.all(); len(fired) > 0 {
		res.Fired = fired
	}
}

func (m *Machine) dispatch(index, term uint64, c *view, res *Result) {
	switch c.Kind {
	case Stamp:
		res.Code = m.stamp(c)
	case Born:
		res.Code = m.applyBorn()
	case EndGrace:
		res.Code = m.endGrace()
	case Raise:
		res.Code = m.raise(index, c)
	case Open:
		m.open(c, res)
	case Attach:
		m.attach(c, res)
	case Leaving:
		res.Code = m.leaving(c)
	case Close:
		res.Code = m.close(c)
	case Expire:
		m.expire(term, c, res)
	case Acquire:
		m.acquire(c, res)
	case Release, Cancel, Downgrade:
		res.Code = m.release(c)
	case Detach:
		res.Code = m.detach(c, res)
	case Adopt:
		res.Code = m.adopt(c)
	case Evict:
		m.evict(c, res)
	case Put:
		m.put(c, res)
	case InUse:
		res.Code = m.inUse(c)
	case Lapse:
		res.Code = m.lapse(c)
	case SetValue:
		m.setValue(c, res)
	case Reserve:
		m.takeRevisions(c, res)
	case Refuse:
		m.refuseLater(c, res)
	case Lead:
		m.noteLead(c)
		res.Code = Done
	default:
		res.Code = m.later()
	}
}

// ApplyEntry applies all commands of one log entry in order. If the argument each is not nil,
// ApplyEntry calls that function with every result. The function must copy what it keeps or
// changes. If the rest of the batch cannot be split into commands, the function gets one
// Malformed result for that rest.
func (m *Machine) ApplyEntry(index, term uint64, batch []byte, each func(*Result)) {
	for len(batch) > 0 {
		command, rest, err := Next(batch)
		res := m.answer.begin()
		if err == nil {
			m.apply(index, term, command, res)
		} else {
			res.Code = Malformed
		}
		m.digest.fold(command, res, m.rev)
		if each != nil {
			each(res)
		}
		batch = rest
	}
}
