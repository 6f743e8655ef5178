package lockfsm

import (
	"cmp"
	"slices"
	"strings"
)

// fire completes a command that removed entries or ended the grace. It grants the touched requests
// that need not wait any more. Then it ends the requests with Try that still wait and wait for no
// stay. If that touches further requests, it begins again. At last it appends all changed requests
// to Result.Fired.
func (m *Machine) fire() {
	if m.ripples.isCalm() {
		return // the usual case; visited is empty, too
	}
	m.grantTouched()
	for m.endTries() {
		m.grantTouched()
	}
	for _, e := range m.ripples.visitedInOrder() {
		if e.token == 0 {
			watch := m.watches(e)
			if watch == e.watch() {
				continue
			}
			e.mark = uint64(watch)
		}
		m.ripples.changed(e.change())
	}
	m.ripples.forgetVisited()
}

// grantTouched visits the touched requests in the order of their places. This order is part of the
// rules, because it determines the tokens.
func (m *Machine) grantTouched() {
	for _, e := range m.ripples.touchedInOrder() {
		if e.token != 0 {
			continue // already visited
		}
		if m.graceOver && m.stuck(e) == nil {
			m.grant(e)
		}
		m.ripples.visit(e)
	}
	m.ripples.forgetTouched()
}

// endTries ends the requests with Try that wait in the contested queues and do not wait only for
// stays. It reports whether it has visited one. It visits them in the order of their places. The
// end of one of them can make room for the next one, which then goes on. It can also leave only
// stays inside, for whose answers the others wait.
func (m *Machine) endTries() bool {
	var all []*entry
	for _, l := range m.ripples.contestedInOrder() {
		for e := l.boundary; e != nil && e.try && l.owned(); e = e.after {
			all = append(all, e)
		}
	}
	m.ripples.forgetContested()
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(byPlace(a, b), strings.Compare(a.lock.key, b.lock.key))
	})
	var blocker *entry // of the previous request; no end of a request changes it
	for _, e := range all {
		if e.lock != nil && !e.holding { // its lock is still owned, because only waiting requests have ended
			if blocker == nil || blocker.lock != e.lock || blocker.token == 0 || blocker.stays() {
				blocker = e.lock.blocker(nil, &m.effort)
			}
			m.endTry(e, blocker.describe())
		}
	}
	return len(all) > 0
}

// endTry ends the request of e, because e waits for the given holder.
func (m *Machine) endTry(e *entry, holder Holder) {
	holder.Waiters-- // e does not wait any more
	if e.places() > 1 {
		holder.Key = e.lock.key
	}
	m.ripples.end(Change{Session: e.session.id, Number: e.number, Held: &holder})
	m.remove(e.lead())
}

// watches returns the place of the entry that e's request waits for. It is the entry directly ahead
// of the request in the first queue in which the request must wait, but never the hold that the
// request upgrades. Zero means that only the grace delays the request.
func (m *Machine) watches(e *entry) Revision {
	stuck := m.stuck(e)
	switch {
	case stuck == nil:
		return 0
	case stuck.ahead == stuck.upgraded():
		return stuck.ahead.ahead.rev
	}
	return stuck.ahead.rev
}

// Of the entries of e's request, stuck returns the first one that is not inside, or nil. An entry
// stays inside until it is removed, so no entry is visited again after it was found inside.
func (m *Machine) stuck(e *entry) *entry {
	if e.extra == nil || e.extra.entries == nil {
		if m.visit(1); e.holding {
			return nil
		}
		return e
	}
	for x := e.extra; int(x.inside) < len(x.entries); x.inside++ {
		if m.visit(1); !x.entries[x.inside].holding {
			return x.entries[x.inside]
		}
	}
	return nil
}

func (m *Machine) grant(e *entry) {
	token := Token(m.bump())
	m.reserve(e)
	m.unsearched.drop(e)
	wanted := false
	for _, each := range e.all(new([1]*entry)) {
		m.grantOne(each, token)
		wanted = wanted || each.lock.boundary != nil
	}
	if e.notice && wanted {
		m.markNoticed(e)
		m.askFromBirth(e)
	}
	m.noteGrant(e)
}

// reserve reserves tokens for a sticky request that is being granted. It never lifts the revision
// above the ceiling. If no tokens can be reserved, the request is granted like one that is not
// sticky.
func (m *Machine) reserve(e *entry) {
	s := e.stay()
	switch {
	case s == nil:
	case m.reserveRevisions(StayTokens):
		s.last = Token(m.rev)
	default:
		e.lock.stays--
	}
}

func (m *Machine) grantOne(e *entry, token Token) {
	m.captures.lockChanges(e.lock)
	if e.linksBack() {
		e.lock.links--
	}
	m.digest.drop(e.hash())
	e.token, e.mark = token, uint64(m.wallUnixMS)
	m.digest.add(e.hash())
	e.session.held++
	e.lock.waiting--
	e.lock.held++
	if e.notice && !e.told {
		e.lock.notices++
	}
	e.lock.index.add(e)
	if b := e.lock.boundary; b != nil && b.try {
		m.ripples.contest(e.lock)
	}
	m.countGrant()
	if e.try {
		e.try = false
		e.lock.tries--
	}
}

func (m *Machine) endGrace() Code {
	if !m.passGrace() {
		return Done
	}
	for l := m.locks.first; l != nil; l = l.next {
		for e := l.first; e != l.boundary; e = e.after {
			m.ripples.touch(e)
		}
	}
	m.fire()
	return Done
}
