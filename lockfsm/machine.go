package lockfsm

import "fmt"

// Machine is the state of one group and the rules by which it changes. It is not safe for
// concurrent use: its owner calls it.
type Machine struct {
	charter   Charter // Rules, SessionTTL and Settings are those in force
	supported uint32  // RulesVersion; tests stand in for later builds, and for earlier ones
	born      bool
	graceOver bool

	rev        Revision // the last one taken
	wallUnixMS int64    // the largest wall stamp met, at first the founding time

	sessions                  map[SessionID]*session
	nonces                    map[Nonce]*session
	firstSession, lastSession *session // ascending by ID
	locks                     map[string]*lock
	firstLock, lastLock       *lock // in the order in which the names appeared
	counts                    Counts

	data int    // how many locks have some
	bulk uint64 // charges that the counts do not give: see charged
	past uint64 // how many events there were
	ends ends

	laterState //lint:ignore U1000 see there

	failed error

	// What follows is no state: it belongs to captures, lives for one command, or saves an
	// allocation.
	capture   *Capture // the one that is under way, or nil
	captures  uint32   // how many were begun
	lastPlace uint64   // the last one that a lock got
	touched   []*entry
	fired     []Change
	states    []Change
	result    Result // of ApplyEntry: a Result is large, and would be copied on its way
	holder    Holder
	evicted   Eviction
	circle    []Link
	recent    recent
	cause     Cause // of ends, while a command is carried out
	how       *How
	spares
}

// Counts says how much of everything there is.
type Counts struct{ Sessions, Locks, Entries, Waiters int }

// New returns the machine of a group that is not born yet. The error names everything that is wrong
// with the charter; it is ErrRules (wrapped) if the charter's rules are too new for this build.
func New(c Charter) (*Machine, error) { return newMachine(c, RulesVersion) }

func newMachine(c Charter, supported uint32) (*Machine, error) {
	if err := c.validate(supported); err != nil {
		return nil, err
	}
	c.Settings = copied(c.Settings)
	return &Machine{
		charter: c, supported: supported, rev: c.firstRevision(), wallUnixMS: c.FoundedUnixMS,
		sessions: map[SessionID]*session{}, nonces: map[Nonce]*session{},
		locks: map[string]*lock{}, lastPlace: placesOfLocks,
	}, nil
}

// Apply carries out one command, as [Next] returns it, of the log entry at index of term. It is
// total: every input has a result, none panics, and on equal states equal inputs have equal results
// and lead to equal states. The index is only mentioned in errors. The command may be changed after
// the call.
func (m *Machine) Apply(index, term uint64, command []byte) Result {
	var res Result
	m.apply(index, term, command, &res)
	return res
}

// apply is Apply with a zero result to be filled in.
func (m *Machine) apply(index, term uint64, command []byte, res *Result) {
	m.fired, m.states = emptied(m.fired), emptied(m.states)
	m.because(0, nil)
	r := reader{b: command}
	var c view
	r.header(&c.Header)
	if r.fault != "" {
		res.Code = Malformed
		return
	}
	res.Kind, res.Session, res.Epoch, res.Number = c.Kind, c.Session, c.Epoch, c.Number
	if m.rev > maxRevision-revisionReserve && m.failed == nil {
		m.failed = fmt.Errorf("%w at entry %d: recover the group under a new charter", ErrRevisions, index)
	}
	// The rules version comes before everything else: what a later version means by the bytes
	// behind the header, or by the kind, is not ours to judge, and older and newer builds must give
	// the same answer.
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
	if len(m.states) > 0 {
		res.States = m.states
	}
	if len(m.fired) > 0 {
		res.Fired = m.fired
	}
}

func (m *Machine) dispatch(index, term uint64, c *view, res *Result) {
	switch c.Kind {
	case Stamp:
		res.Code = m.stamp(c)
	case Born:
		res.Code = m.bear()
	case EndGrace:
		res.Code = m.endGrace()
	case Raise:
		res.Code = m.raise(index, c)
	case Open:
		m.open(c, res)
	case Attach:
		res.Code = m.attach(c)
	case Leaving:
		res.Code = m.leaving(c)
	case Close:
		res.Code = m.close(c)
	case Expire:
		m.expire(term, c, res)
	case Acquire:
		m.acquire(c, res)
	case Release, Cancel:
		res.Code = m.release(c)
	case Detach:
		res.Code = m.detach(c, res)
	case Adopt:
		res.Code = m.adopt(c)
	case Evict:
		m.evict(c, res)
	case Put:
		m.put(c, res)
	default:
		res.Code = m.later(c)
	}
}

// ApplyEntry applies all commands of one log entry in their order and hands each result to each, if
// each is not nil. Where the bytes stop being commands, one Malformed result stands for the rest.
// What each keeps of a result, or changes of it, it must copy.
func (m *Machine) ApplyEntry(index, term uint64, batch []byte, each func(*Result)) {
	for len(batch) > 0 {
		command, rest, err := Next(batch)
		m.result = Result{}
		if err == nil {
			m.apply(index, term, command, &m.result)
		} else {
			m.result.Code = Malformed
		}
		if each != nil {
			each(&m.result)
		}
		batch = rest
	}
}

// bump takes the next revision.
func (m *Machine) bump() Revision {
	m.rev++
	return m.rev
}

// Failed returns nil, or why this replica can no longer follow the log: it met a rules version that
// this build does not know (ErrRules, wrapped), or ran out of revisions. From then on it refuses
// every command, and the node must retire.
func (m *Machine) Failed() error { return m.failed }

// Charter returns the charter, with the rules version, the TTL and the settings that are in force
// now.
func (m *Machine) Charter() Charter { return m.charter }

// Born reports whether the group is founded.
func (m *Machine) Born() bool { return m.born }

// GraceOver reports whether locks are granted.
func (m *Machine) GraceOver() bool { return m.graceOver }

// Counts returns the number of sessions, of locks, of entries in them, and of those entries that
// wait.
func (m *Machine) Counts() Counts { return m.counts }
