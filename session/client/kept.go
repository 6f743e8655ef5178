package client

import (
	"bytes"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/stay"
)

// kept is the shell of a part of the stays. Callers and the client's goroutine use them under mu,
// which is never held while waiting. A pass is granted under mu, after a reading of the clock, and
// its loss is marked under mu before a later deadline is published. So a renewal cannot make a lost
// pass valid again.
type kept struct {
	mu    sync.Mutex
	stays *stay.Set
	_     [128 - 16]byte // processors that use different parts must not share a cache line
}

// The stays of a client are in several parts, so that few callers wait for each other. Each key
// belongs to one part. A part may have its share of Config.Stays, so a small limit makes one part.
const (
	keptParts = 16
	leastPart = 64 // stays
)

// keptAll has the parts. They are made by the first sticky call: most sessions have none.
type keptAll struct {
	parts atomic.Pointer[[]*kept] // nil until then; not changed afterwards
	seed  maphash.Seed            // see keptOf; set with the parts

	mu      sync.Mutex // guards leaving, and the making of the parts
	leaving error      // for stays that are made after Leave
}

// all returns the parts, or none before the first sticky call.
func (a *keptAll) all() []*kept {
	if all := a.parts.Load(); all != nil {
		return *all
	}
	return nil
}

func (a *keptAll) make(config *Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all() != nil {
		return
	}
	n := min(max(config.Stays/leastPart, 1), keptParts)
	all := make([]*kept, n)
	for i := range all {
		all[i] = &kept{stays: stay.NewSet(config.Stays/n, config.StayIdle)}
		if a.leaving != nil {
			all[i].stays.Leave(a.leaving)
		}
	}
	a.seed = maphash.MakeSeed()
	a.parts.Store(&all)
}

// leave must be called before Leave of the parts.
func (a *keptAll) leave(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaving = err
}

// keptOf returns the part of the stays to which a key belongs. There was a sticky call.
func (c *Client) keptOf(key string) *kept {
	all := c.kept.all()
	if len(all) == 1 {
		return all[0]
	}
	return all[maphash.String(c.kept.seed, key)%uint64(len(all))]
}

// window must be called under kept.mu.
func (c *Client) window() stay.Window {
	now := c.config.Clock.Now() // before the deadlines are read; see Hold
	return stay.Window{Now: now, Safe: clock.Time(c.safe.Load()), Deadline: clock.Time(c.deadline.Load()),
		TTL: time.Duration(c.ttl.Load())}
}

// Pass is one call for a lock that the client may keep. The caller sets the fields Key, Shared, Try
// and Notice, which is as in Terms. The other fields are guarded by kept.mu.
type Pass struct{ stay.Caller }

// Request returns an ordinary request for the lock.
func (p *Pass) Request() *Request {
	r := &Request{Key: p.Key, Try: p.Try}
	if p.Shared || p.Notice {
		r.Terms = &Terms{Notice: p.Notice}
	}
	if p.Shared {
		r.Terms.Permits = 1
	}
	return r
}

// AcquireKept is like AcquireInto, but the client may keep the lock after its release, and may
// grant a lock that it has kept.
func (c *Client) AcquireKept(ctx context.Context, h *Hold, p *Pass) error {
	if ctx.Err() != nil {
		return &WaitError{Key: p.Key, Err: ContextError(ctx)}
	}
	h.client, h.pass = c, p
	p.Caller.Caller = h
	switch c.lockKept(h) {
	case stay.Passed:
		return nil
	case stay.Held:
		return c.heldHere(h)
	case stay.Full:
		return errTooMany
	case stay.Waits:
		if referred, err := c.waitKept(ctx, h, p); !referred {
			return err
		}
	}
	h.pass = nil
	return c.AcquireInto(ctx, h, p.Request())
}

func (c *Client) lockKept(h *Hold) stay.Answer {
	if c.kept.all() == nil {
		c.kept.make(&c.config)
	}
	k := c.keptOf(h.pass.Key)
	k.mu.Lock()
	defer k.mu.Unlock()
	answer := k.stays.Lock(c.window(), &h.pass.Caller)
	if answer == stay.Waits {
		h.slot = c.slot()
	}
	k.stays.Carry(posting{c})
	return answer
}

// waitKept waits for the news of a pass. It returns referred true if the caller must ask the group.
func (c *Client) waitKept(ctx context.Context, h *Hold, p *Pass) (referred bool, err error) {
	select {
	case err := <-h.slot:
		c.slots.Put(h.slot)
		return h.pass == nil, err
	case <-ctx.Done():
	}
	k := c.keptOf(p.Key)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stays.Cancel(c.window(), &p.Caller)
	k.stays.Carry(posting{c})
	return false, &WaitError{Key: p.Key, Behind: h.ahead.Load(), Err: ContextError(ctx)}
}

// heldHere returns the error for a Try that has met another caller of this client.
func (c *Client) heldHere(h *Hold) *HeldError {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := &HeldError{Key: h.pass.Key, Session: c.status.Session, Record: bytes.Clone(c.record), Token: h.pass.Token()}
	h.ahead.Store(err)
	return err
}

// unlockKept ends a pass. The reading of the clock decides whether the lock was held until now. If
// lapsed is not empty, the group records the pass as expired, with this reason.
func (c *Client) unlockKept(h *Hold, lapsed string) error {
	k := c.keptOf(h.pass.Key)
	k.mu.Lock()
	defer k.mu.Unlock()
	w := c.window()
	h.mu.Lock()
	if !w.Now.Before(w.Deadline) {
		_ = h.endIn(ErrLost, LossLease, w.Deadline)
	}
	err := h.endIn(ErrReleased, 0, 0)
	h.mu.Unlock()
	if lapsed != "" && err == ErrReleased {
		k.stays.Lapse(w, &h.pass.Caller, lapsed)
	} else {
		k.stays.Unlock(w, &h.pass.Caller)
	}
	k.stays.Carry(posting{c})
	if err == ErrReleased {
		return nil
	}
	return err
}

// yield must be called before a request is sent to the group.
func (c *Client) yield(r *Request) {
	if c.kept.all() == nil {
		return
	}
	do := func(key string, f func(*stay.Set)) {
		k := c.keptOf(key)
		k.mu.Lock()
		defer k.mu.Unlock()
		f(k.stays)
		k.stays.Carry(posting{c})
	}
	r.before(func(key string) { do(key, func(s *stay.Set) { s.Yield(key) }) },
		func(q *stay.Request) { do(q.Key, func(s *stay.Set) { s.Nested(q) }) })
}

// stayOf returns the request of the stay of a pass.
func (c *Client) stayOf(p *Pass) *Request {
	k := c.keptOf(p.Key)
	k.mu.Lock()
	defer k.mu.Unlock()
	if q := k.stays.Request(&p.Caller); q != nil {
		return q.Of.(*Request)
	}
	return p.Request()
}

// posting passes the commands of the stays to the client's goroutine. It is used under kept.mu.
type posting struct{ *Client }

// Do implements stay.Outlets.
func (c posting) Do(command *stay.Command) error {
	if !c.post(input{kind: inputStay, stay: command}) {
		return ErrClosed
	}
	return nil
}

// Tell implements stay.Outlets.
func (c posting) Tell(n *stay.News) {
	h := n.Caller.Caller.(*Hold)
	switch n.Kind {
	case stay.Granted:
		h.slot <- nil
	case stay.Wanted:
		if h.pass.Notice {
			h.want()
		}
	case stay.Behind:
		h.ahead.Store(n.Info.(*HeldError))
	case stay.Referred:
		h.pass = nil
		h.slot <- nil
	case stay.Failed:
		h.slot <- n.Err
	case stay.Lost:
		h.end(n.Err, n.Info.(Loss), c.lostAt())
	}
}

func (c *Client) lostAt() clock.Time {
	at := c.config.Clock.Now()
	if had := clock.Time(c.deadline.Load()); had != 0 { // the last published deadline; the new one follows
		at = min(at, had)
	}
	return at
}

// direct passes the commands of the stays to the core. Only the goroutine may use it, between the
// inputs of a turn.
type direct struct{ posting }

// Do implements stay.Outlets.
func (c direct) Do(command *stay.Command) error {
	c.core.Stay(c.now, command)
	return nil
}

func (c *Client) keptDo(f func(*stay.Set)) {
	for _, k := range c.kept.all() {
		k.do(f, direct{posting{c}})
	}
}

func (k *kept) do(f func(*stay.Set), o stay.Outlets) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.stays)
	k.stays.Carry(o)
}

func (c *Client) keptLeave(err error) {
	c.kept.leave(err)
	c.had = stay.Counts{}
	c.keptDo(func(s *stay.Set) { s.Leave(err); c.had = c.had.Plus(s.Counts()) })
}

// keptTurn begins a turn of the stays.
func (c *Client) keptTurn(now clock.Time) {
	c.had = stay.Counts{}
	c.keptDo(func(s *stay.Set) { s.Tick(now); c.had = c.had.Plus(s.Counts()) })
}

// keptRenewed is called when the lease was renewed, during the output of the core.
func (c *Client) keptRenewed() {
	for _, k := range c.kept.all() {
		k.do(func(s *stay.Set) { s.Renewed(c.window()) }, posting{c})
	}
}

// counted replaces the counts of a status of the core. The callers of stays count, and the requests
// of stays do not. The core may not have taken the newest commands, so the counts may be wrong
// until its next turn.
func (c *Client) counted(s Status) Status {
	var n stay.Counts
	s.Stays = stay.Totals{}
	for _, k := range c.kept.all() {
		k.mu.Lock()
		s.Stays, n = s.Stays.Plus(k.stays.Totals), n.Plus(k.stays.Counts())
		k.mu.Unlock()
	}
	return s.counted(n)
}

func (s Status) counted(n stay.Counts) Status {
	s.Kept = n.Free
	held, waiting := n.Inside-min(n.Granted, s.Held), n.Waiting-min(n.Asked, s.Waiting)
	s.Held += held
	s.Waiting += waiting
	s.Requests += held + waiting
	return s
}

// heldKeys returns keys that callers hold, for an error text.
func (c *Client) heldKeys() []string {
	return c.core.heldKeys(func(r *Request) bool {
		q := r.stay()
		if q == nil {
			return false
		}
		k := c.keptOf(q.Key)
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.stays.IsFree(q)
	})
}

func (c *Client) next() clock.Time {
	next := c.core.Next()
	for _, k := range c.kept.all() {
		k.mu.Lock()
		t := k.stays.Next(c.now)
		k.mu.Unlock()
		if t != 0 && (next == 0 || t.Before(next)) {
			next = t
		}
	}
	return next
}
