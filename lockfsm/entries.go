package lockfsm

// EntryInfo describes a live request to whoever judges or records a run: its place in one queue. A request for several keys has one in each.
type EntryInfo struct {
	Key         string
	Session     SessionID
	Number      Number
	Place       Revision // its place in the queue
	Token       Token    // 0: it waits
	Permits, Of uint32   // as in Command
}

// Entries lists all live requests, each lock's in the order of its queue. It copies; it is for tests and recorders, not for each
// command.
func (m *Machine) Entries() []EntryInfo {
	all := make([]EntryInfo, 0, m.counts.Entries)
	for l := m.firstLock; l != nil; l = l.next {
		for e := l.first; e != nil; e = e.after {
			all = append(all, EntryInfo{Key: l.key, Session: e.session.id, Number: e.number, Place: e.rev, Token: e.token, Permits: e.permits, Of: e.of})
		}
	}
	return all
}

// Revision returns the revision at which the machine stands: the last one taken.
func (m *Machine) Revision() Revision { return m.rev }
