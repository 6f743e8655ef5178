package mortise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/purpose"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Acquire is the general call; Lock, TryLock and Do are made of it. It returns a lock that is held, or an error and then the caller
// holds nothing, now or later. ctx, which must not be nil, bounds the wait: when it ends, Acquire returns at once, with an error that wraps the context's and
// says what the call waited for. If the lock can be granted without waiting, an already ended ctx still fails.
//
// If ctx comes from [Lock.Context] or from Do, the request is made under that lock. If that lock or one around it covers the request already
// it is entered again: the result is another handle of the same hold, with the same token, and the lock is released when each of its handles
// is unlocked. An exclusive lock covers an exclusive and a shared request for any of its keys, a shared one a shared request; permits of a semaphore are
// always asked for anew. MaxHold is each handle's own then: it ends the handle, and the hold if it is the last one. LockDelay, Notice, Value and Labels
// belong to the hold: a request that asks for others than the first one did is refused with an *[EnteredError]. If instead the request would have to wait, by however many steps, for a lock under which it is made itself, it is
// refused with a *[DeadlockError].
func (n *Node) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return n.acquire(ctx, n.client, r)
}

// acquire is Acquire in the session of a client.
func (n *Node) acquire(ctx context.Context, client *client.Client, r Request) (*Lock, error) {
	if r.Labels != nil && purpose.Lasting(r.Labels) {
		n.standby.Add(1)
		defer n.standby.Add(-1)
	}
	call := n.trace.Start(ctx, r.asked())
	l, err := n.obtain(ctx, client, &r, call)
	switch {
	case err != nil:
		call.Refused(ctx, err)
		return nil, err
	case l.again != nil:
		call.Entered(ctx, l.again.call, l.again.hold.Token())
		return l, nil
	}
	call.Granted(ctx)
	return n.watched(l), nil
}

// obtain checks what is asked for, enters a lock again or asks the group for one.
func (n *Node) obtain(ctx context.Context, client *client.Client, r *Request, call *trace.Call) (*Lock, error) {
	if err := n.check(ctx, r); err != nil {
		return nil, err
	}
	again, under, err := n.scope(ctx, client, r)
	if again != nil || err != nil {
		return again, err
	}
	l := &Lock{node: n, call: call}
	asks := marked(call.Mark(), r, r.of(under))
	call.Asks(asks, &l.hold)
	err = client.AcquireInto(ctx, &l.hold, asks)
	call.Answered(err)
	if err != nil {
		return nil, n.explainUnder(under, r, err)
	}
	return l, nil
}

// check refuses a call that cannot succeed.
func (n *Node) check(ctx context.Context, r *Request) error {
	if err := n.admit(ctx); err != nil {
		return err
	}
	if ctx == nil {
		return fmt.Errorf("%w: %s: the context is nil: pass context.Background() if you have none", ErrBadRequest, r.String())
	}
	if !r.ordinary() {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return r.badKeys()
}

// explainUnder is explain for a request that was made under the lock of another one, or nil.
func (n *Node) explainUnder(under *client.Request, r *Request, err error) error {
	err = n.explain(r.String(), err)
	var deadlock *DeadlockError
	if under != nil && errors.As(err, &deadlock) && len(deadlock.Circle) == 1 && deadlock.Circle[0].Key == under.Key {
		deadlock.upgrade = under.Shared()
		deadlock.permits = under.Terms != nil && under.Terms.Of > 0
	}
	return err
}

// admit refuses a call to a node that has ended or leaves.
func (n *Node) admit(ctx context.Context) error {
	if err := n.Err(); err != nil {
		return err
	}
	select {
	case <-n.engine.Leaving():
		return ErrLeaving
	default:
		return nil
	}
}

// Lock waits its turn and returns the lock, held. Waiters are served in the order in which the group received their requests.
func (n *Node) Lock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key})
}

// TryLock returns the lock if it is free, and never queues: a *HeldError (which is ErrHeld) says who holds it; ErrNotReady means that
// the group cannot tell, because there has been no leader for 2 s or its grace is not over. A TryLock that fails says nothing about a
// moment later; Lock with a short context is usually what is wanted.
func (n *Node) TryLock(ctx context.Context, key string) (*Lock, error) {
	return n.Acquire(ctx, Request{Key: key, Try: true})
}

// Do locks key, runs fn and unlocks, also if fn panics. The context given to fn ends when the lock is lost, with the reason as its
// cause; token fences the resource. Do returns the error of locking, of fn, or of unlocking: a nil error means that fn succeeded and
// the lock was held until it returned.
func (n *Node) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) (err error) {
	lock, err := n.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = joined(err, lock.Unlock(ctx)) }()
	return fn(lock.Context(ctx), lock.Token())
}

// joined joins what fn and Unlock have returned. Of a loss that fn has returned already the second error says nothing new.
func joined(fn, unlock error) error {
	if fn != nil && unlock != nil && errors.Is(fn, ErrLost) && strings.Contains(fn.Error(), unlock.Error()) {
		return fn
	}
	return errors.Join(fn, unlock)
}

// explain turns an error of the session room into one of this package, and says what a wait that was broken off waited for.
func (n *Node) explain(doing string, err error) error {
	var held *client.HeldError
	var wait *client.WaitError
	var deadlock *client.DeadlockError
	var denied *session.NotAllowedError
	switch {
	case n.Err() != nil:
		return n.Err()
	case errors.As(err, &denied):
		return (*NotAllowedError)(denied)
	case errors.As(err, &held):
		return n.met(held)
	case errors.As(err, &deadlock):
		return deadlockError(deadlock)
	case errors.Is(err, client.ErrInGrace), errors.Is(err, client.ErrNoLeader):
		return fmt.Errorf("%w: %s: %w%s", ErrNotReady, doing, err, n.because(nil))
	case errors.As(err, &wait):
		return fmt.Errorf("mortise: %s: %w%s", doing, wait.Err, n.because(wait.Behind))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("mortise: %s: %w%s", doing, err, n.because(nil))
	}
	return fmt.Errorf("%w (%s)", err, doing)
}

// met is heldError for a caller of this node. The process before this one, under the same name, can still hold the lock.
func (n *Node) met(e *client.HeldError) *HeldError {
	h := heldError(e)
	h.namesake = h.Holder == n.config.Name && !n.isOwn(e.Session)
	return h
}

func heldError(e *client.HeldError) *HeldError {
	h := &HeldError{
		Key: e.Key, Holder: replica.HolderName(e.Record, e.Session), Token: Token(e.Token), Since: time.UnixMilli(e.SinceUnixMS), Waiters: e.Waiters,
		Session: fmt.Sprint(uint64(e.Session)),
	}
	h.Value, h.Labels = showed(e.Value)
	return h
}

func deadlockError(e *client.DeadlockError) *DeadlockError {
	d := &DeadlockError{}
	for _, link := range e.Circle {
		d.Circle = append(d.Circle, DeadlockLink{Holder: replica.HolderName(link.Record, link.Session), Key: link.Key})
	}
	return d
}

// because says what a wait waits for, as the end of an error's text: what the node itself waits for, or else who held the lock when
// the request was queued.
func (n *Node) because(behind *client.HeldError) string {
	if waiting := n.Status().Waiting; waiting != "" {
		return " (" + waiting + ")"
	}
	if behind == nil {
		return ""
	}
	h := n.met(behind)
	holder, advice := h.Holder, ""
	switch {
	case n.isOwn(behind.Session):
		holder, advice = "this instance itself", "; to enter a lock again, pass lock.Context(ctx)"
	case h.namesake:
		holder, advice = "another life of "+h.Holder, "; the lock is free when the session of that life ends"
	}
	others := "no other request was waiting"
	switch before := h.Waiters - 1; { // it is counted itself
	case before == 1:
		others = "1 other request was waiting"
	case before > 1:
		others = fmt.Sprintf("%d other requests were waiting", before)
	}
	return fmt.Sprintf(" (when this request was queued, %s held it, since %s, token %d, and %s%s)", holder, h.Since.Format(time.RFC3339), h.Token, others, advice)
}

// isOwn reports whether a session is one of this node's.
func (n *Node) isOwn(id lockfsm.SessionID) bool {
	for _, c := range n.engine.Clients() {
		if c.Status().Session == id {
			return true
		}
	}
	return false
}
