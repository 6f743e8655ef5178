package check

import "github.com/mortise-lock/mortise/lockfsm"

// Tokens judges promise 2: of two grants of a key, the later has the higher token; over changes of leader, restarts and groups. The
// zero value is ready for use.
type Tokens struct {
	rule
	highest map[string]lockfsm.Token
}

// Grant is told every grant once, in the order of granting: from the front of the log (see [Front]), or from successful calls in the
// order in which they returned.
func (t *Tokens) Grant(key string, token lockfsm.Token) error {
	if t.err != nil {
		return t.err
	}
	if before, seen := t.highest[key]; token == 0 || seen && token <= before {
		return t.broken("tokens: key %q is granted with token %d after token %d", key, token, before)
	}
	if t.highest == nil {
		t.highest = map[string]lockfsm.Token{}
	}
	t.highest[key] = token
	return nil
}

// FIFO judges promise 5: a key is granted to the request that was committed first of those that wait. The zero value is ready for use.
type FIFO struct {
	rule
	queues map[string]*queue
}

// queue is what waits for one key, in the order of places.
type queue struct {
	places []lockfsm.Revision
	newest lockfsm.Revision // ever queued
	served lockfsm.Revision // the place that was granted last
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

// Queued is told each request that is taken in, also one that is granted at once, with its place: the revision at which it was
// committed.
func (f *FIFO) Queued(key string, place lockfsm.Revision) error {
	if f.err != nil {
		return f.err
	}
	q := f.queue(key)
	if place <= q.newest {
		return f.broken("fifo: key %q: a request is queued at place %d after one at %d", key, place, q.newest)
	}
	q.newest = place
	q.places = append(q.places, place)
	return nil
}

// Gone is told each request that ends without having been granted.
func (f *FIFO) Gone(key string, place lockfsm.Revision) error {
	q := f.queue(key)
	for i, p := range q.places {
		if p == place {
			q.places = append(q.places[:i], q.places[i+1:]...)
			break
		}
	}
	return f.err
}

// Granted is told each grant.
func (f *FIFO) Granted(key string, place lockfsm.Revision) error {
	if f.err != nil {
		return f.err
	}
	q := f.queue(key)
	if place <= q.served {
		return f.broken("fifo: key %q: the request at place %d is granted after the one at %d", key, place, q.served)
	}
	q.served = place
	if len(q.places) == 0 || q.places[0] > place {
		return f.broken("fifo: key %q: the request at place %d is granted and does not wait", key, place)
	}
	if q.places[0] < place {
		return f.broken("fifo: key %q: the request at place %d is granted while the one at %d waits", key, place, q.places[0])
	}
	q.places = q.places[1:]
	return nil
}

// NewGroup forgets who waited: the queues of a group end with it.
func (f *FIFO) NewGroup() {
	for _, q := range f.queues {
		q.places = nil
	}
}
