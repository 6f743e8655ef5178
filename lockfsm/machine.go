package lockfsm

import "fmt"

// Machine is the state of one group and the rules by which it changes. It is not safe for
// concurrent use.
type Machine struct {
	charter   Charter
	supported uint32
	born      bool
	graceOver bool

	rev        Revision // the last revision taken
	wallUnixMS int64    // the largest wall stamp applied; at first the founding time

	sessions                  map[SessionID]*session
	nonces                    map[Nonce]*session
	firstSession, lastSession *session // ascending by ID
	rights                    rightsTable
	locks                     map[string]*lock
	firstLock, lastLock       *lock // in the order in which they were created
	counts                    Counts

	data  int
	bulk  uint64 // charges that do not follow from the counts; see charged
	past  uint64
	audit auditLog
	chain uint64 // see digest.go

	laterState //lint:ignore U1000 see there

	failed error
	sticky int // the number of sticky entries

	// The following fields are not in a snapshot.
	recent    *session // the session of the last command that changed its requests
	sum       uint64   // see digest.go
	folded    Revision // the revision after the last command in chain
	capture   *Capture
	captures  uint32
	lastPlace uint64
	touched   []*entry
	visited   []*entry
	contested []*lock // locks that were granted while requests with Try waited
	fired     []Change
	states    []Change
	ended     []Change // requests with Try that have ended
	result    Result
	holder    Holder
	evicted   Eviction
	circle    []Link
	events    eventLog
	visits    int    // the entries that commands have visited, for tests
	indexFrom uint32 // the number of inside entries from which a lock has an index
	// the bounds of the searches for deadlocks in an Acquire; equal on every replica
	walkVisits, permitVisits int

	unsearched
	cause Cause
	how   *How
	spares
}

// Counts is the size of the state.
type Counts struct{ Sessions, Locks, Entries, Waiters int }

// New returns the machine of a group that is not founded yet. The error lists everything that is
// wrong with the charter. It wraps ErrRules if the charter's rules are too new for this build.
func New(c Charter) (*Machine, error) { return newMachine(c, RulesVersion) }

func newMachine(c Charter, supported uint32) (*Machine, error) {
	if err := c.validate(supported); err != nil {
		return nil, err
	}
	c.Settings = copied(c.Settings)
	return &Machine{
		charter: c, supported: supported, rev: c.firstRevision(), folded: c.firstRevision(),
		wallUnixMS: c.FoundedUnixMS,
		sessions:   map[SessionID]*session{}, nonces: map[Nonce]*session{},
		rights: rightsTable{}, locks: map[string]*lock{}, lastPlace: placesOfLocks, indexFrom: indexFrom,
		walkVisits: walkVisits, permitVisits: permitVisits,
	}, nil
}

// Apply executes one command, as [Next] returns it. index and term are those of its log entry.
// Apply returns a result for every input and never panics. The caller may change the command after
// the call.
func (m *Machine) Apply(index, term uint64, command []byte) Result {
	var res Result
	m.apply(index, term, command, &res)
	m.fold(command, &res)
	return res
}

// apply is like Apply, but writes the result to res, which must be zero.
func (m *Machine) apply(index, term uint64, command []byte, res *Result) {
	m.fired, m.states, m.ended = emptied(m.fired), emptied(m.states), emptied(m.ended)
	m.setCause(0, nil)
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
	// Check the version before the other fields are read, because a later version may have changed
	// them. All builds must return the same result.
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
	m.fired = append(m.fired, m.ended...)
	if len(m.fired) > 0 {
		res.Fired = m.fired
	}
}

func (m *Machine) dispatch(index, term uint64, c *view, res *Result) {
	switch c.Kind {
	case Stamp:
		res.Code = m.stamp(c)
	case Born:
		res.Code = m.applyBorn()
	case EndGrace:
		res.Code = m.endGrace()
	case Raise:
		res.Code = m.raise(index, c)
	case Open:
		m.open(c, res)
	case Attach:
		m.attach(c, res)
	case Leaving:
		res.Code = m.leaving(c)
	case Close:
		res.Code = m.close(c)
	case Expire:
		m.expire(term, c, res)
	case Acquire:
		m.acquire(c, res)
	case Release, Cancel, Downgrade:
		res.Code = m.release(c)
	case Detach:
		res.Code = m.detach(c, res)
	case Adopt:
		res.Code = m.adopt(c)
	case Evict:
		m.evict(c, res)
	case Put:
		m.put(c, res)
	case InUse:
		res.Code = m.inUse(c)
	case Lapse:
		res.Code = m.lapse(c)
	case SetValue:
		m.setValue(c, res)
	case Reserve:
		m.takeRevisions(c, res)
	case Refuse:
		m.refuseLater(c, res)
	default:
		res.Code = m.later(c)
	}
}

// ApplyEntry applies all commands of one log entry in order. If the argument each is not nil,
// ApplyEntry calls that function with every result. The function must copy what it keeps or
// changes. If the rest of the batch cannot be split into commands, the function gets one
// Malformed result for that rest.
func (m *Machine) ApplyEntry(index, term uint64, batch []byte, each func(*Result)) {
	for len(batch) > 0 {
		command, rest, err := Next(batch)
		m.result = Result{}
		if err == nil {
			m.apply(index, term, command, &m.result)
		} else {
			m.result.Code = Malformed
		}
		m.fold(command, &m.result)
		if each != nil {
			each(&m.result)
		}
		batch = rest
	}
}

func (m *Machine) bump() Revision {
	m.rev++
	return m.rev
}

// Failed returns the reason why this replica can no longer follow the log, or nil. The error wraps
// ErrRules if a Raise named a version that this build does not have, and ErrRevisions if the
// revisions are used up. The node of a failed machine must retire.
func (m *Machine) Failed() error { return m.failed }

// Charter returns the charter with the changes that Adopt and Raise made.
func (m *Machine) Charter() Charter { return m.charter }

// Born reports whether the group is founded.
func (m *Machine) Born() bool { return m.born }

// GraceOver reports whether the grace is over. The machine grants locks only after the grace.
func (m *Machine) GraceOver() bool { return m.graceOver }

// Counts returns the size of the state.
func (m *Machine) Counts() Counts { return m.counts }
