package lockfsm

// This file contains the Release that leaves its request shared, an addition of version 3 of the
// rules. It is a field of Release and not a kind of its own, because a leader of an older build
// answers a Release of a newer version with Unsupported, and ends the connection after an unknown
// kind.

// downgrade makes an exclusive hold shared, with all its keys and the same token. The readers
// directly behind it are granted. The hold never leaves the queue, so no writer can be granted in
// between. A notice that the hold has received remains received.
func (m *Machine) downgrade(e *entry) Code {
	switch {
	case e.token == 0 || e.of != 0 || e.sticky():
		return NotHeld
	case e.permits != 0:
		return Downgraded
	}
	m.bump()
	for _, each := range e.all(new([1]*entry)) {
		l := each.lock
		m.lockChanges(l)
		l.discharge(each)
		each.permits = 1
		l.admit(each)
		m.admitNext(l)
	}
	m.fire()
	return Downgraded
}
