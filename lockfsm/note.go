package lockfsm

import (
	"slices"
	"strings"
)

func (m *Machine) noteGrant(e *entry) {
	what := Began
	if e.upgrades() {
		what = Upgraded
	}
	m.noteAll(e, what, 0)
}

func (m *Machine) noteEnd(e *entry) {
	cause := m.history.cause
	if cause == 0 {
		cause = Released
	}
	m.noteAll(e, Ended, cause)
}

func (m *Machine) noteLeft(e *entry, cause Cause) { m.noteAll(e, Left, cause) }

func (m *Machine) noteAll(e *entry, what EventKind, cause Cause) {
	how := m.history.how
	valued := what == Began || what == Upgraded || what == Valued
	if valued {
		how = nil
	}
	if v := e.value(); valued && len(v) > 0 {
		how = &How{Value: v}
	}
	if (e.extra == nil || e.extra.entries == nil) && e.mode != ModeIX { // the usual case
		m.note(e.part(), e, what, cause, how)
		return
	}
	e.eachPart(func(p Part) { m.note(p, e, what, cause, how) })
}

// noteModes notes how the parts of a hold have changed. A key that is now only above another one is
// no part any more.
func (m *Machine) noteModes(e *entry, before []Part) {
	place := func(all []Part, key string) (int, bool) {
		return slices.BinarySearchFunc(all, key, func(p Part, key string) int { return strings.Compare(p.Key, key) })
	}
	var after []Part
	e.eachPart(func(p Part) { after = append(after, p) })
	for _, p := range after {
		if i, was := place(before, p.Key); !was {
			m.note(p, e, Began, 0, nil)
		} else if before[i] != p {
			m.note(p, e, Lowered, 0, nil)
		}
	}
	for _, p := range before {
		if _, is := place(after, p.Key); !is {
			m.note(p, e, Ended, Released, nil)
		}
	}
}

func (m *Machine) noteData(l *lock, d Data) { m.note(Part{Key: l.key}, nil, Wrote, 0, &How{Data: d}) }

// noteLead adds an event about the leadership, which has no key and no hold.
func (m *Machine) noteLead(c *view) {
	m.bump()
	how := &How{By: copied(c.record), Reason: copied(c.value)}
	h := m.history.next()
	*h = loggedEvent{how: how, wallUnixMS: m.wallUnixMS, what: Moved}
	m.history.audit.add(m.history.event(h, m.history.past), party{})
}

// note adds an event about a part of e's request, or about the data of a key if e is nil.
func (m *Machine) note(p Part, e *entry, what EventKind, cause Cause, how *How) {
	h := m.history.next()
	h.key, h.mode, h.permits, h.of, h.tree = p.Key, p.Mode, p.Permits, p.Of, p.Tree
	h.how, h.wallUnixMS, h.what, h.cause, h.holder, h.token, h.reserved = how, m.wallUnixMS, what, cause, nil, 0, 0
	if e != nil {
		h.holder, h.token = e.session.eventHolder, e.token
	}
	if what == Began && e.stays() {
		h.reserved = uint32(e.stay().last - e.token)
	}
	if audited(cause, how) {
		m.history.audit.add(m.history.event(h, m.history.past), e.session.party())
	}
}
