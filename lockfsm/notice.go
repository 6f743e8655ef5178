package lockfsm

import "slices"

// wanted tells the holders of the locks in which e, which is new, must wait, if they want to be
// told and have not been. It lists them like fire.
func (m *Machine) wanted(e *entry) {
	for _, each := range e.all(new([1]*entry)) {
		m.wantedAt(each)
	}
	slices.SortFunc(m.touched, byPlace)
	for _, holder := range m.touched {
		m.fired = append(m.fired, holder.change())
	}
	clear(m.touched)
	m.touched = emptied(m.touched)
}

func (m *Machine) wantedAt(e *entry) {
	l := e.lock
	if e.inside || l.notices == 0 {
		return
	}
	for h := l.first; h != l.edge; h = h.after {
		if h.notice && !h.told && h.token != 0 {
			m.tell(h.lead())
			m.touch(h)
		}
	}
}

// tell marks a request that holds its locks as told that somebody waits for one of them. That
// stays, though he may give up.
func (m *Machine) tell(e *entry) {
	for _, each := range e.all(new([1]*entry)) {
		m.lockChanges(each.lock)
		each.told = true
		each.lock.notices--
	}
}
