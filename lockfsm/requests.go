package lockfsm

func (m *Machine) acquire(c *view, res *Result) {
	s, code := m.sessions.of(c)
	if s == nil {
		res.Code = code
		return
	}
	rev, fresh := m.use(s, c.Number)
	if !fresh {
		e := s.request(c.Number)
		if e == nil {
			res.Code = Finished
			return
		}
		m.report(e, res)
		return
	}
	if c.token != 0 {
		m.resume(s, c, res)
		return
	}
	if res.Code = m.refuse(s, c, res); res.Code != 0 {
		return
	}
	e := m.push(s, c, rev)
	if watch := m.watches(e); watch == 0 && m.graceOver {
		m.grant(e)
		m.share(e.lock)
	} else {
		e.mark = uint64(watch)
	}
	if e.token == 0 {
		m.wanted(e)
	}
	if res.Unsearched = res.Unsearched && e.token == 0; res.Unsearched {
		m.unsearched.add(e)
	}
	if e.upgrades() {
		m.passed(e)
	}
	m.report(e, res)
	if e.told { // an upgrade, granted before others that wait
		m.ripples.changed(e.change())
	}
}

func (m *Machine) refuse(s *session, c *view, res *Result) Code {
	limits := &m.charter.Limits
	switch {
	case !m.validKeys(c):
		return BadKey
	case !c.allowedBy(s.rights):
		return NotAllowed
	case uint64(s.entries)+uint64(c.more.left) >= uint64(limits.EntriesPerSession):
		return TooManyEntries
	case c.try && !m.graceOver:
		return InGrace
	case c.upgrades && m.upgradable(s, c) == nil:
		return NotHeld
	}
	if code, budget := m.overBudget(s, c); code != 0 {
		res.Budget = budget
		return code
	}
	code := m.refuseOne(c.key, c.permits, c.of, c, res)
	for more := c.more; more.left > 0 && code == 0; {
		permits, of := more.terms(c)
		code = m.refuseOne(more.next(), permits, of, c, res)
	}
	if code == 0 && c.owner != 0 && !c.try {
		circle, found, unsearched := m.circular(s, c)
		if res.Unsearched = unsearched; found {
			res.Circle = circle
			return Deadlock
		}
	}
	return code
}

func (m *Machine) validKeys(c *view) bool {
	longest := m.charter.Limits.KeyBytes
	valid := validKey(c.key, longest)
	for more := c.more; more.left > 0 && valid; {
		valid = validKey(more.next(), longest)
	}
	return valid
}

func (m *Machine) refuseOne(key []byte, permits, of uint32, c *view, res *Result) Code {
	l := m.locks.byKey[string(key)]
	if c.found = l; l == nil {
		return 0
	}
	several := c.more.left > 0
	waits, full := !l.takes(permits, of), l.waiting >= m.charter.Limits.WaitersPerLock
	switch {
	case c.try && waits && (l.owned() || l.onlyStays() && l.tries < l.waiting):
		if m.name(l, nil, res, several); res.Holder.Token != 0 {
			return Held
		}
		return QueueFull // the owner was not found among so many entries
	case c.try && waits && (full || l.tries < l.waiting || c.asks+l.inside > maxAsked), c.try && several && full:
		m.name(l, nil, res, several)
		return QueueFull
	case c.try:
		c.asks += l.inside
	case full || waits && c.limit != 0 && l.waiting >= c.limit:
		if several {
			m.name(l, nil, res, several)
		}
		return QueueFull
	}
	return 0
}

func (m *Machine) release(c *view) Code {
	s, code := m.sessions.of(c)
	if s == nil {
		return code
	}
	if _, fresh := m.use(s, c.Number); fresh {
		return Finished
	}
	e := s.request(c.Number)
	if e == nil {
		return Finished
	}
	if c.Kind == Downgrade {
		return m.downgrade(e, c.modes)
	}
	m.bump()
	m.removeHold(e)
	m.fire()
	return Done
}

// downgrade gives the keys of a hold other modes, with the same token. The hold never leaves the
// queue, so no writer can be granted in between. A notice that the hold has received remains
// received. No key becomes upgradable, because the hold may have several or a delay.
func (m *Machine) downgrade(e *entry, modes []byte) Code {
	all := e.all(new([1]*entry))
	if e.token == 0 || e.sticky() || e.upgrades() || len(modes) != len(all) {
		return NotHeld
	}
	lowers := false
	for i, each := range all {
		to := Mode(modes[i])
		if !each.mode.Covers(to) || to == ModeU && each.mode != ModeU {
			return NotHeld
		}
		lowers = lowers || to != each.mode
	}
	if !lowers {
		return Downgraded
	}
	var before []Part
	e.eachPart(func(p Part) { before = append(before, p) })
	m.bump()
	if up := e.upgrade(); up != nil {
		m.remove(up)
	}
	for i, each := range all {
		to := Mode(modes[i])
		if to == each.mode {
			continue
		}
		l := each.lock
		m.captures.lockChanges(l)
		m.own(l)
		l.discharge(each, &m.effort)
		m.digest.drop(each.hash())
		each.mode = to
		m.digest.add(each.hash())
		l.admit(each, &m.effort)
		l.findLeast(&m.effort) // discharge has seen the former total of the entry
		m.admitNext(l)
	}
	m.noteModes(e, before)
	m.fire()
	return Downgraded
}

// setValue changes the value of a hold. The changes of one hold are numbered, so a late repetition
// of an earlier change does nothing. The holder chooses the numbers, which begin anew when the hold
// is resumed. A stay has no value.
func (m *Machine) setValue(c *view, res *Result) {
	e := m.holds(c.key, c.token)
	if e == nil || e.session.gone || e.sticky() || e.session.opener != c.opener {
		res.Code = NotHeld
		return
	}
	if res.Code = Done; e.extra != nil && c.seq <= e.extra.seq {
		return
	}
	if code, budget := m.overValue(e, c); code != 0 {
		res.Code, res.Budget = code, budget
		return
	}
	m.bump()
	m.captures.lockChanges(e.lock) // a snapshot has the value with the lead entry
	m.refund(e)
	if e.extra == nil {
		e.extra = &extra{}
	}
	e.extra.value, e.extra.seq = copied(c.value), c.seq
	m.charge(e)
	m.noteAll(e, Valued, 0)
}

func (m *Machine) evict(c *view, res *Result) {
	res.Code = Finished
	e := m.holds(c.key, c.token)
	if e == nil && m.reserver(c.key, c.token) != nil {
		res.Code = Kept
	}
	if e == nil {
		return
	}
	if !e.endsUnder(c.rights) {
		res.Code = NotForced
		return
	}
	evicted := m.answer.evict(Eviction{
		Session: e.session.id, Number: e.number, Token: c.token, Key: string(c.key), Record: e.session.record,
		By: copied(c.record), Reason: copied(c.value),
	})
	res.Code, res.Evicted = Done, evicted
	m.bump()
	s := e.session
	m.history.setCause(Evicted, &How{By: evicted.By, Reason: evicted.Reason})
	m.removeHold(e)
	m.dismiss(s)
	m.fire()
}

// inUse ends the requests with Try that an answer concerns: those at places up to the place that
// the answer names. The session may not have heard of a later request when it answered. Requests
// with Try are always before the other waiting requests. The end of a writer can make room for
// readers behind it, which are then granted.
func (m *Machine) inUse(c *view) Code {
	owner, code := m.sessions.of(c)
	if owner == nil {
		return code
	}
	if _, fresh := m.use(owner, c.Number); fresh {
		return Finished
	}
	e := owner.request(c.Number)
	if e == nil || !e.stays() || c.token <= e.token || e.extra.stay.last < c.token {
		return Finished
	}
	s, l := e.stay(), e.lock
	concerns := func(waits *entry) bool { return waits != nil && waits.try && waits.rev <= c.revision }
	if s.asked == 0 || s.asked > c.revision && !concerns(l.boundary) {
		return Done
	}
	m.bump()
	m.captures.lockChanges(l)
	if s.asked <= c.revision {
		s.asked = 0
	}
	for concerns(l.boundary) {
		holder := e.describe()
		holder.Token = c.token
		m.endTry(l.boundary, holder)
	}
	m.fire()
	return Done
}

// lapse notes the end of a caller of a stay, and leaves the stay as it is.
func (m *Machine) lapse(c *view) Code {
	by, code := m.sessions.of(c)
	if by == nil {
		return code
	}
	if _, fresh := m.use(by, c.Number); fresh {
		return Finished
	}
	e := by.request(c.Number)
	if e == nil || !e.granted(c.token) {
		return Finished
	}
	if m.visit(len(m.history.audit.ends)); m.history.audit.has(c.token) {
		return Done
	}
	m.bump()
	caller := &entry{lock: e.lock, session: by, token: c.token, mode: e.mode}
	m.history.setCause(Expired, &How{Reason: copied(c.value)})
	m.noteEnd(caller)
	return Done
}

// upgradable returns the hold of session s that c can upgrade, or nil.
func (m *Machine) upgradable(s *session, c *view) *entry {
	e := s.request(c.owner)
	if e == nil || e.token == 0 || !e.isUpgradable() || e.upgrade() != nil || e.lock.key != string(c.key) {
		return nil
	}
	return e
}

// passed updates the request directly behind the new upgrade e, which now waits for e.
func (m *Machine) passed(e *entry) {
	if e.after != nil {
		m.ripples.touch(e.after)
		m.fire()
	}
}
