package lockfsm

import "github.com/mortise-lock/mortise/internal/capability"

// This file computes the memory that the state costs a voter, and enforces the budgets of the
// charter.
//
// A charge is the memory that one session, entry, lock or value costs a voter in the worst case.
// Each byte of a key is stored in the state, in the last snapshot, and twice in the next snapshot
// while it is taken. The log after the last snapshot also stores it, and can be one and a half
// times as long as the snapshot. TestChargesCoverTheHeap compares the charges with the heap.
//
// The group's budget is charged once for each session, entry, key and value. A session's budget is
// charged for its record and for all keys of its requests, even if other sessions name the same
// keys. The charge of a session therefore never depends on other sessions. Data is charged only to
// the group's budget.
//
// Only commands that make the state grow are refused: Acquire, Open, Put, SetValue and Detach. A
// refused Detach ends its hold at once. A budget that shrinks revokes no grant.

const (
	// copiesCharged is the number of copies of each byte of content that a voter keeps in the worst
	// case.
	copiesCharged = 6

	sessionCharge = 1024 // covers structs, three maps, the leader's lease, and snapshots
	entryCharge   = 352  // covers the struct, the lookup by number, and snapshots
	lockCharge    = 256  // covers the struct, the lookup by key, and the rounding of the key's memory
	restCharge    = 192  // see extra
	rightsCharge  = 1024 // covers the parsed rights of a session with a capability
	dataCharge    = 288  // covers the struct, the nonce, the revision, and snapshots

	// The group's budget divided by sessionsReserve is reserved for Open. A restarted instance can
	// therefore open a session even if locks and data have used up the rest.
	sessionsReserve = 16
)

// tally is what the lists of the state amount to.
type tally struct {
	counts Counts
	sticky int    // the number of sticky entries
	data   int    // the number of keys with data
	bulk   uint64 // charges that do not follow from the counts; see charged
}

// Counts is the size of the state.
type Counts struct{ Sessions, Locks, Entries, Waiters int }

// The argument by of the methods that count is 1 or -1.

func (t *tally) countSession(s *session, by int) {
	t.counts.Sessions += by
	t.bulk += uint64(by) * s.ownContent()
}

func (t *tally) countLock(l *lock, by int) {
	t.counts.Locks += by
	t.bulk += uint64(by) * content(len(l.key))
}

func (t *tally) countEntry(e *entry, by int) {
	t.counts.Entries += by
	if e.sticky() {
		t.sticky += by
	}
	if e.token == 0 {
		t.counts.Waiters += by
	}
}

// countGrant counts an entry that waits no more.
func (t *tally) countGrant() { t.counts.Waiters-- }

// countData counts the data of a key.
func (t *tally) countData(d *Data, by int) {
	t.data += by
	t.bulk += uint64(by) * content(len(d.Value))
}

// Usage is the used part of the group's budget, in bytes.
type Usage struct {
	Bytes  uint64
	Budget uint64
}

// Usage returns the charges of the whole state and the budget for them.
func (m *Machine) Usage() Usage {
	return Usage{Bytes: m.charged(), Budget: m.charter.Limits.GroupBytes}
}

func (t *tally) charged() uint64 {
	return t.bulk + uint64(t.counts.Sessions)*sessionCharge + uint64(t.counts.Entries)*entryCharge +
		uint64(t.counts.Locks)*lockCharge +
		uint64(t.data)*dataCharge
}

func content(bytes int) uint64 { return copiesCharged * uint64(bytes) }

func (s *session) ownCharge() uint64 { return sessionCharge + s.ownContent() }

// ownContent returns the charge for the record and the rights of a session. Sessions with the same
// rights share them, but each is charged for them, because a snapshot has them once for each.
func (s *session) ownContent() uint64 {
	return content(len(s.record)) + chargeOfRights(s.rights.all())
}

func chargeOfRights(c *capability.Capability) uint64 {
	if c == nil {
		return 0
	}
	return rightsCharge + content(len(c.Text()))
}

// restCharge returns the charge for the optional fields of a request. It is zero if extra has no
// content, because extra may then be nil in a restored replica.
func (e *entry) restCharge() uint64 {
	if e.extra == nil {
		return 0
	}
	if e.extra.stay != nil {
		return restCharge
	}
	return e.extra.charge(e.extra.owner, len(e.extra.value), e.extra.delayMS, e.extra.seq)
}

func (r *extra) charge(owner Number, value int, delayMS uint32, seq uint64) uint64 {
	if (r == nil || r.entries == nil) && owner == 0 && value == 0 && delayMS == 0 && seq == 0 {
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

// charge charges a request to its session and to the group. Other functions charge the group for
// keys, entries and locks.
func (t *tally) charge(e *entry) {
	if e.extra == nil { // the usual case; written here so that the call can be inlined
		e.session.charged += entryCharge + lockCharge + content(len(e.lock.key))
		return
	}
	e.session.charged += e.requestCharge()
	t.bulk += e.restCharge()
}

// refund subtracts what charge has added. It must be called before the request changes.
func (t *tally) refund(e *entry) {
	if e.extra == nil {
		e.session.charged -= entryCharge + lockCharge + content(len(e.lock.key))
		return
	}
	e.session.charged -= e.requestCharge()
	t.bulk -= e.restCharge()
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

// overBudget returns a code and the exceeded budget if the request of c does not fit into a budget,
// and 0 otherwise. It charges every key as if it were new to the group.
func (m *Machine) overBudget(s *session, c *view) (Code, uint64) {
	charge := c.chargeOf()
	if budget := m.charter.Limits.SessionBytes; s.charged+charge > budget {
		return OverSessionBudget, budget
	}
	return m.overGroupBudget(charge)
}

// overGroupBudget is like overBudget for a charge to the group, without the part that is reserved
// for sessions.
func (m *Machine) overGroupBudget(charge uint64) (Code, uint64) {
	budget := m.charter.Limits.GroupBytes
	if m.charged()+charge > budget-budget/sessionsReserve {
		return OverGroupBudget, budget
	}
	return 0, 0
}

func (m *Machine) noRoomToOpen(c *view) bool {
	more := sessionCharge + content(len(c.record)) + chargeOfRights(c.rights)
	return m.charged()+more > m.charter.Limits.GroupBytes
}

// overTakingUp is like overBudget for a command c by which session s resumes the hold e. The charge
// of the previous session does not grow.
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

func (m *Machine) restAfter(e *entry, c *view) uint64 {
	value, delayMS := len(e.value()), uint32(0)
	if e.extra != nil {
		delayMS = e.extra.delayMS
	}
	if len(c.value) > 0 {
		value = len(c.value)
	}
	return e.extra.charge(c.owner, value, max(delayMS, c.delayMS), 0)
}

// overValue is like overBudget for a SetValue of the hold e.
func (m *Machine) overValue(e *entry, c *view) (Code, uint64) {
	before, after := e.restCharge(), restCharge+content(len(c.value))
	if after <= before {
		return 0, 0
	}
	if budget := m.charter.Limits.SessionBytes; e.session.charged+after-before > budget {
		return OverSessionBudget, budget
	}
	return m.overGroupBudget(after - before)
}

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
