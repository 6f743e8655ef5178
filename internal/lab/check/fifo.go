package check

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// FIFO checks the order of grants and the rule of sharing for one group. A request may be granted
// only if it can hold the lock together with all earlier unfinished requests. It may not be
// granted before an earlier request that waits for this key only.
type FIFO struct {
	rule
	queues map[string]*queue
}

type queue struct {
	row    []place
	newest lockfsm.Revision
}

type place struct {
	at      lockfsm.Revision
	terms   Terms
	several bool
	granted bool
	hold    lockfsm.Revision // of an upgrade, the place of its hold
}

func (f *FIFO) queue(key string) *queue {
	q := f.queues[key]
	if q == nil {
		if f.queues == nil {
			f.queues = map[string]*queue{}
		}
		q = &queue{}
		f.queues[key] = q
	}
	return q
}

func (q *queue) find(at lockfsm.Revision) (int, bool) {
	i := slices.IndexFunc(q.row, func(p place) bool { return p.at == at })
	return i, i >= 0
}

// Queued records an accepted request, even if it is granted immediately. The parameter at is the
// revision at which the request was committed. If several is set, the request also waits for other
// keys.
func (f *FIFO) Queued(key string, at lockfsm.Revision, terms Terms, several bool) error {
	if f.err != nil {
		return f.err
	}
	q := f.queue(key)
	if at <= q.newest {
		return f.broken("fifo: key %q: a request is queued at place %d after one at %d", key, at, q.newest)
	}
	q.newest = at
	q.row = append(q.row, place{at: at, terms: terms, several: several})
	return nil
}

// Upgrades records an accepted upgrade of the only upgradable hold of key. It is queued in front of
// the requests that do not fit beside those before them.
func (f *FIFO) Upgrades(key string, at lockfsm.Revision) error {
	if f.err != nil {
		return f.err
	}
	q := f.queue(key)
	permits, of := lockfsm.ModeU.Terms()
	hold := slices.IndexFunc(q.row, func(p place) bool { return p.granted && p.terms == Terms{permits, of} })
	if hold < 0 || at <= q.newest {
		return f.broken("fifo: key %q: an upgrade is queued at place %d after one at %d, and no hold is upgradable", key, at,
			q.newest)
	}
	q.newest = at
	inside := 0
	for inside < len(q.row) && q.fits(inside) {
		inside++
	}
	q.row = slices.Insert(q.row, inside, place{at: at, hold: q.row[hold].at})
	return nil
}

// fits reports whether the request with the index i fits beside all before it, except the hold that
// it upgrades.
func (q *queue) fits(i int) bool {
	all := q.before(i)
	all.add(q.row[i].terms)
	return all.fits()
}

func (q *queue) before(i int) (all sum) {
	for _, p := range q.row[:i] {
		if p.at != q.row[i].hold {
			all.add(p.terms)
		}
	}
	return all
}

// Gone records that a request has ended, whether it was granted or not.
func (f *FIFO) Gone(key string, at lockfsm.Revision) error {
	q := f.queue(key)
	if i, found := q.find(at); found {
		q.row = slices.Delete(q.row, i, i+1)
	}
	return f.err
}

// Granted checks a grant.
func (f *FIFO) Granted(key string, at lockfsm.Revision) error {
	if f.err != nil {
		return f.err
	}
	q := f.queue(key)
	i, found := q.find(at)
	if !found || q.row[i].granted {
		return f.broken("fifo: key %q: the request at place %d is granted, but does not wait", key, at)
	}
	before := q.before(i)
	for _, p := range q.row[:i] {
		if !p.granted && !p.several {
			return f.broken("fifo: key %q: the request at place %d is granted while the one at %d waits", key, at, p.at)
		}
	}
	if before.add(q.row[i].terms); !before.fits() {
		return f.broken("fifo: key %q: the request at place %d is granted, "+
			"and with those before it it has %d permits of %d", key, at, before.taken, before.least)
	}
	q.row[i].granted = true
	return nil
}

// Lowered checks that a granted request holds key on weaker terms from now on, or on the same ones.
func (f *FIFO) Lowered(key string, at lockfsm.Revision, terms Terms) error {
	q := f.queue(key)
	i, found := q.find(at)
	if f.err == nil && (!found || !q.row[i].granted || !q.row[i].terms.includes(terms)) {
		return f.broken("fifo: key %q: the request at place %d gets the terms %+v, and does not hold it on terms that "+
			"exclude more", key, at, terms)
	}
	if found {
		q.row[i].terms = terms
	}
	return f.err
}

// Waits reports whether any request waits for key and may not share it with a holder on these
// terms.
func (f *FIFO) Waits(key string, holder Terms) bool {
	for _, p := range f.queue(key).row {
		if !p.granted && !holder.Beside(p.terms) {
			return true
		}
	}
	return false
}
