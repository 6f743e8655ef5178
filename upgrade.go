package mortise

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// Upgrade makes a lock of [Request.Upgradable] exclusive for a while. It waits until all shared
// holders have unlocked, and lets no other request in meanwhile: it passes all requests that wait.
// It returns a new Lock with a token that is higher than all earlier ones of the key, so only this
// token belongs to what is written. Unlock of the new Lock is the step back: l is upgradable again,
// and the shared requests directly behind it are granted.
//
// l stays locked the whole time, with its own token, and is still to be unlocked. Its Unlock also
// ends an upgrade. If l is lost, its upgrade is lost, too. The upgrade has the JeopardyGrace, the
// Notice and the end of the MaxHold of l. It cannot be made shared, and has no Value of its own. A
// request under its context is made under both locks.
//
// After every error, l is as before, unless the error is ErrLost or ErrUnlocked. Upgrade returns
// ErrBadRequest for every lock without Request.Upgradable, also for a shared one: two readers that
// both upgrade would wait for each other forever. It returns ErrBadRequest, too, while l is being
// upgraded, or is upgraded and the upgrade is not unlocked. It returns ErrInJeopardy if l is in
// doubt, and a *[DeadlockError] if it would wait for a request that waits for l or for a lock under
// which l is made. A lock that was requested under l does not count in this search, so unlock it
// first. ctx bounds the wait; a grant that arrives later is given back.
func (l *Lock) Upgrade(ctx context.Context) (*Lock, error) {
	if err := l.node.admit(ctx); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("%w: Upgrade: the context is nil: pass context.Background() if you have none", ErrBadRequest)
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	f, n := l.first(), l.node
	if !f.hold.Upgradable() {
		return nil, fmt.Errorf("%w: Upgrade of %s: the lock was not requested with Request.Upgradable", ErrBadRequest,
			shownKey(l.Key()))
	}
	var call *trace.Call
	if n.trace.Observes() {
		call = n.trace.Start(ctx, trace.Asked{Key: f.Key(), Keys: 1, Kind: string(LockUpgrade)})
	}
	up, err := f.upgrade(ctx, call)
	if err != nil {
		call.Refused(ctx, err)
		return nil, err
	}
	call.Granted(ctx)
	return n.watched(up), nil
}

// upgrade asks the group for an upgrade of the first handle f.
func (f *Lock) upgrade(ctx context.Context, call *trace.Call) (*Lock, error) {
	up := &struct {
		Lock
		request client.Request
	}{Lock: Lock{node: f.node, call: call, writers: 1}, request: f.hold.UpgradeRequest()}
	call.Asks(&up.request, &up.hold)
	err := f.hold.Upgrade(ctx, &up.hold, &up.request)
	call.Answered(err)
	switch {
	case err == nil:
		return &up.Lock, nil
	case errors.Is(err, client.ErrUpgraded):
		return nil, fmt.Errorf("%w: Upgrade of %s, which is being upgraded or is upgraded: unlock that upgrade first",
			ErrBadRequest, shownKey(f.Key()))
	case (errors.Is(err, client.ErrNotHeld) || errors.Is(err, client.HoldReleasedError{})) && f.hold.Err() != nil:
		return nil, lossOf(f.hold.Err())
	case errors.Is(err, client.ErrNotHeld):
		return nil, fmt.Errorf("%w: upgrade %s: the group has no such hold", ErrLost, shownKey(f.Key()))
	}
	return nil, f.node.explain("upgrade "+shownKey(f.Key()), lossOf(err))
}
