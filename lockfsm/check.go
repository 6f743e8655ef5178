package lockfsm

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// The invariants that Check tests:
//
//	 1  The revision lies between the first one and the largest. The wall stamp is not before the
//	    founding. The build has the rules.
//	 2  Before Born there are no sessions, no locks and no revisions after the first one, and the
//	    grace does not end. If the charter has no grace, the grace counts as over after Born.
//	 3  Sessions ascend by ID. The map by ID has exactly these sessions, and the map by nonce
//	    exactly those that are not gone.
//	 4  A session has a TTL, next > 0, a nonce, and a record within bounds.
//	 5  The requests of a session ascend by number, below next, and are found by number.
//	 6  Every lock in the list has a valid key, and at least one entry or data. The map by key has
//	    exactly these locks.
//	 7  A queue is linked in both directions and ascends by revision, except for upgrades. Its
//	    entries point to its lock and belong to sessions in the list. The lock counts the entries
//	    that lead on, and those that link back (see entry.go).
//	 8  After the grace a request has a token exactly if all its entries are inside (see lock.go).
//	    During the grace no request has a token.
//	 9  A token is higher than the revision of its entry. The wall stamp of a grant lies between
//	    the founding and the present stamp. Only a hold can be resumed, and no stay and no upgrade.
//	10  No revision is used twice as a session ID, a place, a token or the revision of data. None
//	    is above the present revision.
//	11  The limits of the charter hold.
//	12  The counts of the machine are what the lists contain.
//	13  No touched entries are left from the last command, and the spare structs are zero.
//	14  The places of locks ascend. While no capture is under way, every session and every lock has
//	    the number of the last capture in its field seen.
//	15  The entries inside are exactly those at the front of the queue that fit beside each other,
//	    and the counters of the lock match them. A waiting request watches the predecessor of its
//	    first entry that is not inside.
//	16  If a holder has asked for a notice and not received it, no request waits for its lock except
//	    its own upgrade. The lock counts the inside entries that have not received their notice.
//	17  A gone session has at least one hold, and each of its holds has a delay.
//	18  Data has a revision and a value of a valid length. The machine counts the keys with data.
//	19  The charges are the sums that budget.go defines.
//	20  A request with Try waits only for stays: if it is outside, all inside entries are stays, and
//	    each of these is asked for the answer up to its place or further. In a queue, requests with
//	    Try are before the other waiting requests. A stay is exclusive or shared, has one key, and
//	    asks for a notice. Nothing else has the revisions that a stay has reserved. The lock counts
//	    the waiting requests with Try, and the inside entries that are or may become stays.
//	21  An upgrade is exclusive, has one key, and names as its owner a granted upgradable hold of
//	    this key. It is directly behind the entries that were inside before it, and before all
//	    others. A hold has at most one upgrade.
//	22  The rights of a session grant lock on the key of each of its entries. Sessions with the same
//	    rights share them, the hash of the rights is the capability of the opener, and the map by
//	    text has exactly the rights of the sessions.
//	23  The sum of the digest is the sum of the hashes of all sessions, data and entries.
//	24  Each entry has a known mode, and the permits and the total of this mode. Those of a semaphore
//	    are the same for all keys of a request. An upgradable request has one key and no delay.

// Check returns an error that lists at most 20 broken invariants, or nil. It takes time and memory
// in proportion to the state. Tests, Restore and diagnostics call it.
func (m *Machine) Check() error {
	c := checker{m: m}
	c.group()
	c.sum()
	c.sessions()
	c.locks()
	c.revisions()
	c.charges()
	c.rights()
	c.leftovers()
	return errors.Join(c.errs...)
}

type checker struct {
	m    *Machine
	errs []error
	used []uint64
	// the revisions that stays have reserved, after First
	reserved []Range
	seen     Counts
	sticky   int
}

const maxComplaints = 20

func (c *checker) sum() {
	sum := uint64(0)
	for s := c.m.sessions.first; s != nil; s = s.after {
		sum += s.hash()
	}
	for l := range c.m.locks.inOrder() {
		if l.data != nil {
			sum += l.data.hash()
		}
		for e := l.first; e != nil; e = e.after {
			sum += e.hash()
		}
	}
	kept := c.m.digest.sum
	_ = sum == kept || c.broken(23, "the hashes of the state have the sum %016x, kept as %016x", sum, kept)
}

// broken records an error and returns false. Callers write the call on the right side of ||, so
// that the message is formatted only for a broken invariant.
func (c *checker) broken(invariant int, format string, args ...any) bool {
	if len(c.errs) < maxComplaints {
		c.errs = append(c.errs, fmt.Errorf("lockfsm: invariant %d: %s", invariant, fmt.Sprintf(format, args...)))
	}
	return false
}

func (c *checker) group() {
	m := c.m
	first := m.charter.firstRevision()
	_ = first <= m.rev && m.rev <= maxRevision || c.broken(1, "revision %d is outside %d to %d", m.rev, first,
		maxRevision)
	_ = m.wallUnixMS >= m.charter.FoundedUnixMS || c.broken(1, "wall stamp %d is before the founding at %d",
		m.wallUnixMS, m.charter.FoundedUnixMS)
	if err := m.charter.validate(m.supported); err != nil {
		c.broken(1, "%v", err)
	}
	if !m.born {
		_ = m.rev == first && m.wallUnixMS == m.charter.FoundedUnixMS ||
			c.broken(2, "not born, yet at revision %d and stamp %d", m.rev, m.wallUnixMS)
		_ = m.sessions.first == nil && m.locks.first == nil || c.broken(2, "not born, yet there are sessions or locks")
		_ = !m.graceOver || c.broken(2, "not born, yet the grace is over")
		return
	}
	_ = m.rev > first || c.broken(2, "born, yet no revision is taken")
	_ = m.graceOver || m.charter.Grace > 0 || c.broken(2, "there is no grace, yet it is not over")
}

func (c *checker) sessions() {
	m := c.m
	var before *session
	gone := 0
	for s := m.sessions.first; s != nil; before, s = s, s.after {
		c.seen.Sessions++
		c.used = append(c.used, uint64(s.id))
		_ = s.prev == before && (before == nil || before.id < s.id) || c.broken(3, "session %d is out of order", s.id)
		_ = m.sessions.byID[s.id] == s && (m.sessions.byNonce[s.nonce] == s) != s.gone ||
			c.broken(3, "session %d is not found by its ID and its nonce", s.id)
		if s.gone {
			gone++
			_ = s.requests.Len() > 0 || c.broken(17, "session %d is gone and has nothing", s.id)
		}
		_ = 0 < s.ttl || c.broken(4, "session %d has a TTL of %v", s.id, s.ttl)
		_ = 0 < s.next && s.next <= MaxNumber+1 || c.broken(4, "session %d has next number %d", s.id, s.next)
		_ = s.nonce != Nonce{} && len(s.record) <= MaxRecordBytes ||
			c.broken(4, "session %d has no nonce or a record of %d bytes", s.id, len(s.record))
		_ = s.seen == m.captures.last || m.captures.now != nil || c.broken(14,
			"session %d would be copied for a capture, but none runs", s.id)
		_ = s.entries <= m.charter.Limits.EntriesPerSession ||
			c.broken(11, "session %d has %d entries", s.id, s.entries)
		c.entriesOf(s)
	}
	_ = m.sessions.last == before || c.broken(3, "the last session of the list is not the recorded last one")
	_ = len(m.sessions.byID) == c.seen.Sessions && len(m.sessions.byNonce) == c.seen.Sessions-gone || c.broken(3,
		"%d sessions are listed, %d found by ID, %d by nonce", c.seen.Sessions, len(m.sessions.byID), len(m.sessions.byNonce))
	_ = uint64(c.seen.Sessions) <= uint64(m.charter.Limits.Sessions) ||
		c.broken(11, "there are %d sessions", c.seen.Sessions)
}

func (c *checker) entriesOf(s *session) {
	var before *entry
	n, held, requests := uint32(0), uint32(0), 0
	for e := range s.requests.All() {
		n += e.places()
		if e.token != 0 {
			held += e.places()
		}
		requests++
		_ = e.session == s && e.lead() == e || c.broken(5, "entry %d/%d is no request of its session", s.id, e.number)
		_ = before == nil || before.number < e.number || c.broken(5, "entry %d/%d is out of order", s.id, e.number)
		_ = 0 < e.number && e.number < s.next || c.broken(5, "entry %d/%d is not below the next number %d", s.id,
			e.number, s.next)
		_ = !s.gone || e.delayed() || c.broken(17, "entry %d/%d has outlived its session without a delay", s.id,
			e.number)
		_ = s.request(e.number) == e || c.broken(5, "entry %d/%d is not found by its number", s.id, e.number)
		before = e
	}
	_ = s.requests.Last() == before && s.entries == n || c.broken(5, "session %d counts %d entries and lists %d", s.id,
		s.entries, n)
	_ = s.held == held || c.broken(5, "session %d counts %d keys that it holds, and lists %d", s.id, s.held, held)
	_ = s.requests.Len() == requests || c.broken(5, "session %d lists %d requests, and counts %d", s.id, requests,
		s.requests.Len())
	c.seen.Entries += int(n)
}

func (c *checker) locks() {
	m := c.m
	entries, data := 0, 0
	var before *lock
	for l := m.locks.first; l != nil; before, l = l, l.next {
		c.seen.Locks++
		_ = l.prev == before && m.locks.byKey[l.key] == l && (l.first != nil || l.data != nil) ||
			c.broken(6, "lock %q is linked wrongly or empty", l.key)
		_ = l.position > placesOfLocks && l.position <= m.locks.lastPlace &&
			(before == nil || before.position < l.position) ||
			c.broken(14, "lock %q is at place %d", l.key, l.position)
		_ = l.seen == m.captures.last || m.captures.now != nil || c.broken(14,
			"lock %q would be copied for a capture, but none runs", l.key)
		_ = validKey([]byte(l.key), m.charter.Limits.KeyBytes) || c.broken(6, "lock %q has a bad key", l.key)
		entries += c.queue(l)
		if l.data != nil {
			data++
			c.used = append(c.used, uint64(l.data.Revision))
			_ = 0 < len(l.data.Value) && len(l.data.Value) <= MaxDataBytes ||
				c.broken(18, "%q: data of %d bytes", l.key, len(l.data.Value))
		}
	}
	_ = m.data == data && data <= MaxData || c.broken(18, "%d keys have data, counted %d", data, m.data)
	_ = m.locks.last == before && len(m.locks.byKey) == c.seen.Locks || c.broken(6, "%d locks are listed, %d found by key",
		c.seen.Locks, len(m.locks.byKey))
	_ = entries == c.seen.Entries || c.broken(7, "%d entries stand in queues, %d in sessions", entries, c.seen.Entries)
	_ = m.sticky == c.sticky || c.broken(20, "%d sticky entries, counted %d", c.sticky, m.sticky)
	_ = m.counts == c.seen || c.broken(12, "counts %+v, want %+v", m.counts, c.seen)
}

func (c *checker) queue(l *lock) int {
	m := c.m
	n, insiders, waiting, notices, tries, stays := 0, 0, 0, uint32(0), uint32(0), uint32(0)
	leads, links := int32(0), int32(0)
	asked := maxRevision // no outside entry with Try has a higher place
	var before *entry
	for e := l.first; e != nil; before, e = e, e.after {
		n++
		_ = e.ahead == before && e.lock == l && (before == nil || before.rank() < e.rank()) ||
			c.broken(7, "%q: the entry at %d is out of order", l.key, e.rev)
		c.upgrade(e)
		_ = e.session != nil && m.sessions.byID[e.session.id] == e.session ||
			c.broken(7, "%q: the entry at %d has no session", l.key, e.rev)
		c.request(e)
		c.stays(e)
		if e.sticky() {
			c.sticky++
		}
		if e.holding {
			insiders++
			if e.token != 0 {
				asked = min(asked, e.answers())
			}
			if e.mayStay() {
				stays++
			}
		}
		if e.try {
			tries++
			_ = e.token == 0 && (e.holding || asked >= e.rev) ||
				c.broken(20, "%q: the Try at %d does not wait for stays that are asked", l.key, e.rev)
			_ = e.holding || before.holding || before.try ||
				c.broken(20, "%q: the Try at %d waits behind the entry at %d", l.key, e.rev, before.rev)
		}
		if e.lead().leadsOn() {
			leads++
		}
		if e.linksBack() {
			links++
		}
		if e.awaitsNotice() {
			notices++
			_ = e.lead().unwanted() || c.broken(16, "%q: the entry at %d has not been told that a request waits", l.key, e.rev)
		}
		if e.token == 0 {
			waiting++
			continue
		}
		_ = uint64(e.token) > uint64(e.rev) || c.broken(9, "%q: token %d is not above its entry's revision %d", l.key,
			e.token, e.rev)
		_ = m.charter.FoundedUnixMS <= e.sinceUnixMS() && e.sinceUnixMS() <= m.wallUnixMS ||
			c.broken(9, "%q: granted at %d, before the founding or after the last wall stamp", l.key, e.sinceUnixMS())
	}
	_ = l.tail() == before && int(l.waiting) == waiting || c.broken(7, "%q: %d wait, counted %d", l.key, waiting,
		l.waiting)
	_ = uint64(waiting) <= uint64(m.charter.Limits.WaitersPerLock) || c.broken(11, "%q: %d wait", l.key, waiting)
	_ = l.tries == tries || c.broken(20, "%q: %d with Try wait, counted %d", l.key, tries, l.tries)
	_ = l.stays == stays || c.broken(20, "%q: %d stays are inside, counted %d", l.key, stays, l.stays)
	_ = l.entries() == n && int(l.inside) == insiders || c.broken(7, "%q: %d entries, %d inside, counted %d and %d",
		l.key, n, insiders, l.entries(), l.inside)
	c.index(l)
	_ = l.leads == leads && l.links == links || c.broken(7, "%q: %d entries lead on and %d link back, counted %d and %d",
		l.key, leads, links, l.leads, l.links)
	_ = l.notices == notices || c.broken(16, "%q: %d await a notice, counted %d", l.key, notices, l.notices)
	c.seen.Waiters += waiting
	c.inside(l)
	return n
}

func (c *checker) request(e *entry) {
	lead := e.lead()
	stuck := c.m.stuck(lead)
	_ = (e.token != 0) == (c.m.graceOver && stuck == nil) ||
		c.broken(8, "%q: the entry at %d has token %d", e.lock.key, e.rev, e.token)
	_ = e.rev == lead.rev && e.token == lead.token && e.session == lead.session && e.number == lead.number &&
		e.extra == lead.extra || c.broken(7,
		"%q: the entry at %d is not like the first of its request", e.lock.key, e.rev)
	_ = !e.resumed() || e.token != 0 && !e.sticky() && !e.upgrades() || c.broken(9,
		"%q: the entry at %d is resumed, and waits or is no hold that can be resumed", e.lock.key, e.rev)
	if e != lead {
		_ = e.token != 0 || e.mark == 0 || c.broken(15, "%q: the entry at %d watches, but is not the first of its request",
			e.lock.key, e.rev)
		return
	}
	c.mode(e)
	c.used = append(c.used, uint64(e.rev))
	if e.token != 0 {
		c.used = append(c.used, uint64(e.token))
	}
	want := Revision(0)
	if e.token == 0 && stuck != nil && stuck.ahead != nil {
		want = stuck.ahead.rev
		if before := stuck.ahead.ahead; before != nil && stuck.ahead == stuck.upgraded() {
			want = before.rev
		}
	}
	_ = e.watch() == want || c.broken(15, "%q: the entry at %d watches %d, want %d", e.lock.key, e.rev, e.watch(), want)
	_ = e.session == nil || e.extra == nil || e.extra.owner == 0 || e.isOwned() ||
		c.broken(5, "entry %d/%d is not found by its owner", e.session.id, e.number)
}

func (c *checker) mode(lead *entry) {
	for _, e := range lead.all(new([1]*entry)) {
		known := e.mode <= ModeU && e.permits == 0 && e.of == 0
		if e.mode == ModePermits && (e.of != 0 || e.extra != nil) {
			permits, of := e.shares()
			known = semaphore(permits, of) && fewShares(permits, of) == (e.of != 0)
		}
		_ = known && e.permitsLike(lead) && (e.mode != ModeU || e.extra == nil || e.places() == 1 && e.extra.delayMS == 0) ||
			c.broken(24, "%q: the entry at %d has mode %d with %d permits of %d", e.lock.key, e.rev, e.mode, e.permits, e.of)
	}
}

// isOwned reports whether e is linked among the requests with its owner.
func (e *entry) isOwned() bool {
	all, x := e.session.under(e.extra.listedFor()), e.extra
	elder := all.first == e && x.elder == nil ||
		x.elder != nil && x.elder.extra.younger == e && x.elder.number < e.number
	return elder && (all.last == e && x.younger == nil || x.younger != nil && x.younger.extra.elder == e)
}

// index checks that the index of l, if it has one, finds its inside entries.
func (c *checker) index(l *lock) {
	x := l.index
	_ = x != nil || l.inside < c.m.indexFrom || c.broken(15, "%q: %d entries are inside without an index", l.key, l.inside)
	if x == nil {
		return
	}
	granted, stays, untold := 0, 0, 0
	totals := map[uint32]uint32{}
	for e := l.first; e != nil && e.holding; e = e.after {
		_, of := e.terms()
		if totals[of]++; e.token == 0 {
			continue
		}
		granted++
		_ = x.granted.Get(uint64(e.token)) == e || c.broken(15, "%q: the index does not find token %d", l.key, e.token)
		if e.stays() {
			stays++
			_ = l.reservedBy(e.extra.stay.last, &c.m.effort) == e || c.broken(15,
				"%q: the index does not find the stay %d", l.key, e.token)
		}
		if e.awaitsNotice() {
			untold++
			_ = x.untold.Get(uint64(e.rev)) == e || c.broken(15, "%q: the index does not find the notice of %d", l.key, e.token)
		}
	}
	_ = x.granted.Len() == granted && x.stays.Len() == stays && x.untold.Len() == untold &&
		x.totals.Len() == len(totals) || c.broken(15, "%q: the index has entries that have left", l.key)
	for of, entries := range totals {
		n := x.totals.Get(uint64(of))
		_ = n != nil && *n == entries || c.broken(15, "%q: the index does not count the %d entries of the total %d", l.key,
			entries, of)
	}
}

func (c *checker) stays(e *entry) {
	s := e.stay()
	if s == nil {
		return
	}
	_ = e.notice && (e.mode == ModeX || e.mode == ModeIS) && e.extra.entries == nil && e.extra.owner == 0 &&
		e.extra.value == nil && e.extra.delayMS == 0 ||
		c.broken(20, "%q: the stay at %d has terms that no stay has", e.lock.key, e.rev)
	if s.last == 0 {
		_ = s.asked == 0 || c.broken(20, "%q: the entry at %d is asked and is no stay", e.lock.key, e.rev)
		return
	}
	_ = e.token != 0 && s.last == e.token+StayTokens && uint64(s.last) <= uint64(c.m.rev) &&
		(s.asked == 0 || s.asked > e.rev && s.asked <= c.m.rev) ||
		c.broken(20, "%q: the stay %d has reserved up to %d and is asked up to %d", e.lock.key, e.token, s.last, s.asked)
	c.reserved = append(c.reserved, Range{Number(e.token), Number(s.last)})
}

// answers returns the highest place of a request with Try for which e will answer.
func (e *entry) answers() Revision {
	if !e.stays() {
		return 0
	}
	return e.stay().asked
}

func (e *entry) unwanted() bool {
	return !slices.ContainsFunc(e.all(new([1]*entry)), func(each *entry) bool {
		b := each.lock.boundary
		return b != nil && (b.after != nil || b.upgraded() != each)
	})
}

func (c *checker) upgrade(e *entry) {
	if !e.upgrades() {
		return
	}
	hold := e.upgraded()
	_ = hold != nil && hold.token != 0 && hold.token < Token(e.rev) && hold.upgrade() == e && e.mode == ModeX && !e.try &&
		e.extra.entries == nil && e.extra.delayMS == 0 &&
		e.ahead != nil && e.ahead.holding && e.ahead.rev < e.rev ||
		c.broken(21, "%q: the upgrade at %d has no hold, or a wrong place, or terms that no upgrade has", e.lock.key, e.rev)
}

func (c *checker) inside(l *lock) {
	taken, least := uint64(0), uint32(math.MaxUint32)
	leasts := uint32(0)
	e := l.first
	for ; e != nil; e = e.after {
		permits, of := e.terms()
		beside := taken
		if e.upgrades() {
			beside -= upgradablePermits // invariant 21: its hold is inside
		}
		if beside > 0 && beside+uint64(permits) > uint64(min(least, of)) {
			break
		}
		_ = e.holding || c.broken(15, "%q: the entry at %d is not inside", l.key, e.rev)
		if of < least {
			least, leasts = of, 0
		}
		if of == least {
			leasts++
		}
		taken += uint64(permits)
	}
	_ = l.boundary == e || c.broken(15, "%q: the first entry outside is not where it should be", l.key)
	_ = uint64(l.taken) == taken && (taken == 0 || l.least == least && l.leasts == leasts) || c.broken(15,
		"%q: %d permits are taken of %d, a total that %d entries name; recorded: %d of %d, %d entries", l.key, taken,
		least, leasts, l.taken, l.least, l.leasts)
	for ; e != nil; e = e.after {
		_ = !e.holding || c.broken(15, "%q: the entry at %d is inside", l.key, e.rev)
	}
}

func (c *checker) revisions() {
	slices.Sort(c.used)
	for _, s := range c.reserved {
		i, _ := slices.BinarySearch(c.used, uint64(s.First)+1)
		_ = i == len(c.used) || c.used[i] > uint64(s.Last) ||
			c.broken(10, "revision %d is reserved by the stay %d", c.used[i], s.First)
	}
	for i, rev := range c.used {
		_ = i == 0 || c.used[i-1] < rev || c.broken(10, "revision %d has two uses", rev)
	}
	if n := len(c.used); n > 0 {
		_ = c.used[0] > uint64(c.m.charter.firstRevision()) || c.broken(10, "revision %d is from before the founding",
			c.used[0])
		_ = c.used[n-1] <= uint64(c.m.rev) || c.broken(10, "revision %d is above the present one, %d", c.used[n-1],
			c.m.rev)
	}
}

func (c *checker) rights() {
	sessions := map[*sharedRights]int{}
	for s := c.m.sessions.first; s != nil; s = s.after {
		if s.rights == nil {
			_ = s.opener.Capability == [32]byte{} || c.broken(22, "session %d has a capability and no rights", s.id)
			continue
		}
		sessions[s.rights]++
		_ = s.opener.Capability == s.rights.Hash() && c.m.sessions.rights[s.rights.Text()] == s.rights ||
			c.broken(22, "session %d has rights that are not shared, or not its opener's", s.id)
	}
	for l := c.m.locks.first; l != nil; l = l.next {
		for e := l.first; e != nil; e = e.after {
			_ = e.session == nil || e.session.rights.mayLock(l.key) ||
				c.broken(22, "%q: the entry at %d is of session %d, whose rights do not grant it", l.key, e.rev, e.session.id)
		}
	}
	for shared, n := range sessions {
		_ = shared.sessions == n || c.broken(22, "%d sessions share rights, counted %d", n, shared.sessions)
	}
	_ = len(c.m.sessions.rights) == len(sessions) || c.broken(22, "%d rights are found by text, sessions have %d",
		len(c.m.sessions.rights), len(sessions))
}

func (c *checker) leftovers() {
	m := c.m
	_ = len(m.ripples.contested) == 0 || c.broken(13, "%d locks were contested and not settled", len(m.ripples.contested))
	_ = len(m.ripples.touched) == 0 || c.broken(13, "%d entries were touched and not settled", len(m.ripples.touched))
	_ = *m.locks.shared == sharedQueue() || c.broken(13, "the shared queue was changed")
	_ = len(m.spares.entries) <= maxSpare && len(m.spares.locks) <= maxSpare && len(m.spares.queues) <= maxSpare ||
		c.broken(13, "too many spare structs")
	for _, e := range m.spares.entries {
		_ = *e == entry{} || c.broken(13, "a spare entry still belongs to something")
	}
	for _, l := range m.spares.locks {
		_ = *l == lock{} || c.broken(13, "a spare lock still belongs to something")
	}
	for _, q := range m.spares.queues {
		_ = *q == queue{} || c.broken(13, "a spare queue still belongs to something")
	}
}

func (c *checker) charges() {
	m := c.m
	sum := uint64(0)
	for s := m.sessions.first; s != nil; s = s.after {
		own := sessionCharge + content(len(s.record))
		if s.rights != nil {
			own += rightsCharge + content(len(s.rights.Text()))
		}
		sum += own
		for e := range s.requests.All() {
			own += e.requestCharge()
			sum += e.restCharge()
		}
		_ = s.charged == own || c.broken(19, "session %d is charged %d, want %d", s.id, s.charged, own)
	}
	for l := m.locks.first; l != nil; l = l.next {
		sum += lockCharge + content(len(l.key))
		if l.data != nil {
			sum += dataCharge + content(len(l.data.Value))
		}
		for e := l.first; e != nil; e = e.after {
			sum += entryCharge
		}
	}
	_ = m.charged() == sum || c.broken(19, "the group is charged %d, want %d", m.charged(), sum)
}
