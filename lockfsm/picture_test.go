package lockfsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// picture is the whole state of a machine or of its twin, for comparison and failure messages.
// Sessions are in ascending order of ID, entries in ascending order of place.
type picture struct {
	group    groupPicture
	sessions []sessionPicture
	entries  []twinEntry
	data     string
}

type groupPicture struct {
	charter      string // as text, because a Charter cannot be compared
	born, grace  bool
	rev          uint64
	wall         int64
	failed       bool
	locks, waits int
	charged      uint64
}

type sessionPicture struct {
	id      SessionID
	nonce   Nonce
	epoch   Epoch
	next    Number
	ttl     int64
	leaving bool
	gone    bool
	record  string
	charged uint64
	opener  Opener
	life    uint64
	rights  string
}

func (p picture) equal(q picture) bool {
	return p.group == q.group && p.data == q.data && slices.Equal(p.sessions, q.sessions) &&
		slices.EqualFunc(p.entries, q.entries, sameEntry)
}

func (p picture) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", p.group)
	for _, s := range p.sessions {
		fmt.Fprintf(&b, "session %+v\n", s)
	}
	for _, e := range p.entries {
		fmt.Fprintf(&b, "entry %+v\n", e)
	}
	return b.String()
}

func (m *Machine) picture() picture {
	counts := m.Counts()
	p := picture{group: groupPicture{
		fmt.Sprintf("%+v", m.Charter()), m.Born(), m.Born() && !m.GraceOver(), uint64(m.rev), m.wallUnixMS,
		m.Failed() != nil, counts.Locks, counts.Waiters, m.Usage().Bytes,
	}}
	for l := m.locks.first; l != nil; l = l.next {
		for e := l.first; e != nil; e = e.after {
			if e.lead() == e {
				p.entries = append(p.entries, e.described())
			}
		}
	}
	slices.SortFunc(p.entries, func(a, b twinEntry) int { return cmp.Compare(a.place, b.place) })
	data := map[string]Data{}
	for l := m.locks.first; l != nil; l = l.next {
		if l.data != nil {
			data[l.key] = *l.data
		}
	}
	p.data = fmt.Sprint(data)
	for _, s := range m.Sessions() {
		inside := m.sessions.byID[s.ID]
		p.sessions = append(p.sessions, sessionPicture{s.ID, inside.nonce, s.Epoch, inside.next, int64(inside.ttl),
			s.Leaving, s.Gone, string(s.Record), inside.charged, s.Opener, s.Life, inside.rights.all().Text()})
	}
	return p
}

func (e *entry) described() twinEntry {
	t := twinEntry{
		keys: []string{e.lock.key}, shares: []share{e.share()}, modes: []Mode{e.mode},
		session: e.session.id, number: e.number,
		place: e.rev, token: e.token,
		since: e.sinceUnixMS(), value: e.value(), notice: e.notice, told: e.told, try: e.try, resumed: e.resumed(),
	}
	if e.extra != nil {
		if e.extra.upgrades {
			t.hold = e.extra.owner
		}
		t.owner, t.inner, t.seq = e.extra.owner, e.extra.inner, e.extra.seq
		t.delay = time.Duration(e.extra.delayMS) * time.Millisecond
		for _, each := range e.extra.entries[min(1, len(e.extra.entries)):] {
			t.keys, t.shares = append(t.keys, each.lock.key), append(t.shares, each.share())
			t.modes = append(t.modes, each.mode)
		}
	}
	if s := e.stay(); s != nil {
		t.sticky, t.last, t.asked = true, s.last, s.asked
	}
	return t
}

func (e *entry) share() share {
	if permits, of := e.shares(); permits == 1 && of == 0 {
		return share{1, unlimited}
	}
	permits, of := e.terms()
	return share{uint64(permits), uint64(of)}
}

func sameEntry(a, b twinEntry) bool {
	return slices.Equal(a.keys, b.keys) && a.seq == b.seq && bytes.Equal(a.value, b.value) &&
		slices.Equal(a.shares, b.shares) && slices.Equal(a.modes, b.modes) &&
		a.owner == b.owner && a.inner == b.inner && a.hold == b.hold &&
		a.session == b.session && a.number == b.number && a.place == b.place && a.token == b.token &&
		a.since == b.since && a.notice == b.notice && a.told == b.told && a.delay == b.delay &&
		a.try == b.try && a.sticky == b.sticky && a.last == b.last && a.asked == b.asked && a.resumed == b.resumed
}

func (t *twin) picture() picture {
	keys := map[string]bool{}
	p := picture{group: groupPicture{fmt.Sprintf("%+v", t.charter), t.born, t.grace, t.rev, t.wall, t.failed, 0, 0,
		t.groupCharge()}, entries: slices.Clone(t.entries)}
	for _, e := range t.entries {
		for _, key := range e.keys {
			keys[key] = true
			if e.token == 0 {
				p.group.waits++
			}
		}
	}
	for key := range t.data {
		keys[key] = true
	}
	p.data = fmt.Sprint(t.data)
	p.group.locks = len(keys)
	for _, s := range t.sessions {
		p.sessions = append(p.sessions, sessionPicture{s.id, s.nonce, s.epoch, s.next, int64(s.info.TTL),
			s.info.Leaving, s.gone, string(s.info.Record), t.sessionCharge(s.id), s.opener, s.life, s.rights})
	}
	return p
}

func keep(r Result) Result {
	r.States, r.Fired, r.Circle = slices.Clone(r.States), slices.Clone(r.Fired), slices.Clone(r.Circle)
	if r.Holder != nil {
		holder := *r.Holder
		r.Holder = &holder
	}
	return r
}

func sameResult(a, b Result) bool {
	if !sameHolder(a.Holder, b.Holder) || !sameGrant(a.Grant, b.Grant) ||
		!slices.EqualFunc(a.States, b.States, sameChange) ||
		!slices.EqualFunc(a.Fired, b.Fired, sameChange) {
		return false
	}
	if len(a.Circle) != len(b.Circle) && len(a.Circle)*len(b.Circle) == 0 {
		return false // the rules do not define the choice between several circles
	}
	if (a.Evicted == nil) != (b.Evicted == nil) || a.Evicted != nil &&
		fmt.Sprint(*a.Evicted) != fmt.Sprint(*b.Evicted) {
		return false
	}
	return a.Kind == b.Kind && a.Code == b.Code && a.Session == b.Session && a.Epoch == b.Epoch &&
		a.Number == b.Number &&
		a.Nonce == b.Nonce && a.Token == b.Token && a.Watch == b.Watch && a.TTL == b.TTL && a.Budget == b.Budget &&
		a.Last == b.Last && a.Detached == b.Detached && (a.Data == nil) == (b.Data == nil) &&
		(a.Data == nil || fmt.Sprint(*a.Data) == fmt.Sprint(*b.Data))
}

func sameChange(a, b Change) bool {
	same := sameHolder(a.Held, b.Held) && (a.Held == nil || a.Held.Key == b.Held.Key) && sameGrant(a.Grant, b.Grant)
	a.Held, b.Held, a.Grant, b.Grant = nil, nil, nil, nil
	return same && a == b
}

func sameGrant(a, b *Grant) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Key == b.Key && slices.Equal(a.Keys, b.Keys) && a.Permits == b.Permits && a.Of == b.Of &&
		slices.Equal(a.Modes, b.Modes) && a.Delay == b.Delay && bytes.Equal(a.Value, b.Value)
}

// sameHolder does not compare Key, which the twin does not know.
func sameHolder(a, b *Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && bytes.Equal(a.Record, b.Record) && a.Token == b.Token &&
		a.SinceUnixMS == b.SinceUnixMS && a.Waiters == b.Waiters && bytes.Equal(a.Value, b.Value) && a.Kept == b.Kept
}

func describe(r Result) string {
	for i := range r.Fired {
		if h := r.Fired[i].Held; h != nil {
			return fmt.Sprintf("%+v, ended by %+v", r, *h)
		}
	}
	if r.Holder == nil {
		return fmt.Sprintf("%+v", r)
	}
	holder := *r.Holder
	r.Holder = nil
	return fmt.Sprintf("%+v, held by %+v", r, holder)
}
