package lockfsm

import "strings"

// What happens to holds and data is told as events, which every replica numbers alike. The last
// ones are kept in memory, so that whoever watches can ask for those behind the one that he has
// seen: he misses none, or is told that he did. They are no state: a replica that is restored from
// a snapshot has none until more happens, but goes on counting. Those ends of holds that were not
// their holder's doing are state: a few are kept for people.

// Happening says what an event tells.
type Happening uint8

// The values travel to other instances: they are fixed, and new ones are added at the end.
const (
	// Began: a hold of Key began, with Token.
	Began Happening = 1
	// Ended: that hold is over, by Cause.
	Ended Happening = 2
	// Left: its holder is gone, by Cause, and it stays for its delay.
	Left Happening = 3
	// Wrote: the data of Key is now that of How; without a value there is none since its revision.
	Wrote Happening = 4
)

// Cause says why a hold ended.
type Cause uint8

// The causes. Their values are fixed like those of Happening.
const (
	// Released: its holder gave it back, or did not name it any more.
	Released Cause = 1
	// Expired: its session was not renewed in time, or a Detach has ended it for the Reason in How.
	Expired Cause = 2
	// Closed: its session was closed.
	Closed Cause = 3
	// Evicted: somebody ended it by force.
	Evicted Cause = 4
	// TakenUp: it goes on in another session.
	TakenUp Cause = 5
)

// Event is one thing that happened to one key. A request for several keys has one for each. Its
// slices are shared with the machine and never change.
type Event struct {
	// Position counts the events of a group, from its first revision on: they are dense, and a
	// later group's are higher.
	Position   uint64
	What       Happening
	Cause      Cause
	Key        string
	Token      Token
	Session    SessionID
	Record     []byte // of the session
	WallUnixMS int64  // the group's wall stamp; for people
	How        *How   // nil for most
}

// How is what few events have.
type How struct {
	By, Reason []byte // of an eviction; Reason alone of a Detach with a Value
	Data       Data
	Value      []byte // of a hold that began, as its request shows it
}

const (
	eventsKept = 8192
	endsKept   = 256
)

// recent is a ring: the event with number n, counted from 1 and from the first that was noted here,
// is at (n-1) % eventsKept. Every grant and every end is written here, on every replica, whether or
// not anybody watches: so they are small, and become Events when they are asked for.
type recent struct {
	events []happened
	from   uint64 // the number of the first one that was noted here, less one
}

type happened struct {
	key        string
	who        *who // nil: nobody's doing
	how        *How
	wallUnixMS int64
	token      Token
	what       Happening
	cause      Cause
}

// who is what an event tells of a session. It is apart from the session, which goes.
type who struct {
	id     SessionID
	record []byte // never changed, so results may share it
}

func (m *Machine) event(h *happened, number uint64) Event {
	e := Event{
		Position: m.position(number), What: h.what, Cause: h.cause, Key: h.key, Token: h.token,
		WallUnixMS: h.wallUnixMS, How: h.how,
	}
	if h.who != nil {
		e.Session, e.Record = h.who.id, h.who.record
	}
	return e
}

// because says why what is removed from now on ends, until the command is over.
func (m *Machine) because(c Cause, how *How) { m.cause, m.how = c, how }

func (m *Machine) noteGrant(e *entry) { m.noteAll(e, Began, 0) }

func (m *Machine) noteEnd(e *entry) {
	cause := m.cause
	if cause == 0 {
		cause = Released
	}
	m.noteAll(e, Ended, cause)
}

func (m *Machine) noteLeft(e *entry, cause Cause) { m.noteAll(e, Left, cause) }

func (m *Machine) noteAll(e *entry, what Happening, cause Cause) {
	how := m.how
	if what == Began {
		how = nil
	}
	if v := e.value(); what == Began && len(v) > 0 {
		how = &How{Value: v}
	}
	if e.rest == nil || e.rest.entries == nil {
		m.note(e.lock, e, what, cause, how)
		return
	}
	for _, each := range e.rest.entries {
		m.note(each.lock, each, what, cause, how)
	}
}

func (m *Machine) noteData(l *lock, d Data) { m.note(l, nil, Wrote, 0, &How{Data: d}) }

// note writes an event down: of an entry, or if that is nil of a lock's data.
func (m *Machine) note(l *lock, e *entry, what Happening, cause Cause, how *How) {
	h := m.recent.next(m.past)
	m.past++
	h.key, h.how, h.wallUnixMS, h.what, h.cause, h.who, h.token = l.key, how, m.wallUnixMS, what, cause, nil, 0
	if e != nil {
		h.who, h.token = e.session.who, e.token
	}
	if cause == Expired || cause == Evicted {
		m.ends.add(m.event(h, m.past))
	}
}

// next returns the place of the event behind so many.
func (r *recent) next(past uint64) *happened {
	if len(r.events) == 0 {
		r.from = past
	}
	at := past - r.from
	if at < eventsKept {
		r.events = append(r.events, happened{})
	}
	return &r.events[at%eventsKept]
}

func (m *Machine) position(number uint64) uint64 { return uint64(m.charter.firstRevision()) + number }

// Position returns that of the last event.
func (m *Machine) Position() uint64 { return m.position(m.past) }

// Since returns the events behind a position whose keys begin with prefix, at most so many, and the
// position up to which it has looked. It reports false if it does not know any more what came right
// behind the position, or the position is of another group.
func (m *Machine) Since(after uint64, prefix string, most int) (events []Event, upTo uint64, ok bool) {
	first := m.position(0)
	r := &m.recent
	kept := uint64(len(r.events))
	if after < first || after-first > m.past || after-first < m.past-kept {
		return nil, after, false
	}
	for number := after - first + 1; number <= m.past; number++ {
		if len(events) == most {
			return events, m.position(number - 1), true
		}
		if h := &r.events[(number-1-r.from)%eventsKept]; strings.HasPrefix(h.key, prefix) {
			events = append(events, m.event(h, number))
		}
	}
	return events, m.Position(), true
}

// ends are the last events that tell the end of a hold, or of its holder, that was not the holder's
// doing. It is a ring, too.
type ends struct {
	events []Event
	oldest int
}

func (r *ends) add(e Event) {
	if len(r.events) < endsKept {
		r.events = append(r.events, e)
		return
	}
	r.events[r.oldest] = e
	r.oldest = (r.oldest + 1) % endsKept
}

// Ends returns the last events, the oldest first, that tell the end of a hold, or of its holder, by
// force or because his session expired.
func (m *Machine) Ends() []Event {
	return append(append([]Event(nil), m.ends.events[m.ends.oldest:]...), m.ends.events[:m.ends.oldest]...)
}
