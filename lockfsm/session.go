package lockfsm

import (
	"container/list"
	"time"

	"github.com/mortise-lock/mortise/internal/numbered"
)

// session is the session of one opener.
type session struct {
	*eventHolder
	nonce       Nonce
	opener      Opener
	life        uint64
	rights      *sharedRights // nil for a full instance
	epoch       Epoch
	next        Number        // every number below it is live or finished; starts at 1
	ttl         time.Duration // for a gone session: the delay that the leader measures now
	leaving     bool
	gone        bool                     // it has expired; only holds with a delay remain
	requests    numbered.Table[entry]    // the lead entries
	owned       numbered.Table[siblings] // requests by their owner
	unsearched  sessionSearches
	entries     uint32
	held        uint32 // the number of keys that it holds
	charged     uint64
	seen        uint32
	prev, after *session
}

// sessionSearches are the unsearched requests of one session.
type sessionSearches struct {
	at       *list.Element // of the session in unsearched; nil if it has no such request
	requests list.List
}

func (s *session) info() SessionInfo {
	if s.gone {
		return SessionInfo{ID: s.id, Epoch: s.epoch, TTL: s.ttl, Leaving: s.leaving, Record: s.record,
			Opener: s.opener, Life: s.life, Gone: true}
	}
	return SessionInfo{ID: s.id, Nonce: s.nonce, Epoch: s.epoch, TTL: s.ttl, Leaving: s.leaving, Record: s.record,
		Opener: s.opener, Life: s.life}
}

func (s *session) join(e *entry) {
	s.index(e)
	s.count(e, 1)
	s.own(e)
	e.connect(1)
}

func (s *session) leave(e *entry) {
	e.connect(-1)
	s.disown(e)
	s.requests.Delete(uint64(e.number))
	s.count(e, -1)
}

// request returns the request with the number, or nil.
func (s *session) request(n Number) *entry { return s.requests.Get(uint64(n)) }

// firstRequest returns the request with the lowest number, or nil.
func (s *session) firstRequest() *entry { return s.requests.First() }

// requestAfter returns the request with the next number after n, or nil.
func (s *session) requestAfter(n Number) *entry { return s.requests.After(uint64(n)) }

func (s *session) index(e *entry) { s.requests.Put(uint64(e.number), e) }

// count counts the keys of a request, or uncounts them with by -1.
func (s *session) count(e *entry, by int) {
	s.entries += uint32(by) * e.places()
	if e.token != 0 { // with by 1, it was restored from a snapshot, or moved from another session
		s.held += uint32(by) * e.places()
	}
}

// siblings is the list of a session's requests with the same owner, in ascending order of number.
// An upgrade with Inner is listed for that request instead, because its owner finds it in the
// queue.
type siblings struct{ first, last *entry }

func (s *session) own(e *entry) {
	if e.extra == nil || e.extra.owner == 0 {
		return
	}
	of := uint64(e.extra.listedFor())
	all := s.owned.Get(of)
	if all == nil {
		all = &siblings{}
		s.owned.Put(of, all)
	}
	if e.extra.elder = all.last; all.first == nil {
		all.first = e
		e.ownsFirst(1)
	} else {
		all.last.extra.younger = e
	}
	all.last = e
}

// under returns the requests that are listed for the one with the number.
func (s *session) under(n Number) siblings {
	if all := s.owned.Get(uint64(n)); all != nil {
		return *all
	}
	return siblings{}
}

func (s *session) disown(e *entry) {
	if e.extra == nil || e.extra.owner == 0 {
		return
	}
	x := e.extra
	of := uint64(x.listedFor())
	all := s.owned.Get(of)
	if x.elder == nil {
		all.first = x.younger
	} else {
		x.elder.extra.younger = x.younger
	}
	if x.younger == nil {
		all.last = x.elder
	} else {
		x.younger.extra.elder = x.elder
	}
	if x.elder, x.younger = nil, nil; all.first == nil {
		s.owned.Delete(of)
		e.ownsFirst(-1)
	}
}

func (s *session) delay() time.Duration {
	shortest := MaxDelay
	for e := range s.requests.All() {
		shortest = min(shortest, e.delay())
	}
	return shortest
}

func (s *session) party() party {
	if s.gone && s.opener == (Opener{}) {
		return detached()
	}
	return party(s.opener.Capability)
}

func (s *session) hash() uint64 { return mixed(uint64(s.id), hash2) }

// SessionInfo describes a session to the leader and to operators.
type SessionInfo struct {
	ID     SessionID
	Nonce  Nonce
	Opener Opener `json:"-"` // the only opener that may use the session
	// Life says which start of Opener.Instance has opened the session: starts with one directory are
	// numbered. It is zero for a hold that was detached.
	Life    uint64 `json:"-"`
	Epoch   Epoch
	TTL     time.Duration
	Leaving bool
	// Gone reports that the session has expired and accepts no commands. Its remaining locks stay
	// taken for TTL, or for their own delay if it is longer. The Nonce of a gone session is zero.
	Gone bool
	// Record is shared with the machine and must not be changed. It stays valid.
	Record []byte

	// Held and Waiting count the keys that the session holds and waits for. Only WalkSessions sets
	// them.
	Held, Waiting int
}
