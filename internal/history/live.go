package history

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// live contains the requests of a replica. The end of a request or of a session visits only its own
// requests, because it happens on the goroutine that applies the log.
type live struct {
	sessions map[lockfsm.SessionID]map[lockfsm.Number]holding
	raised   map[lockfsm.Token]request // upgrades, by the token of their holds
}

func newLive() live {
	return live{map[lockfsm.SessionID]map[lockfsm.Number]holding{}, map[lockfsm.Token]request{}}
}

func (l *live) get(q request) (h holding, known bool) {
	h, known = l.sessions[q.session][q.number]
	return h, known
}

func (l *live) set(q request, h holding) {
	of := l.sessions[q.session]
	if of == nil {
		of = map[lockfsm.Number]holding{}
		l.sessions[q.session] = of
	}
	of[q.number] = h
	if h.upgrades != 0 {
		l.raised[h.upgrades] = q
	}
}

func (l *live) remove(q request) {
	of := l.sessions[q.session]
	if h := of[q.number]; h.upgrades != 0 && l.raised[h.upgrades] == q {
		delete(l.raised, h.upgrades)
	}
	if delete(of, q.number); len(of) == 0 {
		delete(l.sessions, q.session)
	}
}

// upgradeOf returns the upgrade of the hold with a token.
func (l *live) upgradeOf(token lockfsm.Token) (q request, h holding, known bool) {
	if q, known = l.raised[token]; known {
		h, known = l.get(q)
	}
	return q, h, known
}

// of returns the numbers of a session's requests, ascending.
func (l *live) of(session lockfsm.SessionID) (numbers []lockfsm.Number) {
	for n := range l.sessions[session] {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

type request struct {
	session lockfsm.SessionID
	number  lockfsm.Number
}

type holding struct {
	key         string
	keys        []string
	permits, of uint32
	modes       string
	place       lockfsm.Revision
	token, last lockfsm.Token
	sticky      bool          // false if the account began while the request waited
	upgrades    lockfsm.Token // of an upgrade, the token of its hold
}
