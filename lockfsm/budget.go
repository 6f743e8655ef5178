package lockfsm

// This file accounts for the memory that the state costs a voter, and enforces the budgets of the
// charter.
//
// A charge is the memory that one item costs one voter in the worst case, which is more than the
// size of its struct. A byte of a key is in the state, in the last snapshot, and twice in the next
// one while it is taken. It is also in the log after the last snapshot, and that log is up to one
// and a half times as long as the snapshot. TestChargesCoverTheHeap compares the charges with the
// heap.
//
// The group pays for each session, entry, key and value once. A session pays for its record and its
// requests as if no other session named the same keys, so its charges never depend on others. Only
// the group pays for data.
//
// Only a command that makes the state grow is refused: Acquire, Open, Put and Detach. A refused
// Detach ends its hold, as it also does when there are too many sessions. Nothing that was granted
// is revoked when a budget shrinks, and every command that frees something succeeds.
//
// A snapshot does not store the charges; Restore computes them again.

const (
	// copiesCharged is the number of copies of each byte of content that a voter keeps in the worst
	// case.
	copiesCharged = 6

	sessionCharge = 1024 // structs, three maps, the leader's lease, and its place in snapshots
	entryCharge   = 352  // struct, lookup by number, and its place in snapshots
	lockCharge    = 256  // struct, lookup by key, and the rounding of the key's memory
	restCharge    = 192  // the extra struct of an entry
	dataCharge    = 288  // struct, nonce and revision, and their place in snapshots

	// sessionsReserve is a divisor: this part of the group's budget is reserved for Open. Otherwise a
	// voter that restarts could not take part when locks and data have used up the budget.
	sessionsReserve = 16

	// maxBudget keeps every sum of charges from overflowing.
	maxBudget = 1 << 50
)

// Usage is how much of the group's budget is used up.
type Usage struct {
	Bytes  uint64 // charged
	Budget uint64 // Limits.GroupBytes
}

// Usage returns the charges of the whole state and the budget for them.
func (m *Machine) Usage() Usage {
	return Usage{Bytes: m.charged(), Budget: m.charter.Limits.GroupBytes}
}

func (m *Machine) charged() uint64 {
	return m.bulk + uint64(m.counts.Sessions)*sessionCharge + uint64(m.counts.Entries)*entryCharge +
		uint64(m.counts.Locks)*lockCharge +
		uint64(m.data)*dataCharge
}

func content(bytes int) uint64 { return copiesCharged * uint64(bytes) }

func (s *session) ownCharge() uint64 { return sessionCharge + content(len(s.record)) }

// restCharge returns the group's charge for the fields that few requests have. It depends on the
// content of the struct extra and not on whether the struct exists, because a restored replica may
// have none where another replica has an empty one.
func (e *entry) restCharge() uint64 {
	if e.extra == nil {
		return 0
	}
	return e.extra.charge(e.extra.owner, len(e.extra.value), e.extra.delayMS)
}

// charge returns the charge that r would have with these values. r may be nil.
func (r *extra) charge(owner Number, value int, delayMS uint32) uint64 {
	if (r == nil || r.entries == nil) && owner == 0 && value == 0 && delayMS == 0 {
		return 0
	}
	return restCharge + content(value)
}

func (e *entry) requestCharge() uint64 {
	if e.extra == nil {
		return entryCharge + lockCharge + content(len(e.lock.key))
	}
	sum := e.restCharge()
	for _, each := range e.all(new([1]*entry)) {
		sum += entryCharge + lockCharge + content(len(each.lock.key))
	}
	return sum
}

// charge adds a request to its session's charges and to the group's. The group's keys, entries and
// locks are counted where they are linked.
func (m *Machine) charge(e *entry) {
	if e.extra == nil { // the usual case; written here so that the call can be inlined
		e.session.charged += entryCharge + lockCharge + content(len(e.lock.key))
		return
	}
	e.session.charged += e.requestCharge()
	m.bulk += e.restCharge()
}

// refund takes back what charge has added. It must be called before the request changes.
func (m *Machine) refund(e *entry) {
	if e.extra == nil {
		e.session.charged -= entryCharge + lockCharge + content(len(e.lock.key))
		return
	}
	e.session.charged -= e.requestCharge()
	m.bulk -= e.restCharge()
}

// hasRest reports whether the request of c has any of the fields in extra.
func (c *view) hasRest() bool {
	return c.more.left > 0 || c.owner != 0 || len(c.value) > 0 || c.delayMS != 0
}

func (c *view) chargeOf() uint64 {
	if !c.hasRest() {
		return entryCharge + lockCharge + content(len(c.key))
	}
	bytes, keys := len(c.key), 1
	for more := c.more; more.left > 0; keys++ {
		bytes += len(more.next())
	}
	return uint64(keys)*(entryCharge+lockCharge) + restCharge + content(bytes+len(c.value))
}

// overBudget returns the code and the size of the budget that has no room for the request of c, or
// 0. It counts every key as new to the group.
func (m *Machine) overBudget(s *session, c *view) (Code, uint64) {
	charge := c.chargeOf()
	if budget := m.charter.Limits.SessionBytes; s.charged+charge > budget {
		return OverSessionBudget, budget
	}
	return m.overGroupBudget(charge)
}

// overGroupBudget returns OverGroupBudget and the group's budget if the charge does not fit beside
// the reserve for sessions, and 0 otherwise.
func (m *Machine) overGroupBudget(charge uint64) (Code, uint64) {
	budget := m.charter.Limits.GroupBytes
	if m.charged()+charge > budget-budget/sessionsReserve {
		return OverGroupBudget, budget
	}
	return 0, 0
}

func (m *Machine) noRoomToOpen(record []byte) bool {
	return m.charged()+sessionCharge+content(len(record)) > m.charter.Limits.GroupBytes
}

// overTakingUp is overBudget for session s that resumes e by c. The session that e leaves pays
// less, so only s and the group are checked.
func (m *Machine) overTakingUp(s *session, e *entry, c *view) (Code, uint64) {
	after := m.restAfter(e, c)
	charge := e.requestCharge() - e.restCharge() + after
	if s == e.session {
		charge -= min(charge, e.requestCharge())
	}
	if budget := m.charter.Limits.SessionBytes; s.charged+charge > budget {
		return OverSessionBudget, budget
	}
	if more := after - min(after, e.restCharge()); more > 0 {
		return m.overGroupBudget(more)
	}
	return 0, 0
}

// restAfter returns the restCharge that e will have when c has resumed it.
func (m *Machine) restAfter(e *entry, c *view) uint64 {
	value, delayMS := len(e.value()), uint32(0)
	if e.extra != nil {
		delayMS = e.extra.delayMS
	}
	if len(c.value) > 0 {
		value = len(c.value)
	}
	return e.extra.charge(c.owner, value, max(delayMS, c.delayMS))
}

// overPut is overBudget for the data of c, which replaces that of l. Data that does not grow always
// fits.
func (m *Machine) overPut(l *lock, c *view) (Code, uint64) {
	more, less := content(len(c.value)), uint64(0)
	if l == nil {
		more += lockCharge + content(len(c.key))
	}
	if l == nil || l.data == nil {
		more += dataCharge
	} else {
		less = content(len(l.data.Value))
	}
	if more <= less {
		return 0, 0
	}
	return m.overGroupBudget(more - less)
}

func overBudget(code Code, _ uint64) bool { return code != 0 }

func (c *checker) charges() {
	m := c.m
	sum := uint64(0)
	for s := m.firstSession; s != nil; s = s.after {
		own := sessionCharge + content(len(s.record))
		sum += own
		for e := s.first; e != nil; e = e.next {
			own += e.requestCharge()
			sum += e.restCharge()
		}
		_ = s.charged == own || c.broken(19, "session %d is charged %d, want %d", s.id, s.charged, own)
	}
	for l := m.firstLock; l != nil; l = l.next {
		sum += lockCharge + content(len(l.key))
		if l.data != nil {
			sum += dataCharge + content(len(l.data.Value))
		}
		for e := l.first; e != nil; e = e.after {
			sum += entryCharge
		}
	}
	_ = m.charged() == sum || c.broken(19, "the group is charged %d, want %d", m.charged(), sum)
}
