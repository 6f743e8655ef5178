package lockfsm

// When a session expires, or detaches a hold, the hold stays for its delay. Any session with the
// token of the hold can resume it, for example a restarted process. The resumed hold keeps its
// place in the queue and gets a new token, so that a fence refuses the old token. The hold of a
// live session can also be resumed, see rights.go.

// detach moves a hold with a delay to a new session, which is marked as gone from the start. It
// ends any other request.
func (m *Machine) detach(c *view, res *Result) Code {
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
	m.bump()
	cause := Released
	if len(c.value) > 0 {
		cause = Expired
		m.history.setCause(cause, &How{Reason: copied(c.value)})
	}
	if !e.delayed() {
		m.removeHold(e)
		m.fire()
		return Done
	}
	if m.manyDetached() { // no session can be created for the hold
		m.remove(e)
		m.fire()
		return TooManySessions
	}
	if code, budget := m.overGroupBudget(sessionCharge + content(len(s.record))); code != 0 {
		m.remove(e)
		m.fire()
		res.Budget = budget
		return code
	}
	left := &session{eventHolder: &eventHolder{SessionID(m.rev), s.record}, nonce: s.nonce, epoch: s.epoch, next: s.next,
		ttl: e.delay(), leaving: s.leaving, gone: true}
	m.linkSession(left)
	m.move(e, left, e.number, 0)
	m.noteLeft(e, cause)
	res.Detached, res.TTL = left.id, left.ttl
	return Done
}

// manyDetached reports whether there is no room for another detached hold. Gone sessions may use at
// most half of Limits.Sessions, so that instances can still open sessions.
func (m *Machine) manyDetached() bool {
	limit, gone := uint64(m.charter.Limits.Sessions), uint64(len(m.sessions.byID)-len(m.sessions.byNonce))
	return uint64(m.counts.Sessions) >= limit || 2*gone >= limit
}

func (m *Machine) resume(s *session, c *view, res *Result) {
	e := m.holds(c.key, c.token)
	switch {
	case !s.rights.mayLock(string(c.key)):
		res.Code = NotAllowed
		return
	case e == nil || e.sticky() || e.upgrades() || e.isUpgradable():
		res.Code = NotHeld
		return
	case uint64(s.entries)+uint64(e.places()) > uint64(m.charter.Limits.EntriesPerSession):
		res.Code = TooManyEntries
		return
	}
	if res.Code = s.mayResume(e); res.Code != 0 {
		return
	}
	if code, budget := m.overTakingUp(s, e, c); code != 0 {
		res.Code, res.Budget = code, budget
		return
	}
	before := e.session
	evicted := m.answer.evict(Eviction{
		Session: before.id, Number: e.number, Token: e.token, Key: string(c.key), Record: before.record,
		Taker: s.record, Live: !before.gone && before != s,
	})
	res.Evicted = evicted
	if m.history.setCause(Resumed, nil); evicted.Live {
		m.history.setCause(Resumed, &How{By: s.record})
	}
	m.noteEnd(e)
	m.move(e, s, c.Number, c.owner)
	m.dismiss(before)
	m.rewrite(e, c)
	m.noteGrant(e)
	m.report(e, res)
	if e.told {
		m.ripples.changed(e.change())
	}
}

func (m *Machine) move(e *entry, to *session, number, owner Number) {
	m.refund(e)
	e.session.leave(e)
	for _, each := range e.all(new([1]*entry)) {
		m.captures.lockChanges(each.lock)
		m.digest.drop(each.hash())
		each.session, each.number = to, number
		m.digest.add(each.hash())
	}
	if e.extra != nil {
		e.extra.owner = owner
	} else if owner != 0 {
		e.extra = &extra{owner: owner} // a request without extra has one entry
	}
	to.join(e)
	m.charge(e)
}

// rewrite gives a resumed request a new token and the notice, value and delay of c. If c has no
// value or no delay, the request keeps its own.
func (m *Machine) rewrite(e *entry, c *view) {
	m.refund(e)
	token := Token(m.bump())
	wanted := false
	for _, each := range e.all(new([1]*entry)) {
		l := each.lock
		m.own(l)
		if each.awaitsNotice() {
			l.notices--
		}
		l.index.drop(each)
		m.digest.drop(each.hash())
		each.token, each.mark, each.notice, each.told = token, uint64(m.wallUnixMS), c.notice, false
		m.digest.add(each.hash())
		if each.notice {
			l.notices++
		}
		l.index.add(each)
		wanted = wanted || l.boundary != nil
	}
	if e.extra == nil { // the request has one entry
		e.extra = &extra{}
	}
	e.extra.resumed = true
	e.extra.seq = 0 // the new holder counts its changes of the value anew
	if len(c.value) > 0 {
		e.extra.value = copied(c.value)
	}
	if c.delayMS != 0 {
		e.extra.delayMS = c.delayMS
	}
	m.charge(e)
	if e.notice && wanted {
		m.markNoticed(e)
	}
}

// mayResume returns 0 if session s may resume the hold e, or the code of the refusal.
func (s *session) mayResume(e *entry) Code {
	if s.rights == nil {
		return 0
	}
	for _, each := range e.all(new([1]*entry)) {
		if !s.rights.mayLock(each.lock.key) {
			return NotAllowed
		}
	}
	of := &e.session.opener
	own := e.session.gone || of.Instance == s.opener.Instance || of.Capability == s.opener.Capability
	if !own && !e.endsUnder(s.rights.all()) {
		return NotForced
	}
	return 0
}
