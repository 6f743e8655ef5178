package mortise

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// Lock is one grant of one key, or of several at once, and the only thing that can release it. It
// is held from its birth until Unlock, or until it is lost. A lock that was entered again (see
// [Node.Acquire]) has several handles, which are Locks too, and ends with the last of them. It is
// safe for concurrent use; it must not be copied.
type Lock struct {
	node  *Node
	hold  client.Hold
	call  *trace.Call  // nil without observers
	watch *trace.Watch // nil without Hooks.Leaked

	again    *Lock         // the first handle, if this is another one; then hold and call are that one's
	exited   atomic.Uint32 // how this handle was unlocked; 0: it was not
	counting sync.Mutex    // of the first handle: guards others; never held across a wait
	limit    *handleLimit  // of a handle that has entered a lock again, with a MaxHold of its own
	others   int32         // of the first handle: how many besides one are not unlocked; -1: none is left
}

// Key returns the key that is locked; of several the first in ascending order.
func (l *Lock) Key() string { return l.first().hold.Key() }

// Token returns the fencing token of this grant. It never changes.
func (l *Lock) Token() Token { return Token(l.first().hold.Token()) }

// Err returns nil while the lock is held, and the reason once it is not: ErrLost, or ErrUnlocked.
// It computes from the clock at the call: a process that was stopped past its lease sees the loss
// in the first call that begins when it runs again. Once it is not nil it never becomes nil again.
func (l *Lock) Err() error {
	switch how := l.exited.Load(); {
	case how == handleIsLeft:
		return ErrUnlocked
	case how == handleIsOverdue || how == 0 && l.pastLimit():
		return client.OverdueError{}
	}
	return lossOf(l.first().hold.Err())
}

// Done returns a channel that is closed when the lock is no longer held, for whatever reason. It
// may close a little after Err has changed, since somebody must be scheduled to close it; before an
// effect that matters, ask Err.
//
// A handle of a lock that others have entered again is told of the end of the lock, not of its own
// Unlock.
func (l *Lock) Done() <-chan struct{} {
	if l.limit != nil {
		return l.limit.done
	}
	return l.first().hold.Done()
}

// Wanted returns a channel that is closed when somebody must wait for this lock, if its request has
// asked for that by [Request.Notice]; else it never is. Whoever waits may have given up since. The
// lock stays held: its holder may hurry, or unlock at the next good moment.
func (l *Lock) Wanted() <-chan struct{} { return l.first().hold.Wanted() }

// Context returns a child of parent that ends with the lock: when the lock is lost, released, or
// the node begins to leave. Its cause (context.Cause) is the reason: ErrLost, ErrUnlocked,
// ErrLeaving or ErrClosed. It has ended already if the lock has. [TokenFrom] finds the token in it.
// Each call costs a goroutine until parent or the lock ends: call it once for a lock.
func (l *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, scopeKey{},
		&scope{lock: l, outer: scopeOf(parent)}))
	if err := l.over(); err != nil { // also where nobody has noticed it yet: what follows must not begin
		cancel(err)
		return ctx
	}
	watched := l.node.engine.Spawn(func() {
		select {
		case <-l.Done():
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

// ended returns why Done is closed.
func (l *Lock) ended() error {
	if l.exited.Load() == handleIsOverdue {
		return client.OverdueError{}
	}
	return lossOf(l.first().hold.Err())
}

// over returns why no work may begin under the lock, or nil.
func (l *Lock) over() error {
	select {
	case <-l.node.engine.Leaving():
		return ErrLeaving
	default:
		return l.Err()
	}
}

// Unlock releases the lock. It always does, even if ctx has ended: ctx bounds only the wait for the
// confirmation. After it returns, with any error, the handle holds nothing. It returns nil once the
// release is confirmed, also when called again; ErrLost if the lock was lost before; ErrClosed if
// the node was closed before the confirmation came; and an error that wraps the context's if the
// confirmation did not come in time, in which case the release is under way and takes effect as
// soon as a leader is reached, or else when the session ends.
func (l *Lock) Unlock(ctx context.Context) error { return l.release(ctx, mode{way: trace.Unlock}) }

// Detach lets go of the lock without ending the hold: it stays taken for [Request.LockDelay], also
// when this process is gone, until somebody takes it up by its token with [Request.Resume], or ends
// it by [Node.ForceUnlock]. So a saga holds its lock from one process to the next. Without a
// LockDelay it is Unlock. For this handle it is like Unlock, whichever is called first: ctx bounds
// the wait for the confirmation; after it returns, with any error, the handle holds nothing;
// ErrLost if the lock was lost before (it stays then as well); ErrNoRoom if the group keeps too
// many detached holds, 65,536, or too many sessions, or its budget of bytes is used up, and the
// hold has ended. Of a lock that was entered again only the last handle that is left decides
// whether the hold ends or stays.
func (l *Lock) Detach(ctx context.Context) error { return l.release(ctx, mode{way: trace.Detach}) }

// Lapse lets go of the lock on behalf of a holder that is gone and has not unlocked: it is for a
// program that holds locks for others, as the agent of mortise does for its clients. The lock stays
// taken for [Request.LockDelay], without one it is free at once, and [Node.Watch] and [Node.Audit]
// report that it expired, with why as the Reason, of which 1,024 bytes count. Until all instances
// are of a build that knows Lapse, the Cause is "released". Lapse returns at once, with the errors
// of UnlockSoon. Of a lock that was entered again only the last handle that is left decides how it
// ends.
func (l *Lock) Lapse(why string) error {
	return l.release(context.Background(), mode{way: trace.Lapse, why: why})
}

// mode is how a handle is let go of, and for a lapse why.
type mode struct {
	way trace.Way
	why string
}

// release lets go of this handle.
func (l *Lock) release(ctx context.Context, how mode) error {
	if ctx == nil {
		ctx = context.Background() // it is released in any case
	}
	if l.limit != nil && l.endOverdue() {
		return client.OverdueError{}
	}
	left, first := l.exit()
	return l.releaseHold(ctx, how, left, first)
}

// releaseHold is the part of release behind exit, which has returned left and first.
func (l *Lock) releaseHold(ctx context.Context, how mode, left, first bool) error {
	f := l.first()
	l.watch.Stop()
	told := f.call.Releasing(trace.Release{Way: how.way, Last: !left, First: first})
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
	f.call.Released(ctx, told, err)
	return err
}

// watched returns l, or with Hooks.Leaked a handle of it whose loss the garbage collector can find.
func (n *Node) watched(l *Lock) *Lock {
	if !n.trace.FindsLeaks() {
		return l
	}
	if l.again == nil {
		l = &Lock{node: n, again: l}
	}
	l.watch = trace.WatchHandle(l, l.again.call)
	return l
}

// leave is what the Unlock of a handle returns that leaves the lock to others: ErrLost if it was
// lost by then. Called again it has nothing to add.
func (l *Lock) leave(first bool) error {
	if err := l.hold.Err(); first && err != ErrUnlocked {
		return err
	}
	return nil
}

// UnlockSoon releases the lock and returns at once: the release is on its way, and nobody has
// confirmed it. It returns nil, or ErrLost if the lock was lost before. After it returns the handle
// holds nothing, and whoever waits for the lock is granted it as soon as after Unlock.
//
// It saves the caller a round trip to a majority of the voters, about half of the cost of a lock
// that is held for a moment. It gives up three things. Nobody says whether the lock was held until
// the end; ask Err before the last effect, or fence it with the token. A process that dies in that
// moment can leave the lock taken until its session ends. And whoever learns by another way that
// UnlockSoon has returned may still be told by TryLock that the lock is held. Unlock may be called
// afterwards, to wait after all.
func (l *Lock) UnlockSoon() error {
	return l.release(context.Background(), mode{way: trace.UnlockSoon})
}
