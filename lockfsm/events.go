package lockfsm

import "slices"

// The machine keeps the latest events in memory. A watcher gets either all events after a position
// or an error. The kept events are not replicated: a restored replica begins without events, but
// continues the count. The audit log is replicated.

// EventKind is the kind of an event.
type EventKind uint8

// The values are sent to other instances and never change.
const (
	// Began: a hold of Key began, with Token.
	Began EventKind = 1
	// Ended: the hold of Key with Token ended, because of Cause.
	Ended EventKind = 2
	// Left: the hold lost its holder because of Cause, and stays for its delay.
	Left EventKind = 3
	// Wrote: the data of Key is now How.Data. If How.Data has no value, the data was removed, and
	// How.Data.Revision is the revision of the removal.
	Wrote EventKind = 4
	// Valued: the value of the hold of Key with Token is now How.Value.
	Valued EventKind = 5
	// Lowered: the hold of Key with Token now has the Mode of the event, which excludes less.
	Lowered EventKind = 6
	// Upgraded: a hold of Key began, with Token, that upgrades the upgradable hold of Key. The
	// upgradable hold goes on.
	Upgraded EventKind = 7
	// Moved: an operator had the leadership moved. The event is only in the audit log. It has no key
	// and no hold, and no Cause.
	Moved EventKind = 8
)

// Event is one change of one key. A change of a request for several keys is one event for each of
// its parts, see [Part]. The slices of an Event never change.
type Event struct {
	// Position is the number of the event. The positions of a group begin at its first revision and
	// have no gaps.
	Position   uint64
	What       EventKind
	Cause      Cause
	Part       // of the hold, after the event; only Key for Wrote
	Token      Token
	Last       Token // the last token that a stay has reserved, in Began; zero means no stay
	Session    SessionID
	Record     []byte
	WallUnixMS int64 // the group's wall stamp, for display only
	How        *How  // nil for most events
}

// How has the fields that only some events have.
type How struct {
	// By and Reason are set by an eviction, by a Lead, and by an Expire with a Cause. A Detach with a
	// Value and a Lapse set only Reason, and a resumption only By.
	By, Reason []byte
	Data       Data
	Value      []byte // the Value of the request, in Began and Valued
}

const (
	eventsKept = 8192
	// eventsSearched bounds the work of one question about events, most of which may be of keys that
	// its asker does not watch.
	eventsSearched = 2048
	endsKept       = 256
)

// history has the events of a group.
type history struct {
	first  uint64 // the position of a group without events
	past   uint64 // the number of all events of the group
	audit  auditLog
	events eventLog
	// the reason of the ends in the present command; zero means Released
	cause Cause
	how   *How
}

func (h *history) setCause(c Cause, how *How) { h.cause, h.how = c, how }

func (h *history) position(number uint64) uint64 { return h.first + number }

// next returns the next event, to fill.
func (h *history) next() *loggedEvent {
	e := h.events.next(h.past)
	h.past++
	return e
}

// restored sets the number of the events that a snapshot has counted.
func (h *history) restored(past uint64) { h.past = past }

// eventLog is a ring buffer. Event n, counted from 1, is at index (n-1-from) % eventsKept.
type eventLog struct {
	events []loggedEvent
	from   uint64 // the number of events of the group before this log began
}

// loggedEvent has the size of a cache line.
type loggedEvent struct {
	key         string
	holder      *eventHolder // nil for data
	how         *How
	wallUnixMS  int64
	token       Token
	reserved    uint32 // by a stay, after token
	permits, of uint32
	mode        Mode
	tree        bool
	what        EventKind
	cause       Cause
}

func (h *loggedEvent) part() Part {
	return Part{Key: h.key, Mode: h.mode, Permits: h.permits, Of: h.of, Tree: h.tree}
}

func (r *history) event(h *loggedEvent, number uint64) Event {
	e := Event{
		Position: r.position(number), What: h.what, Cause: h.cause, Part: h.part(), Token: h.token,
		WallUnixMS: h.wallUnixMS, How: h.how,
	}
	if h.reserved > 0 {
		e.Last = h.token + Token(h.reserved)
	}
	if h.holder != nil {
		e.Session, e.Record = h.holder.id, h.holder.record
	}
	return e
}

func (r *eventLog) next(past uint64) *loggedEvent {
	if len(r.events) == 0 {
		r.from = past
	}
	at := past - r.from
	if at < eventsKept {
		r.events = append(r.events, loggedEvent{})
	}
	return &r.events[at%eventsKept]
}

// Position returns the position of the last event.
func (m *Machine) Position() uint64 { return m.history.position(m.history.past) }

// Since returns the first events of keys after the position `after` whose keys begin with one of
// the prefixes. It returns at most `most` events, and searches at most eventsSearched. upTo is the
// last searched position. ok is false if the next event is no longer in the log, or if the position
// is not of this group.
func (m *Machine) Since(after uint64, of Prefixes, most int) (events []Event, upTo uint64, ok bool) {
	first := m.history.position(0)
	r := &m.history.events
	kept := uint64(len(r.events))
	if after < first || after-first > m.history.past || after-first < m.history.past-kept {
		return nil, after, false
	}
	for number := after - first + 1; number <= m.history.past; number++ {
		if len(events) == most || number-(after-first) > eventsSearched {
			return events, m.history.position(number - 1), true
		}
		m.visit(1)
		if h := &r.events[(number-1-r.from)%eventsKept]; of.Cover(h.key) && h.what != Moved {
			events = append(events, m.history.event(h, number))
		}
	}
	return events, m.Position(), true
}

// audited reports whether the audit log has an event: an expiry for any cause, an eviction, or the
// resumption of the hold of a session that is not gone.
func audited(cause Cause, how *How) bool {
	return cause == Expired || cause == Evicted || early(cause) || cause == Resumed && how != nil
}

// audits reports whether the audit log can have the event.
func (e *Event) audits() bool {
	if e.What == Moved {
		return e.Cause == 0 && e.How != nil
	}
	return audited(e.Cause, e.How) && e.explained() && (e.What == Ended || e.What == Left)
}

// explained reports whether the field How of an event in the audit log is valid: an eviction and an
// Expire with a Cause have it, a resumption has no Reason, and an expiry has it with a Reason and
// no By, or not at all.
func (e *Event) explained() bool {
	switch {
	case e.Cause == Evicted || early(e.Cause):
		return e.How != nil
	case e.Cause == Resumed:
		return e.What == Ended && len(e.How.Reason) == 0
	}
	return e.How == nil || len(e.How.By) == 0 && len(e.How.Reason) > 0
}

// party is the capability under whose sessions an audited hold was. Holds of sessions without
// rights are of the party zero. A detached hold no longer has an opener, and is of the party
// detached.
type party [32]byte

func detached() party { return party{0xff} }

// In a snapshot, a byte says whether a party is zero, detached, or one whose 32 bytes follow.
const (
	zeroParty     = 0
	detachedParty = 1
	otherParty    = 2
)

func (p *party) append(b []byte) []byte {
	switch *p {
	case party{}:
		return append(b, zeroParty)
	case detached():
		return append(b, detachedParty)
	}
	return append(append(b, otherParty), p[:]...)
}

func (r *reader) party() (p party) {
	switch r.flags(0xff, "party") {
	case zeroParty:
	case detachedParty:
		p = detached()
	case otherParty:
		if copy(p[:], r.bytes(uint64(len(p)), "party")); p == (party{}) || p == detached() {
			r.fail("party")
		}
	default:
		r.fail("party")
	}
	return p
}

type auditLog struct {
	ends  []auditEnd     // the oldest first
	parts map[party]*int // how many of them each party has
}

type auditEnd struct {
	event Event
	of    party
	part  *int // of its party in parts, because a search looks at all of them
}

// add adds an event. In a full log it replaces the oldest event of the party that has most of them.
// So events of one party replace those of another only while the other has more of them.
func (r *auditLog) add(e Event, of party) {
	if r.parts == nil {
		r.parts = map[party]*int{}
	}
	ends := r.parts[of]
	if ends == nil {
		ends = new(int)
		r.parts[of] = ends
	}
	if *ends++; len(r.ends) == endsKept {
		r.remove(r.largest())
	}
	r.ends = append(r.ends, auditEnd{e, of, ends})
}

// largest returns the index of the oldest event of the largest party, which counts the event that
// is being added. If two parties have the same size, it takes the one with the older event.
func (r *auditLog) largest() (at int) {
	if len(r.parts) == 1 {
		return 0
	}
	for i := range r.ends {
		if *r.ends[i].part > *r.ends[at].part {
			at = i
		}
	}
	return at
}

// has reports whether the log has an event with the token.
func (r *auditLog) has(token Token) bool {
	return slices.ContainsFunc(r.ends, func(end auditEnd) bool { return end.event.Token == token })
}

// forced returns the events in which a hold of a session that goes on was taken from it: one event
// for each hold, although a hold of several keys has one for each key.
func (r *auditLog) forced(of SessionID) (all []Event) {
	for i := range r.ends {
		e := &r.ends[i].event
		taken := e.Session == of && (e.Cause == Evicted || e.Cause == Resumed)
		if taken && (len(all) == 0 || all[len(all)-1].Token != e.Token) {
			all = append(all, *e)
		}
	}
	return all
}

func (r *auditLog) remove(at int) {
	end := &r.ends[at]
	if *end.part--; *end.part == 0 {
		delete(r.parts, end.of)
	}
	r.ends = slices.Delete(r.ends, at, at+1)
}

// Ends returns the audit log, the oldest event first: the last 256 holds that ended, or lost their
// holder, by force or by expiry, or that another session resumed although theirs was not gone, and
// moves of the leadership by an operator, which are of the sessions without a capability. Each
// capability has a part of the log: when it is full, a further event replaces the oldest one of the
// capability that has the most events.
func (m *Machine) Ends() []Event {
	all := make([]Event, 0, len(m.history.audit.ends))
	for i := range m.history.audit.ends {
		all = append(all, m.history.audit.ends[i].event)
	}
	return all
}

// eventHolder is separate from its session, because events can outlive the session.
type eventHolder struct {
	id     SessionID
	record []byte // never changed, so results may share it
}
