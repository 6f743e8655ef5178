package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/lapse"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Lock is one grant of one key, or of several at once. It is held from the return of the call that
// granted it until Unlock, or until it is lost. With [Request.JeopardyGrace] it can be in doubt
// before it is lost. A lock that was entered again (see [Node.Acquire]) has several handles. Each
// handle is a Lock, and the lock ends when the last of them is unlocked. A Lock must not be copied.
type Lock struct {
	node *Node
	hold client.Hold

	// Only the first handle has the following three. The mutex guards the counts and all handles, and
	// is never held across a wait.
	counting sync.Mutex
	others   int32 // how many handles are not unlocked, minus one
	writers  int32 // how many of them are not readers

	handle handle // see own
}

// handle is what each handle of a lock has of its own.
type handle struct {
	exited atomic.Uint32 // how the handle ended; zero while it has not
	reader bool          // it needs the lock only as shared; guarded by counting
	tree   bool          // it needs the keys below as well: see Request.Tree
	done   bool          // no code can write under it any more; guarded by counting
	raises bool          // it is of an upgradable request that has entered an exclusive hold
	more   atomic.Pointer[handleMore]
}

// handleMore has the fields of a handle that few handles need. Handles replace it to change it.
type handleMore struct {
	again *Lock   // the first handle of the lock; nil in the first handle itself
	other *handle // see own
	limit *handleLimit
	watch *trace.Watch // nil without Hooks.Leaked
	call  *trace.Call  // only in the first handle; nil without observers
	lock  *lockMore    // only in the first handle
}

// lockMore has the fields of a lock that few locks need.
type lockMore struct {
	request *Request      // its Key and parts; nil for a single key
	base    *Lock         // of an upgrade: the first handle of the upgradable lock
	resumed bool          // its parts are those of an earlier request
	trees   int32         // how many handles need the keys below, too; guarded by counting
	values  atomic.Uint64 // the calls of SetValue
}

// seldom returns the rare fields of h.
func (h *handle) seldom() (m handleMore) {
	if p := h.more.Load(); p != nil {
		m = *p
	}
	return m
}

// change changes the rare fields of h. It may call f more than once.
func (h *handle) change(f func(*handleMore)) {
	for {
		before, m := h.more.Load(), handleMore{}
		if before != nil {
			m = *before
		}
		if f(&m); h.more.CompareAndSwap(before, &m) {
			return
		}
	}
}

// further returns a new handle with these rare fields.
func (n *Node) further(m handleMore) *Lock {
	l := &Lock{node: n}
	l.handle.more.Store(&m)
	return l
}

// call returns the call that observers see, or nil. Like more and base, it is for the first handle.
func (l *Lock) call() *trace.Call {
	if m := l.handle.more.Load(); m != nil {
		return m.call
	}
	return nil
}

// observed sets the result of call, before the lock is requested.
func (l *Lock) observed(call *trace.Call) {
	if call != nil {
		l.handle.change(func(m *handleMore) { m.call = call })
	}
}

// more returns the rare fields of the lock, or nil.
func (l *Lock) more() *lockMore {
	if m := l.handle.more.Load(); m != nil {
		return m.lock
	}
	return nil
}

// rarely returns the rare fields of the lock to be changed.
func (l *Lock) rarely() *lockMore {
	if l.more() == nil {
		l.handle.change(func(m *handleMore) { m.lock = cmp.Or(m.lock, &lockMore{}) })
	}
	return l.more()
}

// base returns the first handle of the lock that l upgrades, or nil.
func (l *Lock) base() *Lock {
	if m := l.more(); m != nil {
		return m.base
	}
	return nil
}

// own returns the handle of l. A Lock that Hooks.Leaked watches must be referenced by its caller
// only. So the first Lock is watched through a second one, whose other is the handle of the first.
// The handle of an upgrade that raise made is the other of its Lock and of the upgradable one.
func (l *Lock) own() *handle {
	if m := l.handle.more.Load(); m != nil && m.other != nil && !l.handle.raises {
		return m.other
	}
	return &l.handle
}

// count counts the first handle of a lock.
func (l *Lock) count(d *demand) {
	if l.handle.tree = d.trees() || d.resume != 0; l.handle.tree { // a resumed lock may be of a tree
		l.rarely().trees = 1
	}
	l.countAs(d.reads())
}

func (l *Lock) countAs(reader bool) {
	if l.handle.reader = reader; !reader {
		l.writers = 1
	}
}

// firstLock is a lock and its request, in one allocation.
type firstLock struct {
	Lock
	request client.Request
}

// ask asks the group for a lock.
func (n *Node) ask(ctx context.Context, by *client.Client, d *demand, under *client.Request,
	call *trace.Call) (*Lock, error) {
	l := &firstLock{Lock: Lock{node: n}}
	l.observed(call)
	l.count(d)
	if d.resume != 0 || !d.single() {
		m := l.rarely()
		m.resumed = d.resume != 0
		m.request = &Request{Key: d.Key, Mode: d.Mode, Tree: d.Tree, Also: slices.Clone(d.Also)}
	}
	d.ask(&l.request, under)
	d.mark(call.Mark(), &l.request)
	call.Asks(&l.request, &l.hold)
	if err := by.AcquireInto(ctx, &l.hold, &l.request); err != nil {
		return nil, err
	}
	if g := l.hold.Grant(); d.resume != 0 && g.Reads() {
		l.handle.reader, l.writers = true, 0
	}
	return &l.Lock, nil
}

// Key returns the key that names the lock: Request.Key, or the key that was passed to the call. A
// further handle of a lock has the key of the first.
func (l *Lock) Key() string {
	f := l.first()
	if m := f.more(); m != nil && m.request != nil {
		return m.request.Key
	}
	return f.hold.Key()
}

// Token returns the fencing token of this grant. It never changes.
func (l *Lock) Token() Token { return Token(l.first().hold.Token()) }

// Err returns nil while the lock is held, and afterwards ErrLost or ErrUnlocked, with the reason.
// Each call reads the clock, so Err reports a loss immediately after a pause that was longer than
// the lease. Once Err has returned an error it never returns nil again, except that with
// [Request.JeopardyGrace] it can return ErrInJeopardy, which is not final; see [Lock.Regain].
func (l *Lock) Err() error {
	switch how := l.own().exited.Load(); {
	case how == handleIsLeft:
		return ErrUnlocked
	case how == handleIsOverdue || how == 0 && l.pastLimit():
		return client.OverdueError{}
	}
	return lossOf(l.first().hold.Err())
}

// Beat reports that the work under the lock moves, for [Request.MaxIdle]. It costs one atomic
// addition, so call it for each item of the work. A Beat of any handle of the lock counts, and that
// of an upgrade counts for the lock that it upgrades. Beat has no effect without MaxIdle, on a lock
// of [Node.LockSticky], or on a lock that has ended.
func (l *Lock) Beat() { l.beating().Beat() }

// beating returns the hold that a Beat of l keeps.
func (l *Lock) beating() *client.Hold {
	f := l.first()
	if base := f.base(); base != nil {
		f = base
	}
	return &f.hold
}

// Done returns a channel that is closed when the lock is no longer held, for any reason, or is in
// doubt. After a doubt, Done returns another channel. The channel may be closed shortly after Err
// begins to return an error, so call Err before an effect that matters. If the lock was entered
// again, the channel is closed at the end of the lock, not at this handle's Unlock.
func (l *Lock) Done() <-chan struct{} {
	f := l.first()
	f.counting.Lock() // enter, which gives the first handle its own limit, may run
	defer f.counting.Unlock()
	if limit := l.own().seldom().limit; limit != nil {
		return limit.done(&f.hold)
	}
	return f.hold.Done()
}

// Wanted returns a channel that is closed when another request has to wait for this lock. This
// happens only if the request of this lock has set [Request.Notice]. The holder need not unlock.
func (l *Lock) Wanted() <-chan struct{} { return l.first().hold.Wanted() }

// Context returns a child of parent that ends when the lock is lost, in doubt or released, or when
// the node begins to leave. Its cause (context.Cause) is ErrLost, ErrInJeopardy, ErrUnlocked,
// ErrLeaving or ErrClosed. If the lock has already ended, the returned context has ended.
// [TokenFrom] returns the token from that context. Call Context once per lock, and once after each
// Regain, because each call costs a goroutine until parent or the lock ends.
func (l *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(&scope{parent, l})
	done := l.Done()                 // before the check: after a doubt there is another channel
	if err := l.over(); err != nil { // checked here because Done may be closed a little later
		cancel(err)
		return ctx
	}
	watched := l.node.engine.Spawn(func() {
		select {
		case <-done:
			cancel(l.ended())
		case <-l.node.engine.Leaving():
			cancel(ErrLeaving)
		case <-ctx.Done():
			cancel(nil)
		}
	})
	if !watched {
		cancel(ErrClosed)
	}
	return ctx
}

func (l *Lock) ended() error {
	if l.own().exited.Load() == handleIsOverdue {
		return client.OverdueError{}
	}
	return cmp.Or(lossOf(l.first().hold.Err()), ErrInJeopardy) // the lock may be good again since
}

// over returns the reason why no work may begin under the lock, or nil.
func (l *Lock) over() error {
	select {
	case <-l.node.engine.Leaving():
		return ErrLeaving
	default:
		return l.Err()
	}
}

// Regain waits until a lock in doubt (see [Request.JeopardyGrace]) is good again, and returns nil,
// or until it has ended, and returns the error of Err. It returns at once if the lock is not in
// doubt. A lock that is good again has the same token, and nothing else was granted in between. Its
// former contexts have ended, so call Context again. It returns ErrLeaving when the node
// begins to leave. If ctx ends first, the error wraps the context's error. After both the lock is
// still in doubt, and to be unlocked.
func (l *Lock) Regain(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		if err := l.Err(); err != ErrInJeopardy {
			return err
		}
		if err := l.first().hold.Regain(ctx); err != nil {
			return lossOf(err)
		}
	}
}

// Downgrade makes an exclusive or upgradable lock shared, with all its keys, without releasing it:
// no writer can get the lock in between, and what this holder wrote is what the readers find. A
// node of a tree stays closed to writers of the nodes below, and so does an exclusive key that is
// also above a tree of the lock. Shared requests directly behind the lock are granted at once. The
// token stays the same. A resumed hold ([Node.Resume]) stays shared. An upgrade of the lock ends.
// For the way back see [Lock.Upgrade].
//
// Downgrade waits for no other holder: ctx bounds only the wait for the confirmation. It returns
// nil once the lock is shared, or was so before. It returns ErrLost or ErrUnlocked if the lock has
// ended, and ErrInJeopardy if it is in doubt: a downgrade that began before goes on if the lock is
// good again. It returns ErrBadRequest for a semaphore, a lock of LockSticky or of Upgrade, and
// while another handle of the lock, which was entered again, is exclusive. After ErrBadRequest the
// lock is as before. If ctx ended before the confirmation, the error wraps the context's error: the
// lock becomes shared when a leader is reached, so use it only as a reader. After every error but
// ErrLost and ErrUnlocked the lock is held, and still to be unlocked.
func (l *Lock) Downgrade(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := l.Err(); err != nil {
		return err
	}
	to, err := l.lower()
	if err != nil || to == nil {
		return err
	}
	err = l.first().hold.Downgrade(ctx, to)
	switch {
	case errors.Is(err, client.ErrUnsupported):
		l.unlower()
		return fmt.Errorf("%w: downgrade %s: the lock is still exclusive", err, shownKey(l.Key()))
	case errors.Is(err, client.ErrNotHeld):
		l.unlower()
		return fmt.Errorf("%w: Downgrade of %s: the group has no such exclusive lock: a semaphore that was "+
			"resumed keeps its permits", ErrBadRequest, shownKey(l.Key()))
	}
	return lossOf(err)
}

func notOfPermits() error { return fmt.Errorf("%w: Downgrade of a semaphore", ErrBadRequest) }

// Put is like [Node.Put], but it takes effect only while this lock is held. It is for data that
// only the holder may write, such as the checkpoint of a job. The group checks the hold and the
// revision together with the change, and key may be any key. So a holder that was paused, and that
// has lost its lock meanwhile, cannot replace what the next holder has written, not even with a Put
// that is still on its way.
//
// Put beats when it is called; see [Lock.Beat]. If the lock has ended, it returns ErrLost or
// ErrUnlocked, and changes nothing, not even later. If ctx ends, the change may take effect later,
// but only while the lock is held. The lock must not be one of [Node.LockSticky]: with
// ErrBadRequest nothing is changed.
func (l *Lock) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	l.Beat()
	if err := l.Err(); err != nil {
		return 0, err
	}
	f := l.first()
	if f.hold.Passed() {
		return 0, fmt.Errorf("%w: Put under a sticky lock, whose callers the group does not know: "+
			"request it with Lock", ErrBadRequest)
	}
	return l.node.put(ctx, &query.PutRequest{Key: []byte(key), Data: data, Revision: revision, Nonce: l.node.nonce(),
		Lock: []byte(f.Key()), Token: uint64(f.Token())})
}

// SetValue changes what other callers see as the Value of this lock: the progress of a job, or the
// new address of a leader. It replaces [Request.Value] and keeps the labels. Peek and HeldError
// show it, and Watch reports an EventHeld with the new Value. It is gone with the lock.
//
// SetValue beats when it is called; see [Lock.Beat]. If several calls overlap, the value of the
// last one stays. SetValue returns nil once the group has the value. If the lock has ended, it
// returns ErrLost or ErrUnlocked. If ctx ends before, the value may change later. ErrBadRequest
// means that the value, with the labels, is longer than 1,024 bytes, or that the lock is one of
// [Node.LockSticky], whose callers the group does not know. ErrNoRoom means that a budget is used
// up.
func (l *Lock) SetValue(ctx context.Context, value string) error {
	l.Beat()
	if err := l.Err(); err != nil {
		return err
	}
	f := l.first()
	if f.hold.Passed() {
		return fmt.Errorf("%w: SetValue of a sticky lock, whose callers the group does not know: request it with Lock",
			ErrBadRequest)
	}
	if base := f.base(); base != nil {
		f = base // an upgrade has no value of its own
	}
	first := f.hold.Grant().Value
	_, labels := shown.Decode(first)
	text := shown.Encode(value, labels, shown.MarkOf(first))
	if len(text) > lockfsm.MaxValueBytes {
		return fmt.Errorf("%w: SetValue: the value and the labels take %d bytes, more than %d", ErrBadRequest, len(text),
			lockfsm.MaxValueBytes)
	}
	q := &query.ValueRequest{Key: []byte(f.Key()), Token: uint64(f.Token()), Seq: f.rarely().values.Add(1), Value: text}
	a, err := look(ctx, l.node, query.QueryClient.SetValue, q)
	if err != nil {
		return err
	}
	switch code := lockfsm.Code(a.Code); code {
	case lockfsm.Done:
		return nil
	case lockfsm.NotHeld:
		return fmt.Errorf("%w: the group has no hold of %s with token %d", ErrLost, shownKey(f.Key()), f.Token())
	case lockfsm.Unsupported:
		return fmt.Errorf("%w: SetValue of %s", ErrUnsupported, shownKey(f.Key()))
	default:
		return fmt.Errorf("SetValue of %s: %w", shownKey(f.Key()), client.BudgetErrorOf(code, a.Budget))
	}
}

// Unlock releases the lock, even if ctx has ended: ctx bounds only the wait for the confirmation.
// After Unlock returns, with or without an error, the handle holds nothing. It returns nil when the
// release is confirmed, even in a repeated call. It returns ErrLost if the lock was lost before, or
// was in doubt and may have been lost, and ErrClosed if the node was closed before the
// confirmation. If ctx ended before the confirmation, the error wraps the context's error, and the
// release takes effect when a leader is reached, or else when the session ends. The release of a
// sticky lock is confirmed at once, by the lease; see [Node.LockSticky].
func (l *Lock) Unlock(ctx context.Context) error {
	if l.handle.more.Load() != nil || !l.hold.Passed() {
		return l.release(ctx, mode{way: trace.Unlock})
	}
	// The usual sticky lock: without observers, and not entered again, so release has less to do.
	left, first := l.exit()
	if left {
		return l.releaseHold(ctx, mode{way: trace.Unlock}, left, first)
	}
	return lossOf(l.hold.Release(ctx))
}

// Detach gives up this handle without ending the hold. The lock stays taken for
// [Request.LockDelay], even after this process has ended, unless [Node.Resume] takes it over by
// its token or [Node.ForceUnlock] ends it. Without a LockDelay, Detach does the same as Unlock.
//
// ctx bounds only the wait for the confirmation. After Detach returns, with or without an error,
// the handle holds nothing. Detach after Unlock, and Unlock after Detach, has no effect. Detach
// returns ErrLost if the lock was lost before; a lost lock also stays taken for its LockDelay. It
// returns ErrNoRoom if the group has too many detached holds (65,536) or sessions, or no room in
// its budget of bytes; the hold has then ended. If the lock was entered again, the call on its last
// handle decides how the lock ends.
func (l *Lock) Detach(ctx context.Context) error {
	if ctx != nil && lapse.Reason(ctx) != "" {
		return l.release(context.Background(), mode{way: trace.Lapse, why: lapse.Reason(ctx)})
	}
	return l.release(ctx, mode{way: trace.Detach})
}

// mode is the way in which a handle is ended. The field why is set for a lapse.
type mode struct {
	way trace.Way
	why string
}

func (l *Lock) release(ctx context.Context, how mode) error {
	if ctx == nil {
		ctx = context.Background() // a nil context must not prevent the release
	}
	if l.endOverdue() {
		l.retire()
		return client.OverdueError{}
	}
	left, first := l.exit()
	return l.releaseHold(ctx, how, left, first)
}

func (l *Lock) releaseHold(ctx context.Context, how mode, left, first bool) error {
	f := l.first()
	l.own().seldom().watch.Stop()
	call := f.call()
	told := call.Releasing(trace.Release{Way: how.way, Last: !left, First: first})
	var err error
	switch {
	case left:
		err = f.leave(first)
	case how.way == trace.UnlockSoon:
		err = f.hold.ReleaseSoon()
	case how.way == trace.Detach:
		err = f.hold.Detach(ctx)
	case how.way == trace.Lapse:
		err = f.hold.Lapse(how.why)
	default:
		err = f.hold.Release(ctx)
	}
	err = lossOf(err)
	call.Released(ctx, told, err)
	return err
}

// watched returns l. If Hooks.Leaked is set, it returns a handle of l that is reported if the
// handle becomes unreachable before it is unlocked.
func (n *Node) watched(l *Lock) *Lock {
	if !n.trace.FindsLeaks() {
		return l
	}
	f := l.first()
	if l == f {
		l = n.further(handleMore{again: l, other: &l.handle})
	}
	watch := trace.WatchHandle(l, f.call())
	l.own().change(func(m *handleMore) { m.watch = watch })
	return l
}

// leave returns the result of Unlock for a handle that is not the last one of its lock. The first
// call of Unlock returns ErrLost if the lock is lost, and ErrInJeopardy if it is in doubt.
// Otherwise the result is nil.
func (l *Lock) leave(first bool) error {
	if err := l.hold.Err(); first && err != ErrUnlocked {
		return err
	}
	return nil
}

// UnlockSoon releases the lock without waiting for a confirmation. It returns nil, or ErrLost if
// the lock was lost before or is in doubt. After it returns, the handle holds nothing. The next
// waiter is granted the lock as early as with Unlock.
//
// UnlockSoon saves a round trip to a majority of the voters. It lacks three guarantees of Unlock.
// It does not report whether the lock was still held: call Err before the last effect, or fence it
// with the token. If the process dies directly after the call, the lock can stay taken until its
// session ends. TryLock may report the lock as held after UnlockSoon has returned. Call Unlock
// afterwards to wait for the confirmation.
func (l *Lock) UnlockSoon() error {
	return l.release(context.Background(), mode{way: trace.UnlockSoon})
}
