package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// Limits of the queries to the leader. Several queries may be necessary to answer one question.
const (
	fresh       = time.Second            // time for which an answer is reused
	askWithin   = time.Second            // longest time of the queries for one answer
	blindWithin = 250 * time.Millisecond // the same while there is no leader
	turnWithin  = 2 * time.Second        // longest wait for the queries of other requests
	answersKept = 16                     // number of stored answers for prefixes and single keys

	keysRead   = 1000 // keys that are read to find those held longest and those with the most waiters
	maxFound   = 200
	maxMembers = 100
	maxPeeks   = 6 // number of keys whose whole queue is read for the picture of waiting requests
	queueShown = 3 // List returns at most this many entries of a queue
)

// question is what a viewer requests. The zero value means all keys.
type question struct {
	prefix string
	wide   bool // read keysRead keys with the prefix, because a filter selects among them
	key    string
	after  string // if set, the question is about the members after this session
}

type answer struct {
	tried  time.Time // when the leader was last queried
	seen   time.Time // when the leader last returned the keys; zero means never
	keys   []mortise.KeyInfo
	more   bool            // keys exist that were not read
	health *mortise.Health // only in the answer for all keys; nil if the leader has not answered
	ends   []mortise.Event // abnormal ends of holds; only in the answer for all keys

	sessions []mortise.SessionInfo // only in the answer for all keys
	// In the answer for all keys, this is the first page of the members. In an answer about members,
	// it is the requested page. Nil means that the leader has not answered.
	members []mortise.Member
	before  []mortise.Member // the first page of an earlier answer, if the leader has not answered since
	total   int              // members, at the last answer of the leader
	err     error            // the error of the last query
}

// answers stores the last answers. A request whose answer is old queries the leader. Only one
// request queries the leader at a time, and the others wait for it.
type answers struct {
	turn chan struct{} // held by the request that queries the leader

	mu  sync.Mutex // guards all; never held while blocking
	all map[question]*answer
}

var errBusy = errors.New("other requests are reading the locks; try again in a moment")

func (l *answers) at(q question, now time.Time) (last *answer, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last = l.all[q]
	return last, last != nil && now.Sub(last.tried) < fresh
}

func (l *answers) keep(q question, a *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[question]*answer{}
	}
	l.all[q] = a
	for len(l.all) > answersKept+1 {
		var oldest question
		for other, a := range l.all {
			if other != (question{}) && (oldest == question{} || a.tried.Before(l.all[oldest].tried)) {
				oldest = other
			}
		}
		delete(l.all, oldest)
	}
}

func (l *answers) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q, a := range l.all {
		old := *a
		old.tried = time.Time{}
		l.all[q] = &old
	}
}

// answerTo returns the answer to q. If the last answer is old, it waits until other requests have
// finished their queries, and then queries the leader. Only that wait is limited by ctx. answerTo
// never returns nil, and the caller must not change the result.
func (h *handler) answerTo(ctx context.Context, q question) *answer {
	last, good := h.answers.at(q, time.Now())
	if good {
		return last
	}
	select {
	case h.answers.turn <- struct{}{}:
		defer func() { <-h.answers.turn }()
	case <-ctx.Done():
		return last.old(errBusy)
	}
	now := time.Now()
	if last, good = h.answers.at(q, now); good {
		return last // another request has queried the leader in the meantime
	}
	within := askWithin
	if !h.node.Status().Attached {
		within = blindWithin // no leader can answer, so do not wait long
	}
	asking, done := context.WithTimeout(context.WithoutCancel(ctx), within) // other requests wait for the answer too
	defer done()
	a := h.ask(asking, q, now)
	if a.err != nil {
		a = last.old(a.err)
		a.tried = now
	}
	h.answers.keep(q, a)
	return a
}

func (h *handler) ask(ctx context.Context, q question, now time.Time) *answer {
	a := &answer{tried: now}
	switch {
	case q.key != "":
		var info mortise.KeyInfo
		if info, a.err = h.node.Peek(ctx, q.key); a.err == nil {
			a.keys = []mortise.KeyInfo{info}
		}
	case q.prefix != "":
		most := maxFound
		if q.wide {
			most = keysRead
		}
		h.walk(ctx, a, q.prefix, most)
	case q.after != "":
		a.err = h.membersBehind(ctx, a, q.after)
	default:
		if h.walk(ctx, a, "", keysRead); a.err == nil {
			h.deepen(ctx, a.keys)
		}
		if a.health = h.health(ctx); a.health != nil {
			a.total = a.health.Members
		}
		a.ends, _ = h.node.Audit(ctx) // ignore the error: the next query then fails too
		a.sessions, _ = h.node.Sessions(ctx)
		_ = h.membersBehind(ctx, a, "")
	}
	if a.err == nil {
		a.seen = time.Now()
	}
	return a
}

// walk adds the keys that begin with prefix to the answer a. If ctx ends after some keys have been
// read, walk keeps these keys and sets a.more.
func (h *handler) walk(ctx context.Context, a *answer, prefix string, most int) {
	for info, err := range h.node.List(ctx, prefix) {
		switch {
		case err != nil && len(a.keys) > 0 && errors.Is(err, context.DeadlineExceeded):
			a.more = true
			return
		case err != nil:
			a.err = err
			return
		case len(a.keys) == most:
			a.more = true
			return
		}
		info.Queue = slices.Clone(info.Queue)
		a.keys = append(a.keys, info)
	}
}

func (h *handler) membersBehind(ctx context.Context, a *answer, after string) error {
	page := make([]mortise.Member, 0, maxMembers)
	for m, err := range h.node.Members(ctx, after) {
		if err != nil {
			return err
		}
		if page = append(page, m); len(page) == maxMembers {
			break
		}
	}
	a.members = page
	return nil
}

// deepen reads the whole queues of the keys with the most waiters, because List returns only the
// first entries of each queue.
func (h *handler) deepen(ctx context.Context, keys []mortise.KeyInfo) {
	var long []int
	for i := range keys {
		if keys[i].Waiting > 0 && keys[i].Held+keys[i].Waiting > queueShown {
			long = append(long, i)
		}
	}
	slices.SortStableFunc(long, func(i, j int) int { return keys[j].Waiting - keys[i].Waiting })
	for _, i := range long[:min(len(long), maxPeeks)] {
		info, err := h.node.Peek(ctx, keys[i].Key)
		if err != nil {
			return // the entries from List are still valid
		}
		if len(info.Queue) > 0 {
			keys[i] = info
		}
	}
}

func (h *handler) health(ctx context.Context) *mortise.Health {
	if s := h.node.Status(); s.Health != nil {
		return s.Health
	}
	health, err := h.node.Health(ctx)
	if err != nil {
		return nil
	}
	return &health
}

// old returns a copy of l whose error is set to why. If l is nil, it returns an empty answer with
// that error. It is used when the leader cannot be queried.
func (l *answer) old(why error) *answer {
	if l == nil {
		return &answer{err: why}
	}
	was := *l
	if was.members != nil {
		was.before = was.members
	}
	was.err, was.health, was.members = why, nil, nil
	return &was
}

// For the answer for all keys, the method those returns a copy that has only the keys that match.
// It is used when the leader does not answer.
func (l *answer) those(match func(key string) bool) *answer {
	found := *l
	found.keys = slices.DeleteFunc(slices.Clone(l.keys), func(k mortise.KeyInfo) bool { return !match(k.Key) })
	return &found
}
