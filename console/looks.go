package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// Limits of the questions to the leader.
const (
	fresh       = time.Second // how long an answer serves the same question
	lookWithin  = time.Second // for one look
	blindWithin = 250 * time.Millisecond
	turnWithin  = 2 * time.Second // how long a request waits for the looks of others
	looksKept   = 16              // answers to searches and for keys

	lookedAt   = 1000 // keys, for the longest held and the most waited for
	maxFound   = 200  // keys of a search
	maxMembers = 100  // members of a page
	maxPeeks   = 6    // keys whose whole queue is read, for the picture of waits
	queueShown = 3    // how much of a queue List returns
)

// question is what a viewer asks for. The zero value asks for all keys.
type question struct {
	prefix string
	key    string
	after  string // members after this session
}

// look is an answer.
type look struct {
	tried  time.Time // when the leader was asked
	seen   time.Time // when the keys were seen; earlier than tried if the leader did not answer then; zero means never
	keys   []mortise.KeyInfo
	more   bool            // there are more keys
	health *mortise.Health // only in the answer about all keys; nil means that the leader has not answered
	ends   []mortise.Event // likewise: the abnormal ends of holds

	sessions []mortise.SessionInfo // likewise
	// For all keys the first page, for a question about members that page. Nil means that the leader
	// has not answered.
	members []mortise.Member
	err     error // why this is older than tried
}

// looks are the answers of the last second. One look is under way at a time, by the request that
// finds its answer old. The others wait for it.
type looks struct {
	turn chan struct{} // held by the request that looks

	mu  sync.Mutex // guards all; never held while blocking
	all map[question]*look
}

var errBusy = errors.New("other requests are reading the locks; try again in a moment")

// at returns the answer to q if it is at most a second old, and otherwise the last answer.
func (l *looks) at(q question, now time.Time) (last *look, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last = l.all[q]
	return last, last != nil && now.Sub(last.tried) < fresh
}

// keep stores an answer and removes old ones.
func (l *looks) keep(q question, answer *look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[question]*look{}
	}
	l.all[q] = answer
	for len(l.all) > looksKept+1 {
		var oldest question
		for other, a := range l.all {
			if other != (question{}) && (oldest == question{} || a.tried.Before(l.all[oldest].tried)) {
				oldest = other
			}
		}
		delete(l.all, oldest)
	}
}

// forget makes the next request look again.
func (l *looks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q, a := range l.all {
		old := *a
		old.tried = time.Time{}
		l.all[q] = &old
	}
}

// look returns an answer to q. It asks the leader if the last answer is old. ctx bounds the wait
// for other requests' looks. look never returns nil, and the caller must not change the result.
func (h *handler) look(ctx context.Context, q question) *look {
	last, good := h.looks.at(q, time.Now())
	if good {
		return last
	}
	select {
	case h.looks.turn <- struct{}{}:
		defer func() { <-h.looks.turn }()
	case <-ctx.Done():
		return last.old(errBusy)
	}
	now := time.Now()
	if last, good = h.looks.at(q, now); good {
		return last // another request has looked meanwhile
	}
	within := lookWithin
	if h.node.Status().Session != mortise.SessionAttached {
		within = blindWithin // there is no leader to answer, so do not wait long
	}
	asking, done := context.WithTimeout(context.WithoutCancel(ctx), within) // other requests wait for the answer too
	defer done()
	answer := h.ask(asking, q, now)
	if answer.err != nil {
		answer = last.old(answer.err)
		answer.tried = now
	}
	h.looks.keep(q, answer)
	return answer
}

// ask asks the leader.
func (h *handler) ask(ctx context.Context, q question, now time.Time) *look {
	a := &look{tried: now}
	switch {
	case q.key != "":
		var info mortise.KeyInfo
		if info, a.err = h.node.Peek(ctx, q.key); a.err == nil {
			a.keys = []mortise.KeyInfo{info}
		}
	case q.prefix != "":
		h.walk(ctx, a, q.prefix, maxFound)
	case q.after != "":
		a.err = h.membersBehind(ctx, a, q.after)
	default:
		if h.walk(ctx, a, "", lookedAt); a.err == nil {
			h.deepen(ctx, a.keys)
		}
		a.health = h.health(ctx)
		a.ends, _ = h.node.Audit(ctx) // if this fails, so does the next question
		a.sessions, _ = h.node.Sessions(ctx)
		_ = h.membersBehind(ctx, a, "")
	}
	if a.err == nil {
		a.seen = time.Now()
	}
	return a
}

// walk lists the keys that begin with prefix. If the time ends after some keys have been seen, it
// returns those.
func (h *handler) walk(ctx context.Context, a *look, prefix string, most int) {
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

// membersBehind asks for a page of the members. It may be empty.
func (h *handler) membersBehind(ctx context.Context, a *look, after string) error {
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

// deepen reads the whole queues of the keys with the most waiters, since List returns only the
// beginning of a queue.
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
			return // what List returned is still true
		}
		if len(info.Queue) > 0 {
			keys[i] = info
		}
	}
}

// health returns the leader's report on the voters, or nil if there is no leader.
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

// old returns what was seen earlier, if the leader cannot be asked now. l may be nil, which means
// that nothing was seen.
func (l *look) old(why error) *look {
	if l == nil {
		return &look{err: why}
	}
	was := *l
	was.err, was.health, was.members = why, nil, nil
	return &was
}

// those answers another question from the data about all keys, if the leader cannot be asked.
func (l *look) those(match func(key string) bool) *look {
	found := *l
	found.keys = slices.DeleteFunc(slices.Clone(l.keys), func(k mortise.KeyInfo) bool { return !match(k.Key) })
	return &found
}
