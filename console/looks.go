package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// How much is asked of the leader, and how often.
const (
	fresh       = time.Second // for so long an answer is given to whoever asks the same
	lookWithin  = time.Second // for one look
	blindWithin = 250 * time.Millisecond
	turnWithin  = 2 * time.Second // for a request to wait for the looks of others
	looksKept   = 16              // answers to searches and for keys

	lookedAt    = 1000 // keys, for what is longest held and most waited for
	foundMost   = 200  // keys of a search
	membersMost = 100  // members of a page
	peeksMost   = 6    // keys whose whole queue is asked for, for the picture of who waits for whom
	queueShown  = 3    // how much of a queue comes with List
)

// question is what somebody wants to see. The zero value is the picture of all keys.
type question struct {
	prefix string
	key    string
	after  string // members behind this session
}

// look is an answer.
type look struct {
	tried  time.Time // when the leader was asked
	seen   time.Time // when keys were seen; before tried if the leader did not answer then; zero: never
	keys   []mortise.KeyInfo
	more   bool            // there are other keys behind them
	health *mortise.Health // with the picture of all keys; nil: nobody has said
	ends   []mortise.Event // likewise: the abnormal ends of holds

	sessions []mortise.SessionInfo // likewise
	// likewise the first page, and of a question for others that page; nil: the leader has not
	// answered
	members []mortise.Member
	err     error // why this is not what there was when the leader was asked
}

// looks are the answers of the last second. One look is under way at a time, by whoever finds its
// answer old; the others wait for it.
type looks struct {
	turn chan struct{} // taken by whoever looks

	mu  sync.Mutex // guards all; never held across a wait
	all map[question]*look
}

var errBusy = errors.New("others are looking at the locks; ask again in a moment")

// at returns the answer to q that is not older than a second, if there is one, or else the last
// one.
func (l *looks) at(q question, now time.Time) (last *look, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last = l.all[q]
	return last, last != nil && now.Sub(last.tried) < fresh
}

// keep stores an answer, and forgets old ones.
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

// forget makes the next one who asks look anew.
func (l *looks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q, a := range l.all {
		old := *a
		old.tried = time.Time{}
		l.all[q] = &old
	}
}

// look returns an answer to q, by asking the leader if the last one is old. ctx bounds the wait for
// the looks of others. It always returns something, which the caller must not change.
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
		return last // somebody else has looked meanwhile
	}
	within := lookWithin
	if h.node.Status().Session != mortise.SessionAttached {
		within = blindWithin // nobody will answer, so nobody is to wait long for that
	}
	asking, done := context.WithTimeout(context.WithoutCancel(ctx), within) // others wait for it too
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
		h.walk(ctx, a, q.prefix, foundMost)
	case q.after != "":
		a.err = h.membersBehind(ctx, a, q.after)
	default:
		if h.walk(ctx, a, "", lookedAt); a.err == nil {
			h.deepen(ctx, a.keys)
		}
		a.health = h.health(ctx)
		a.ends, _ = h.node.Audit(ctx) // if that fails now, so does what is asked next
		a.sessions, _ = h.node.Sessions(ctx)
		_ = h.membersBehind(ctx, a, "")
	}
	if a.err == nil {
		a.seen = time.Now()
	}
	return a
}

// walk lists the keys that begin with prefix. If the time ends after some have been seen, they are
// the answer.
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
	page := make([]mortise.Member, 0, membersMost)
	for m, err := range h.node.Members(ctx, after) {
		if err != nil {
			return err
		}
		if page = append(page, m); len(page) == membersMost {
			break
		}
	}
	a.members = page
	return nil
}

// deepen asks for the whole queue of those keys for which most wait, since List tells only its
// beginning.
func (h *handler) deepen(ctx context.Context, keys []mortise.KeyInfo) {
	var long []int
	for i := range keys {
		if keys[i].Waiting > 0 && keys[i].Held+keys[i].Waiting > queueShown {
			long = append(long, i)
		}
	}
	slices.SortStableFunc(long, func(i, j int) int { return keys[j].Waiting - keys[i].Waiting })
	for _, i := range long[:min(len(long), peeksMost)] {
		info, err := h.node.Peek(ctx, keys[i].Key)
		if err != nil {
			return // what List told stays true
		}
		if len(info.Queue) > 0 {
			keys[i] = info
		}
	}
}

// health is how the voters stand, as the leader says; nil if there is none who does.
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

// old is what was seen before, when the leader cannot be asked now. l may be nil: nothing was.
func (l *look) old(why error) *look {
	if l == nil {
		return &look{err: why}
	}
	was := *l
	was.err, was.health, was.members = why, nil, nil
	return &was
}

// those answers another question from what was seen of all keys, when the leader cannot be asked.
func (l *look) those(match func(key string) bool) *look {
	found := *l
	found.keys = slices.DeleteFunc(slices.Clone(l.keys), func(k mortise.KeyInfo) bool { return !match(k.Key) })
	return &found
}
