package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// TokenFrom returns the fencing token of the innermost lock that ctx belongs to. It reports false
// if ctx does not come from [Lock.Context], [Node.Do] or [ContextWithToken].
func TokenFrom(ctx context.Context) (Token, bool) { return locker.TokenFrom(ctx) }

// ContextWithToken returns a child of parent in which [TokenFrom] finds token. It is for types that
// replace a Node, such as a fake in a test. ContextWithToken locks nothing. The returned context
// ends only when parent ends, and requests that use it are made under the locks of parent.
func ContextWithToken(parent context.Context, token Token) context.Context {
	return locker.ContextWithToken(parent, token)
}

// Beat calls [Lock.Beat] for each lock that ctx belongs to, so a nested worker also beats for the
// work around it. It makes no allocation. It does nothing if ctx comes from no lock.
func Beat(ctx context.Context) {
	for s := scopeOf(ctx); s != nil; s = s.outer() {
		s.lock.Beat()
	}
}

// scope is the context of a lock, and a list of the locks under which a request is made: the next
// one is that of its parent.
type scope struct {
	context.Context
	lock *Lock
}

type scopeKey struct{}

// Value returns the scope for its own key, and the lock for the key of [TokenFrom].
func (s *scope) Value(key any) any {
	switch key.(type) {
	case scopeKey:
		return s
	case locker.HeldKey:
		return s.lock
	}
	return s.Context.Value(key)
}

// outer returns the scope around s, or nil.
func (s *scope) outer() *scope { return scopeOf(s.Context) }

func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// scope searches ctx for the locks under which d is made. If one of them covers d, scope returns a
// new handle of that lock. Otherwise it returns the request of the innermost held lock of the same
// session. If a lock was entered again, the position of its first handle counts, because the locks
// acquired after that handle stay held while d waits.
func (n *Node) scope(ctx context.Context, client *client.Client, d *demand) (again *Lock, under *client.Request,
	err error) {
	if ctx.Err() != nil {
		return nil, nil, nil // the caller must fail the request
	}
	inner := scopeOf(ctx)
	if inner == nil {
		return nil, nil, nil // the usual case
	}
	for s := inner; s != nil; s = s.outer() {
		if s.lock.first().node != n {
			continue
		}
		l := s.lock.first()
		switch err := s.lock.Err(); {
		case errors.Is(err, ErrInJeopardy): // the request could wait for its own lock forever
			return nil, nil, n.explain(d.String(), err)
		case err != nil:
			continue
		}
		enters := l
		if base := l.base(); base != nil && d.reads() {
			enters = base // a reader outlives the upgrade
		}
		if enters.covers(d) {
			if err := enters.enterable(&d.Request); err != nil {
				return nil, nil, err
			}
			if enters.enter(d) {
				again := n.further(handleMore{again: enters})
				again.handle.reader, again.handle.tree = d.reads(), d.trees()
				again.handle.raises = d.Mode == Upgradable && !enters.hold.Upgradable()
				again = n.watched(again)
				again.limitTo(d.MaxHold) // last, because its goroutine may end the handle immediately
				return again, nil, nil
			}
		}
	}
	under, err = n.innermost(ctx, client)
	return nil, under, err
}

// innermost returns the request of the innermost held lock of the client's session that ctx belongs
// to, or nil. It returns ErrInJeopardy if a lock of ctx is in doubt.
func (n *Node) innermost(ctx context.Context, client *client.Client) (under *client.Request, err error) {
	nearest := -1
	for s, at := scopeOf(ctx), 0; s != nil; s, at = s.outer(), at+1 {
		l := s.lock.first()
		if l.node != n {
			continue
		}
		switch err := s.lock.Err(); {
		case errors.Is(err, ErrInJeopardy):
			return nil, err
		case err != nil || !l.hold.Of(client):
			continue
		}
		if began := at + s.began(); under == nil || began < nearest {
			under, nearest = l.hold.Request(), began
		}
	}
	return under, nil
}

// began returns the distance, in scopes, from s to the outermost scope with the same lock.
func (s *scope) began() (further int) {
	at := 0
	for o := s; o != nil; o = o.outer() {
		if o.lock.first() == s.lock.first() {
			further = at
		}
		at++
	}
	return further
}

func (l *Lock) first() *Lock {
	if m := l.handle.more.Load(); m != nil && m.again != nil {
		return m.again
	}
	return l
}

// covers reports whether the hold of l includes all that d asks for. A Resume names its hold, so no
// other covers it.
func (l *Lock) covers(d *demand) bool {
	has := l.hold.Grant()
	if own := d.own(); d.resume != 0 || !own.CoveredBy(&has) {
		return false
	}
	return !slices.ContainsFunc(d.Also, func(p Part) bool {
		part := modes.Part{Key: p.Key, Mode: modes.Mode(p.Mode), Tree: p.Tree}
		return !part.CoveredBy(&has)
	})
}

// enter adds a handle to the lock. It returns false if all handles are already unlocked, or if the
// lock has become shared and does not cover d any more.
func (l *Lock) enter(d *demand) bool {
	l.counting.Lock()
	defer l.counting.Unlock()
	if l.others < 0 || !l.covers(d) || !l.share() {
		return false
	}
	want := d.wants()
	l.call().Enters(&want)
	l.others++
	if !d.reads() {
		l.writers++
	}
	if d.trees() {
		l.rarely().trees++
	}
	return true
}

// lower makes l a reader, and begins to make the lock shared if that is possible. From then on only
// readers can enter the lock. It returns the modes that the group is asked for, or nil if it is
// not.
func (l *Lock) lower() (to []lockfsm.Mode, err error) {
	f := l.first()
	f.counting.Lock()
	defer f.counting.Unlock()
	g := f.hold.Grant()
	switch {
	case l.own().exited.Load() != 0:
		return nil, ErrUnlocked
	case g.Semaphore():
		return nil, notOfPermits()
	case f.hold.Upgraded():
		return nil, fmt.Errorf("%w: Downgrade of an upgraded lock: unlock it, and %s is upgradable again", ErrBadRequest,
			shownKey(f.Key()))
	case g.Reads() && !f.hold.Lowered() || l.own().reader && (f.writers > 0 || f.hold.Passed()):
		return nil, nil
	case l.own().reader:
		return l.lowersTo(), nil // another call has begun the downgrade; the group may not have confirmed it
	case f.hold.Passed():
		return nil, fmt.Errorf("%w: Downgrade of a sticky lock, which the session keeps for its next exclusive callers: "+
			"request it as Shared, or with Lock", ErrBadRequest)
	case f.writers-f.writes(l.raised()) > 1:
		return nil, fmt.Errorf("%w: Downgrade of %s, which was entered again as an exclusive lock and not unlocked",
			ErrBadRequest, shownKey(f.Key()))
	}
	if up := l.raised(); up != nil {
		f.endRaised(up, 0)
		f.writesNoMore(up)
	}
	l.own().reader, f.writers = true, f.writers-1
	f.call().Downgrades()
	to = l.lowersTo()
	f.hold.DowngradeSoon(to) // before a writer can enter
	return to, nil
}

// writes returns 1 if own, which may be nil, counts as a writer. The caller holds counting.
func (l *Lock) writes(own *handle) int32 {
	if own == nil || own.done || own.reader {
		return 0
	}
	return 1
}

// unlower makes l exclusive again, after the group has refused to make the lock shared.
func (l *Lock) unlower() {
	f := l.first()
	f.counting.Lock()
	defer f.counting.Unlock()
	if own := l.own(); own.exited.Load() == 0 && own.reader {
		own.reader, f.writers = false, f.writers+1
	}
}

const (
	handleIsLeft uint32 = iota + 1 // unlocked while other handles still held the lock
	handleWasLast
	handleIsOverdue // ended by its own MaxHold
)

// exit subtracts one from the number of handles, on its first call for l. It reports whether other
// handles still hold the lock, and whether this was the first call. A concurrent call blocks until
// the handle is marked as unlocked.
func (l *Lock) exit() (left, first bool) { return l.exitAs(0) }

// exitAs does what exit does, and records how the handle ended. If how is 0, the handle was
// unlocked.
func (l *Lock) exitAs(how uint32) (left, first bool) {
	f, own := l.first(), l.own()
	f.counting.Lock()
	defer f.counting.Unlock()
	if before := own.exited.Load(); before != 0 {
		return before == handleIsLeft, false
	}
	f.endRaised(l.raised(), how)
	f.others--
	if f.others >= 0 {
		own.end(cmp.Or(how, handleIsLeft))
		if g := f.hold.Grant(); how != handleIsOverdue || g.Delay == 0 {
			f.writesNoMore(l.raised())
			f.writesNoMore(own)
		}
		return true, true
	}
	own.end(cmp.Or(how, handleWasLast))
	return false, true
}

// end records how the handle has ended. The caller holds counting.
func (h *handle) end(how uint32) {
	h.exited.Store(how)
	if limit := h.seldom().limit; limit != nil {
		close(limit.ended)
		if how == handleIsOverdue {
			limit.end()
		}
	}
}

// raise enters the exclusive hold of l once more, as the upgrade of l, an upgradable handle. The
// hold excludes all others already, and stays exclusive until both handles have ended.
func (l *Lock) raise() (*Lock, error) {
	f, own := l.first(), l.own()
	f.counting.Lock()
	defer f.counting.Unlock()
	m := own.seldom()
	switch {
	case own.exited.Load() != 0:
		return nil, ErrUnlocked
	case own.reader:
		return nil, notUpgradable(l.Key())
	case m.other != nil && m.other.exited.Load() == 0:
		return nil, f.isUpgraded()
	}
	g := f.hold.Grant()
	f.call().Enters(&g)
	f.others, f.writers = f.others+1, f.writers+1
	raised := &handle{}
	own.change(func(m *handleMore) { m.other = raised })
	up := l.node.watched(l.node.further(handleMore{again: f, other: raised}))
	if m.limit != nil {
		up.limitAt(&handleLimit{until: m.limit.until, text: m.limit.text})
	}
	return up, nil
}

func (f *Lock) isUpgraded() error {
	return fmt.Errorf("%w: Upgrade of %s, which is being upgraded or is upgraded: unlock that upgrade first",
		ErrBadRequest, shownKey(f.Key()))
}

// raised returns the last handle that raise has made for l, or nil. The caller holds counting.
func (l *Lock) raised() *handle {
	if !l.handle.raises {
		return nil
	}
	return l.handle.seldom().other
}

// endRaised ends the upgrade of a handle that ends now. The caller holds counting.
func (l *Lock) endRaised(up *handle, how uint32) {
	if up == nil || up.exited.Load() != 0 {
		return
	}
	l.others--
	up.end(cmp.Or(how, handleIsLeft))
	more := up.seldom()
	more.watch.Stop()
	if more.limit != nil {
		more.limit.end()
	}
}

// writesNoMore records that no code writes under a handle of the lock any more, and makes the lock
// shared if only readers are left. The lock then is what the remaining handles need. A sticky lock
// keeps its kind until it is given back. The caller holds counting.
func (l *Lock) writesNoMore(own *handle) {
	if own == nil || own.done {
		return
	}
	own.done = true
	if own.tree {
		l.more().trees--
	}
	if own.reader {
		return
	}
	if l.writers--; l.writers == 0 && l.others >= 0 && !l.hold.Passed() && l.base() == nil {
		l.call().Downgrades()
		l.hold.DowngradeSoon(l.lowersTo()) // only readers are left
	}
}

// lowersTo returns the modes that the handles of a lock need that are left when all are readers.
// The parts of a resumed lock, and those of further handles, are not known: with a tree among them,
// each exclusive key may be a node. The caller holds counting.
func (l *Lock) lowersTo() []lockfsm.Mode {
	f := l.first()
	g := f.hold.Grant()
	m := f.more()
	if m == nil {
		return g.Readers(false)
	}
	if own := m.request; own != nil && f.others == 0 && l == f && !m.resumed {
		return modes.Readers(own.parts())
	}
	return g.Readers(m.trees > 0)
}

// retire is called when the LockDelay of an overdue handle has passed since its end, or when it is
// unlocked: other handles are left, and until now code may have written under this one.
func (l *Lock) retire() {
	f := l.first()
	f.counting.Lock()
	defer f.counting.Unlock()
	f.writesNoMore(l.raised())
	f.writesNoMore(l.own())
}

// retireLater calls retire after the LockDelay, unless the hold ends or is in doubt before.
func (l *Lock) retireLater() {
	f := l.first()
	g := f.hold.Grant()
	timer := time.NewTimer(g.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.retire()
	case <-f.hold.Done():
	}
}

// Each handle of a lock that was entered again has its own MaxHold. All other terms are those of
// the hold's first request.

// enterable returns an error if r asks for more than the hold of l has. A zero field of r asks for
// nothing.
func (l *Lock) enterable(r *Request) error {
	g, grace, idle := l.hold.Grant(), l.hold.Grace(), l.beating().Idle()
	value, labels := shown.Decode(g.Value)
	field := ""
	switch {
	case client.WholeDelay(r.LockDelay) > g.Delay:
		field = "LockDelay"
	case r.JeopardyGrace > grace:
		field = "JeopardyGrace"
	case r.MaxIdle != 0 && r.MaxIdle != idle:
		field = "MaxIdle"
	case r.Notice && !l.hold.Notice():
		field = "Notice"
	case r.Value != "" && r.Value != value:
		field = "Value"
	case !sameLabels(r.Labels, labels):
		field = "Labels"
	}
	if field == "" {
		return nil
	}
	return &EnteredError{Field: field, key: l.Key()}
}

// sameLabels reports whether a request with the labels asked can enter a hold with the labels has.
// The purpose does not count, because packages add it without a request of the caller.
func sameLabels(asked, has map[string]string) bool {
	own := func(labels map[string]string) map[string]string {
		labels = maps.Clone(labels)
		delete(labels, shown.PurposeLabel)
		return labels
	}
	asked = own(asked)
	return len(asked) == 0 || maps.Equal(asked, own(has))
}

// EnteredError reports that a lock cannot be entered again because the request asks for more than
// the hold has. errors.Is reports it as ErrBadRequest.
type EnteredError struct {
	Field string // the field of Request that asks for more

	key string
}

func (e *EnteredError) Error() string {
	return fmt.Sprintf("%v: Request.%s: lock %q"+
		" is entered again under its own context, and its first request asked for another %s: "+
		"set it there, or leave it out here",
		ErrBadRequest, e.Field, plain.Text(e.key), e.Field)
}

func (e *EnteredError) Is(target error) bool { return target == ErrBadRequest }

// handleLimit is the MaxHold of one of several handles. The only handle of a lock has none, because
// the client ends its hold.
type handleLimit struct {
	until clock.Time
	text  string        // for errors
	ended chan struct{} // closed when the handle ends

	part *client.Part // nil until Done is called; guarded by counting, as is over
	over bool         // the channel of Done is closed
}

// end ends the channel of Done. The caller holds counting.
func (l *handleLimit) end() {
	if l.part != nil && !l.over {
		l.part.End()
	}
	l.over = true
}

// done returns the channel of Done for a handle of h. The caller holds counting.
func (l *handleLimit) done(h *client.Hold) <-chan struct{} {
	if l.part == nil {
		if l.part = h.Part(); l.over {
			l.part.End()
		}
	}
	return l.part.Done()
}

// share makes the MaxHold of the first handle l one of this handle, before there is another. It
// returns false if the hold has reached it. The caller holds counting.
func (l *Lock) share() bool {
	part, until, why, ok := l.hold.Share()
	if part != nil {
		l.limitAt(&handleLimit{until: until, text: why, part: part})
	}
	return ok
}

func (l *Lock) limitTo(longest time.Duration) {
	if longest > 0 {
		l.limitAt(&handleLimit{until: l.node.engine.Now().Add(longest),
			text: fmt.Sprintf("it was entered again and not unlocked within %v, the longest that this request allows",
				longest)})
	}
}

func (l *Lock) limitAt(limit *handleLimit) {
	limit.ended = make(chan struct{})
	l.own().change(func(m *handleMore) { m.limit = limit })
	l.node.engine.Spawn(l.watchLimit) // if it does not run, the node is closed, so the hold has ended
}

// watchLimit ends the handle when its MaxHold has passed. A doubt does not stop the time.
func (l *Lock) watchLimit() {
	limit := l.own().seldom().limit
	for !l.endOverdue() && l.own().exited.Load() == 0 {
		left := limit.until.Sub(l.node.engine.Now())
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-limit.ended:
		case <-l.first().hold.Done():
			ctx, cancel := context.WithTimeout(context.Background(), left)
			err := l.first().hold.Regain(ctx)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return
			}
		}
		timer.Stop()
	}
}

func (l *Lock) pastLimit() bool {
	limit := l.own().seldom().limit
	return limit != nil && !l.node.engine.Now().Before(limit.until)
}

// endOverdue ends the handle l if its MaxHold has passed and l is not unlocked. It reports whether
// l was ended by its MaxHold, in this call or earlier. If l is the last handle, the lock stays
// taken for its LockDelay, because code may still use l.
func (l *Lock) endOverdue() bool {
	if !l.pastLimit() {
		return false
	}
	limit := l.own().seldom().limit
	left, first := l.exitAs(handleIsOverdue)
	if first {
		if g := l.first().hold.Grant(); left && g.Delay > 0 {
			l.node.engine.Spawn(l.retireLater)
		}
		_ = l.releaseHold(context.Background(), mode{way: trace.Lapse, why: limit.text}, left, first)
	}
	return l.own().exited.Load() == handleIsOverdue
}

func notUpgradable(key string) error {
	return fmt.Errorf("%w: Upgrade of %s: the lock was not requested as Upgradable, or was made shared", ErrBadRequest,
		shownKey(key))
}
