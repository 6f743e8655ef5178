package lockfsm

import "math"

// Mode is the way in which a request locks one of its keys. The modes are those of hierarchical
// locking, without SIX (Gray, Lorie, Putzolu and Traiger, "Granularity of Locks and Degrees of
// Consistency in a Shared Data Base", 1976). For each node above the one that it locks, a request
// has an intention. A mode is a number of permits of a total, so the rule of permits (see lock)
// decides which modes are compatible:
//
//	                  IS    IX    S     X
//	intention IS      yes   yes   yes   no
//	intention IX      yes   yes   no    no
//	subtree   S       yes   no    yes   no
//	exclusive X       no    no    no    no
//
// A shared request without modes counts as IS, so it excludes neither S nor IX. At most 65,536
// requests with IS or IX are compatible with an IX, and 65,535 with S.
//
// A request for one key can also be upgradable: compatible with IS and S, but not with IX, X and
// another upgradable request. At most 16,383 requests with S are compatible with it. A later
// request can upgrade its hold, see Command.Upgrades.
type Mode uint8

// The modes. The values are part of the log's format and never change.
const (
	ModeX  Mode = 0 // alone
	ModeIS Mode = 1 // above a key that the request locks as shared
	ModeIX Mode = 2 // above a key that the request locks exclusively
	ModeS  Mode = 3 // shared, together with all keys below
	ModeU  Mode = 4 // upgradable; only for a request with one key, without Delay
)

// ModesSince is the first rules version in which an Acquire can have Modes.
const ModesSince = 3

// UpgradesSince is the first rules version that has ModeU and Command.Upgrades.
const UpgradesSince = 3

const (
	subtreePermits    = 1 << 16
	upgradablePermits = 1<<30 + 1
	upgradableOf      = 1 << 31
)

// Terms returns the Permits and Of of a request with the mode; see [Command].
func (m Mode) Terms() (permits, of uint32) {
	switch m {
	case ModeIS:
		return 1, 0
	case ModeIX:
		return 1, subtreePermits
	case ModeS:
		return subtreePermits, math.MaxUint32
	case ModeU:
		return upgradablePermits, upgradableOf
	}
	return 0, 0
}

// modeOf returns the mode with these Permits and Of.
func modeOf(permits, of uint32) (m Mode, known bool) {
	for m = ModeX; m <= ModeU; m++ {
		if p, o := m.Terms(); p == permits && o == of {
			return m, true
		}
	}
	return 0, false
}

// An upgrade is an exclusive request that names an upgradable hold of its session as its owner. It
// has its own number, place and token. Its entry is directly behind the inside entries (see lock),
// before all that wait, and fits beside nothing but its hold. So no new request gets in while the
// upgrade waits for the readers, nor while it is granted. When it ends, the hold is upgradable
// again. An upgrade never outlives its hold.

// upgradable returns the hold of session s that c can upgrade, or nil.
func (m *Machine) upgradable(s *session, c *view) *entry {
	e := s.requests[c.owner]
	if e == nil || e.token == 0 || !e.isUpgradable() || e.upgrade() != nil || e.lock.key != string(c.key) {
		return nil
	}
	return e
}

func (e *entry) isUpgradable() bool {
	return e.permits == upgradablePermits && e.of == upgradableOf &&
		(e.extra == nil || e.extra.entries == nil && e.extra.delayMS == 0)
}

func (e *entry) upgrades() bool { return e.extra != nil && e.extra.upgrades }

// upgraded returns the hold that e upgrades. It returns nil if e is no upgrade, or if the hold has
// been removed by the same command that removes e.
func (e *entry) upgraded() *entry {
	if !e.upgrades() {
		return nil
	}
	if hold := e.owner(); hold != nil && hold.lock == e.lock && hold.isUpgradable() {
		return hold
	}
	return nil
}

// upgrade returns the upgrade of the hold e, or nil. An upgrade is the last inside entry or the
// first outside.
func (e *entry) upgrade() *entry {
	if !e.isUpgradable() {
		return nil
	}
	l := e.lock
	last := l.lastInside()
	for _, each := range [...]*entry{last, l.boundary} {
		if each != nil && each.upgrades() && each.upgraded() == e {
			return each
		}
	}
	return nil
}

// removeHold removes a request together with its upgrade.
func (m *Machine) removeHold(e *entry) {
	if u := e.upgrade(); u != nil {
		m.remove(u)
	}
	m.remove(e)
}

// alone reports whether no entry is inside except hold, which may be nil.
func (l *lock) alone(hold *entry) bool {
	if hold != nil && hold.holding {
		return l.taken == upgradablePermits
	}
	return l.taken == 0
}

func (l *lock) lastInside() *entry {
	if l.boundary != nil {
		return l.boundary.ahead
	}
	return l.last
}

// passed updates the request directly behind the new upgrade e, which now waits for e.
func (m *Machine) passed(e *entry) {
	if e.after != nil {
		m.touch(e.after)
		m.fire()
	}
}
