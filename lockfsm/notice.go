package lockfsm

// wanted notifies the holders of the locks that the new entry e waits for, if they asked for a
// notice and have not received it. It appends these holders to Result.Fired in the order of their
// places.
func (m *Machine) wanted(e *entry) {
	for _, each := range e.all(new([1]*entry)) {
		m.wantedAt(each)
	}
	for _, holder := range m.ripples.touchedInOrder() {
		m.ripples.changed(holder.change())
	}
	m.ripples.forgetTouched()
}

// wantedAt visits the inside entries, the last one first, until all have received their notice.
// Entries that came after the previous notice are at the end, so it does not visit the earlier ones
// again. A lock with many inside entries has an index of those to visit. A request with Try asks
// all inside entries, which are stays. An upgrade causes no notice for its own hold.
func (m *Machine) wantedAt(e *entry) {
	l := e.lock
	if e.holding {
		return
	}
	own := e.upgraded()
	if l.index != nil && !e.try {
		untold := &l.index.untold
		for h := untold.First(); h != nil; h = untold.After(uint64(h.rev)) { // markNoticed deletes h
			if h != own {
				m.visit(1)
				m.markNoticed(h.lead())
				m.ripples.touch(h)
			}
		}
		return
	}
	for h := l.boundary.ahead; h != nil && (l.notices > 0 || e.try); h = h.ahead {
		if m.visit(1); h == own {
			continue
		}
		changed := m.ask(h, e)
		if h.awaitsNotice() {
			m.markNoticed(h.lead())
			changed = true
		}
		if changed {
			m.ripples.touch(h)
		}
	}
}

// markNoticed records that a holding request has received its notice. The mark remains even if the
// waiting request is cancelled.
func (m *Machine) markNoticed(e *entry) {
	for _, each := range e.all(new([1]*entry)) {
		m.captures.lockChanges(each.lock)
		each.told = true
		each.lock.notices--
		each.lock.index.told(each)
	}
}

// ask records that e, a request with Try, waits for the answer of h. It reports whether h is a
// stay that must be told so.
func (m *Machine) ask(h, e *entry) bool {
	if !e.try || !h.stays() {
		return false
	}
	m.captures.lockChanges(h.lock)
	h.extra.stay.asked = e.rev
	return true
}

// askFromBirth is like ask for a stay that is granted while requests with Try wait.
func (m *Machine) askFromBirth(e *entry) {
	if e.stays() && e.lock.boundary.try {
		e.extra.stay.asked = e.lock.tail().rev
	}
}
