package mortise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// Session is a session in addition to that of its node, with its own lease. With a shorter TTL its
// locks are free sooner after a crash, but are lost after a shorter outage. The locks of one
// session are lost or kept together. A session ends when its node ends.
type Session struct {
	node   *Node
	client *client.Client
}

// NewSession opens a session with its own TTL, which must be at least 1 s. A TTL that is longer
// than the group's is reduced to the group's, with a warning in the log unless it is longer than 10
// min, the longest that a group can have. NewSession waits for a leader until ctx ends.
// Renewal, loss and replacement of the session work as for the node's own. A request in one session
// never counts as made under a lock of another session, so deadlocks between sessions are not
// found. If a node already has 128 such sessions, NewSession fails with ErrNoRoom. Close the
// session when you no longer need it.
func (n *Node) NewSession(ctx context.Context, ttl time.Duration) (*Session, error) {
	if ttl < minSessionTTL {
		return nil, fmt.Errorf("%w: NewSession: the TTL is %v; want at least %v", ErrBadRequest, ttl, minSessionTTL)
	}
	if err := n.admit(ctx, "NewSession"); err != nil {
		return nil, err
	}
	own, err := n.engine.Open(ttl)
	if err != nil {
		return nil, err
	}
	s := &Session{node: n, client: own}
	if err := s.client.WaitAttached(ctx); err != nil {
		n.engine.Drop(s.client)
		return nil, n.explain("open a session", err)
	}
	return s, nil
}

// Acquire is [Node.Acquire] in this session. If ctx belongs to a lock that covers the request, that
// lock is entered again even if it belongs to another session.
func (s *Session) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return s.node.acquire(ctx, s.client, &demand{Request: r})
}

// Lock is [Node.Lock] in this session.
func (s *Session) Lock(ctx context.Context, key string) (*Lock, error) {
	return s.Acquire(ctx, Request{Key: key})
}

// TTL returns the TTL that the group has granted.
func (s *Session) TTL() time.Duration { return s.client.Status().TTL }

// Close ends the session in the group. Waiting calls fail with ErrClosed. While one of its locks is
// held, Close fails and keeps the session: unlock the locks first. After any other error, as when
// ctx ends before a leader is found, this process cannot use the session, and the session expires
// in the group.
func (s *Session) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background() // as for Unlock
	}
	err := s.client.CloseSession(ctx)
	if errors.Is(err, client.ErrStillHeld) {
		return err
	}
	s.node.engine.Drop(s.client)
	if err != nil {
		return s.node.explain("close a session", err)
	}
	return nil
}

// Upgrade makes a lock that is [Upgradable] exclusive for a while. It waits until all shared
// holders have unlocked, and lets no other request in meanwhile: it passes all requests that wait.
// It returns a new Lock with a token that is higher than all earlier ones of the key, so only this
// token belongs to what is written. Unlock of the new Lock is the step back: l is upgradable again,
// and the shared requests directly behind it are granted.
//
// l stays locked the whole time, with its own token, and is still to be unlocked. Its Unlock also
// ends an upgrade, unless another exclusive or upgradable handle of the lock is left. If l is lost,
// its upgrade is lost, too. The upgrade has the JeopardyGrace, the Notice and the end of the
// MaxHold and of the MaxIdle of l. Its Beat is one of l. It has no Value of its own: SetValue
// changes that of l. A request under its context is made under both locks.
//
// If l has entered an exclusive lock (see [Node.Acquire]), that lock excludes all others already.
// Then Upgrade does not wait, and the new Lock is a further handle of it, with the same token. It
// ends with l at the latest, and the lock stays exclusive until l is unlocked.
//
// After every error, l is as before, unless the error is ErrLost or ErrUnlocked. Upgrade returns
// ErrBadRequest for every lock that is not Upgradable, also for a shared one: two readers that
// both upgrade would wait for each other forever. It returns ErrBadRequest, too, while l is being
// upgraded, or is upgraded and the upgrade is not unlocked. It returns ErrInJeopardy if l or a
// lock of ctx is in doubt. The upgrade is made under l, and under the locks that ctx comes from,
// as other requests are. If it would wait for a request that waits for one of these locks, it
// fails with a *[DeadlockError]. So while you hold a lock that was requested under l, pass the
// context of that lock: otherwise the search takes it for one that another goroutine may unlock.
// ctx bounds the wait; a grant that arrives later is given back.
func (l *Lock) Upgrade(ctx context.Context) (*Lock, error) {
	if err := l.node.admit(ctx, "Upgrade"); err != nil {
		return nil, err
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	f, n := l.first(), l.node
	raises := l.own().raises
	if !raises && !f.hold.Upgradable() {
		return nil, notUpgradable(l.Key())
	}
	var call *trace.Call
	if n.trace.Observes() {
		call = n.trace.Start(ctx, trace.Asked{Part: modes.Part{Key: f.Key()}})
	}
	var up *Lock
	var err error
	switch {
	case !raises:
		up, err = f.upgrade(ctx, call)
	case ctx.Err() != nil:
		err = n.explain("upgrade "+shownKey(f.Key()), client.ContextError(ctx))
	default:
		up, err = l.raise()
	}
	switch {
	case err != nil:
		call.Refused(ctx, err)
		return nil, err
	case raises:
		call.Entered(ctx, f.call(), f.hold.Token())
		return up, nil
	}
	call.Granted(ctx)
	watched := n.watched(up)
	if limit := l.own().seldom().limit; limit != nil {
		up.limitAt(&handleLimit{until: limit.until, text: limit.text})
	}
	return watched, nil
}

// upgrade asks the group for an upgrade of the first handle f.
func (f *Lock) upgrade(ctx context.Context, call *trace.Call) (*Lock, error) {
	up := &struct {
		Lock
		request client.Request
	}{Lock: Lock{node: f.node, writers: 1}, request: f.hold.UpgradeRequest()}
	up.observed(call)
	up.rarely().base = f
	inner, err := f.node.innermost(ctx, f.hold.Client())
	if err != nil {
		return nil, f.node.explain("upgrade "+shownKey(f.Key()), err)
	}
	up.request.MadeUnder(inner)
	call.Asks(&up.request, &up.hold)
	err = f.hold.Upgrade(ctx, &up.hold, &up.request)
	call.Answered(err)
	switch {
	case err == nil:
		return &up.Lock, nil
	case errors.Is(err, client.ErrUpgraded):
		return nil, f.isUpgraded()
	case (errors.Is(err, client.ErrNotHeld) || errors.Is(err, client.HoldReleasedError{})) && f.hold.Err() != nil:
		return nil, lossOf(f.hold.Err())
	case errors.Is(err, client.ErrNotHeld):
		return nil, fmt.Errorf("%w: upgrade %s: the group has no such hold", ErrLost, shownKey(f.Key()))
	}
	return nil, f.node.explain("upgrade "+shownKey(f.Key()), lossOf(err))
}
