package keeper

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

const (
	tickEvery      = 100 * time.Millisecond // the shortest time between two checks of the deadlines
	watchBefore    = time.Second            // how long before a deadline the frequent checks begin
	expiresPerBlob = 4096
)

// Ending is the end of a session by Expire. The zero values of all fields but Session mean that its
// TTL has passed.
type Ending struct {
	Session lockfsm.SessionID
	// Cause is lockfsm.Revoked or lockfsm.Superseded. The events have it, with By and Reason.
	Cause      lockfsm.Cause
	By, Reason []byte
	// Number is returned in the result of the Expire. Zero means that no question waits for it.
	Number lockfsm.Number
}

func (e *Ending) command(term uint64) lockfsm.Command {
	return lockfsm.Command{Kind: lockfsm.Expire, Session: e.Session, Term: term, Number: e.Number, Cause: e.Cause,
		Record: e.By, Value: e.Reason}
}

// leases are the sessions of the applied state, and which of them expire. Each time that its
// methods get is on the clock of deadlines, see Core.elapsed.
type leases struct {
	sessions map[lockfsm.SessionID]*keptSession
	entering entering // sessions that are not in the map yet
	opened   openers
	expiries expiryHeap
	left     bool // some deadlines are left for the next turn
	due      []Ending
	proposed int // how many of due the last batch contains
	expiring int
}

func newLeases() leases {
	return leases{sessions: make(map[lockfsm.SessionID]*keptSession), opened: newOpeners()}
}

// begin adds all sessions that exist when the leadership begins. Each gets its full TTL.
func (l *leases) begin(sessions []lockfsm.SessionInfo, now clock.Time) {
	l.entering.begin(sessions, now)
	l.expiries = make(expiryHeap, 0, len(sessions)) // growing the heap would copy the whole heap in one turn
}

func (l *leases) enter(place int) { l.keep(l.entering.enter(place), l.entering.since) }

func (l *leases) session(id lockfsm.SessionID) *keptSession {
	if place, found := l.entering.at(id); found {
		l.enter(place)
	}
	return l.sessions[id]
}

func (l *leases) count() int { return len(l.sessions) + l.entering.left }

// keep adds a session, whose full TTL counts from the given time.
func (l *leases) keep(info *lockfsm.SessionInfo, from clock.Time) {
	opener := info.Opener
	if info.Gone {
		opener = lockfsm.Opener{} // no client can attach to it
	}
	s := &keptSession{
		id: info.ID, opener: opener, life: info.Life, nonce: info.Nonce, epoch: info.Epoch,
		ttl: info.TTL, deadline: from.Add(info.TTL), heard: from,
	}
	l.sessions[s.id] = s
	l.opened.add(s)
	l.expiries.push(expiry{at: s.deadline, session: s.id})
}

// keepGone adds an ended session whose remaining holds expire after ttl. No client can attach to
// it.
func (l *leases) keepGone(id lockfsm.SessionID, ttl time.Duration, now clock.Time) {
	l.keep(&lockfsm.SessionInfo{ID: id, TTL: ttl, Gone: true}, now)
}

func (l *leases) forget(id lockfsm.SessionID) {
	s := l.session(id)
	if s == nil {
		return
	}
	if s.expiring {
		l.expiring--
	}
	l.opened.drop(s)
	delete(l.sessions, id)
}

// expire decides which sessions expire. A session does not expire while one of its renewals waits
// for confirmation, which renewing reports. The budget limits the number of deadlines that are
// checked. If some are left, the next turn follows immediately.
func (l *leases) expire(now clock.Time, budget int, renewing func(lockfsm.SessionID) bool) {
	l.left = false
	for ; len(l.expiries) > 0 && !now.Add(watchBefore).Before(l.expiries[0].at); budget-- {
		if budget == 0 {
			l.left = true
			return
		}
		due := l.expiries[0]
		s := l.sessions[due.session]
		switch {
		case s == nil || s.expiring:
			l.expiries.pop()
			continue
		case due.at.Before(s.deadline):
			l.expiries.pop()
			l.expiries.push(expiry{at: s.deadline, session: s.id})
			continue
		case now.Before(due.at):
			return
		}
		l.expiries.pop()
		if renewing(s.id) {
			l.expiries.push(expiry{at: now.Add(tickEvery), session: s.id})
			continue
		}
		s.expiring = true
		l.expiring++
		l.due = append(l.due, Ending{Session: s.id})
	}
}

// end decides the end of a session whose TTL has not passed. It marks the session, so that no
// renewal is acknowledged from now on, and that no second Expire follows when the TTL has passed:
// it would find a gone session, and cut the delays of its holds short. A session that is gone
// already, which has no nonce, is not marked, because its delays are still to be measured.
func (l *leases) end(e Ending) {
	if s := l.session(e.Session); s != nil && !s.expiring && s.nonce != (lockfsm.Nonce{}) {
		s.expiring = true
		l.expiring++
	}
	l.due = append(l.due, e)
}

// append adds the Expires that are due.
func (l *leases) append(blob []byte, term uint64) []byte {
	l.proposed = min(len(l.due), expiresPerBlob)
	for i := range l.due[:l.proposed] {
		blob = l.due[i].command(term).Append(blob)
	}
	return blob
}

// accepted is called when the log has accepted the Expires of append.
func (l *leases) accepted() { l.due = slices.Delete(l.due, 0, l.proposed) }
