package lockfsm

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// locksReader reads the locks of a snapshot queue by queue. After that it joins the entries of each
// request for several keys.
type locksReader struct {
	*reader
	m       *Machine
	all     []*entry
	several []several
	index   map[*extra]int
}

type several struct {
	extra *extra
	want  int
	spoke *entry // the entry that had an owner, a value, a delay or a seq
	// the number of entries that are resumed
	resumed int
}

func (r *locksReader) locks() {
	const leastLock, leastEntry = 9, 5 // bytes
	count := r.count(leastLock, "locks")
	r.m.locks.expect(count)
	r.all = make([]*entry, 0, count)
	for range count {
		l := &lock{key: string(r.bytes(r.uvarint("key"), "key")), queue: &queue{}}
		r.data(l)
		entries := r.count(leastEntry, "entries")
		if entries == 0 && l.data == nil || r.m.locks.byKey[l.key] != nil {
			r.fail("lock")
		}
		if r.fault != "" {
			return
		}
		r.m.linkLock(l)
		before := uint64(r.m.charter.firstRevision())
		for range entries {
			e := r.entry(l, before)
			if e == nil {
				return
			}
			if !e.upgrades() {
				before = uint64(e.rev)
			}
			r.all = append(r.all, e)
		}
	}
	r.join()
	r.list()
}

func (r *locksReader) data(l *lock) {
	first := uint64(r.m.charter.firstRevision())
	revision := r.sum(first, uint64(r.m.rev), "data's revision")
	if revision == first {
		return
	}
	l.data = &Data{Revision: Revision(revision), nonce: r.nonce()}
	l.data.Value = copied(r.bytes(r.positive(MaxDataBytes, "data"), "data"))
	r.m.countData(l.data, 1)
	r.m.digest.add(l.data.hash())
}

// entry reads an entry and adds it to l's queue. It adds the first entry of a request to its
// session's map by number.
func (r *locksReader) entry(l *lock, before uint64) *entry {
	m := r.m
	s := m.sessions.byID[SessionID(r.sum(uint64(m.charter.firstRevision()), uint64(m.rev), "entry's session"))]
	e := &entry{lock: l, session: s, number: Number(r.max(uint64(MaxNumber), "number"))}
	e.rev = Revision(r.sum(before, uint64(m.rev), "entry's revision"))
	if s == nil || uint64(e.rev) == before {
		r.fail("entry")
		return nil
	}
	token := r.sum(uint64(e.rev), uint64(m.rev), "token")
	if token != uint64(e.rev) {
		e.token = Token(token)
		e.mark = uint64(r.sum(uint64(m.charter.FoundedUnixMS), math.MaxInt64, "time of the grant"))
	}
	r.terms(e)
	if e.upgrades() && l.boundary != nil {
		r.fail("upgrade")
	}
	if r.fault != "" {
		return nil
	}
	m.enqueue(e)
	return e
}

func (r *locksReader) terms(e *entry) {
	flags := r.flags(0xff, "entry")
	permits, of := uint32(0), uint32(0)
	if flags&entryModeFlag != 0 {
		e.mode, permits, of = r.otherMode()
	}
	r.rest(e, flags)
	e.setMode(e.mode, permits, of) // if a request names two totals, Check finds a wrong sum in one queue
}

func (r *locksReader) rest(e *entry, flags byte) {
	e.notice, e.told = flags&entryNoticeFlag != 0, flags&entryToldFlag != 0
	if e.told && (!e.notice || e.token == 0) {
		r.fail("notice")
	}
	known := e.session.request(e.number)
	if known == nil {
		e.session.index(e)
	} else if flags&entrySeveralFlag == 0 {
		r.fail("entry")
	}
	if flags&(entrySeveralFlag|entryOwnerFlag|entryValueFlag|entryDelayFlag) == 0 || r.fault != "" {
		r.more(e, flags)
		return
	}
	e.extra = &extra{}
	if flags&entrySeveralFlag != 0 {
		r.part(e, known, flags)
	}
	if flags&entryOwnerFlag != 0 {
		if e.extra.owner = Number(r.positive(uint64(MaxNumber), "owner")); e.extra.owner >= e.number {
			r.fail("owner")
		}
	}
	if flags&entryValueFlag != 0 {
		e.extra.value = copied(r.bytes(r.positive(MaxValueBytes, "value"), "value"))
	}
	if flags&entryDelayFlag != 0 {
		e.extra.delayMS = uint32(r.positive(uint64(MaxDelay.Milliseconds()), "delay"))
	}
	r.more(e, flags)
}

// more reads the second byte of flags and its fields.
func (r *locksReader) more(e *entry, flags byte) {
	if flags&entryMoreFlag == 0 {
		return
	}
	more := r.flags(entryStickyFlag|entryTryFlag|entrySeqFlag|entryUpgradeFlag|entryResumedFlag|entryInnerFlag, "entry")
	e.try = more&entryTryFlag != 0
	resumed := more&entryResumedFlag != 0
	if more == 0 || e.try && e.token != 0 || resumed && (e.token == 0 || more&(entryStickyFlag|entryUpgradeFlag) != 0) {
		r.fail("entry")
	}
	if resumed {
		r.resumed(e)
	}
	if more&entrySeqFlag != 0 {
		r.seq(e)
	}
	if more&entryUpgradeFlag != 0 {
		if e.extra == nil || e.extra.owner == 0 {
			r.fail("upgrade")
			return
		}
		e.extra.upgrades = true
	}
	if more&entryInnerFlag != 0 {
		r.inner(e)
	}
	if more&entryStickyFlag == 0 || r.fault != "" {
		return
	}
	if e.extra != nil || e.mode != ModeX && e.mode != ModeIS || !e.notice {
		r.fail("entry")
		return
	}
	e.extra = &extra{stay: &stay{}}
	if e.token == 0 {
		return
	}
	if last := r.sum(uint64(e.token), uint64(r.m.rev), "last token"); last != uint64(e.token) {
		e.extra.stay.last = Token(last)
		if asked := r.sum(uint64(e.rev), uint64(r.m.rev), "asked"); asked != uint64(e.rev) {
			e.extra.stay.asked = Revision(asked)
		}
	}
}

func (r *locksReader) resumed(e *entry) {
	if e.extra == nil {
		e.extra = &extra{}
	}
	if e.extra.resumed = true; e.extra.entries != nil {
		r.several[r.index[e.extra]].resumed++
	}
}

func (r *locksReader) inner(e *entry) {
	inner := Number(r.positive(uint64(MaxNumber), "inner"))
	if !e.upgrades() || inner >= e.number || inner == e.extra.owner {
		r.fail("inner")
		return
	}
	e.extra.inner = inner
}

func (r *locksReader) seq(e *entry) {
	seq := r.positive(math.MaxUint64, "seq")
	if e.token == 0 {
		r.fail("seq")
	}
	switch {
	case e.extra == nil:
		e.extra = &extra{}
	case e.extra.entries != nil:
		if s := &r.several[r.index[e.extra]]; s.spoke == nil {
			s.spoke = e
		} else if s.spoke != e {
			r.fail("seq")
		}
	}
	e.extra.seq = seq
}

// part adds an entry to its request. The argument known is the entry of this request that was read
// first, or nil if e is the first.
func (r *locksReader) part(e, known *entry, flags byte) {
	want := int(r.positive(MaxKeys, "several"))
	speaks := flags&(entryOwnerFlag|entryValueFlag|entryDelayFlag) != 0
	if known == nil {
		r.index[e.extra] = len(r.several)
		r.several = append(r.several, several{extra: e.extra, want: want})
	} else if e.extra = known.extra; e.extra == nil || e.extra.entries == nil {
		r.fail("entry")
		e.extra = &extra{}
		return
	}
	e.extra.entries = append(e.extra.entries, e)
	s := &r.several[r.index[e.extra]]
	if s.want != want || speaks && s.spoke != nil {
		r.fail("request of several locks")
	}
	if speaks {
		s.spoke = e
	}
}

// join checks that each request for several keys is complete, and makes the entry with the lowest
// key its lead entry.
func (r *locksReader) join() {
	for _, s := range r.several {
		all := s.extra.entries
		slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.lock.key, b.lock.key) })
		first := all[0]
		alike := !slices.ContainsFunc(all, func(e *entry) bool {
			return e.rev != first.rev || e.token != first.token || e.mark != first.mark ||
				!e.permitsLike(first) ||
				e.notice != first.notice || e.told != first.told || e.try != first.try
		})
		if s.resumed != 0 && s.resumed != len(all) {
			r.fail("resumed request of several locks")
			return
		}
		if len(all) != s.want || len(all) < 2 || !alike || s.spoke != nil && s.spoke != first {
			r.fail("request of several locks")
			return
		}
		first.session.index(first)
	}
}

func (r *locksReader) list() {
	if r.fault != "" {
		return
	}
	slices.SortFunc(r.all, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	for _, e := range r.all {
		if e.lead() != e {
			continue
		}
		e.session.count(e, 1)
		e.session.own(e)
		e.connect(1)
		r.m.charge(e)
		if e.token == 0 {
			e.mark = uint64(r.m.watches(e))
			if e.extra != nil && e.extra.owner != 0 && !e.try {
				r.m.unsearched.add(e) // a snapshot does not contain which searches have ended
			}
		}
	}
	for l := range r.m.locks.inOrder() {
		r.m.share(l)
	}
}
