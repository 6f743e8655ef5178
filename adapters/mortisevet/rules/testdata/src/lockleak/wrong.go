package lockleak

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/stripe"
)

var errBad = errors.New("bad")

func work(ctx context.Context) error               { return ctx.Err() }
func write(token mortise.Token) error              { return nil }
func consume(ctx context.Context, l *mortise.Lock) {}

func wrongNever(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "orders/42") // want `the lock of Lock is not unlocked on every path: the return in line \d+ is reached while it is held`
	if err != nil {
		return err
	}
	return work(lock.Context(ctx))
}

func wrongEarlyReturn(ctx context.Context, node *mortise.Node, bad bool) error {
	lock, err := node.Lock(ctx, "orders/42") // want `the return in line \d+ is reached`
	if err != nil {
		return err
	}
	if bad {
		return errBad
	}
	return lock.Unlock(ctx)
}

func wrongErrorOfWork(ctx context.Context, node *mortise.Node) error {
	lock, err := node.RLock(ctx, "orders/42") // want `the lock of RLock is not unlocked`
	if err != nil {
		return err
	}
	err = work(lock.Context(ctx))
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func wrongDeferredTooLate(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.LockAll(ctx, "a", "b") // want `not unlocked on every path`
	if err != nil {
		return err
	}
	if err := work(lock.Context(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return write(lock.Token())
}

func wrongIfHeld(ctx context.Context, node *mortise.Node) {
	if lock, err := node.TryLock(ctx, "orders/42"); err == nil { // want `the lock of TryLock`
		_ = write(lock.Token())
	}
}

func wrongDropped(ctx context.Context, node *mortise.Node) error {
	_, err := node.Lock(ctx, "orders/42") // want `the lock of Lock is dropped, so nothing can unlock it`
	if err != nil {
		return err
	}
	return work(ctx)
}

func wrongDroppedAtAll(ctx context.Context, node *mortise.Node) {
	node.Lock(ctx, "orders/42") // want `the lock of Lock is dropped`
}

func wrongEachOfALoop(ctx context.Context, node *mortise.Node, keys []string) error {
	for _, key := range keys {
		lock, err := node.Lock(ctx, key) // want `the request in line \d+ is made while it is held`
		if err != nil {
			continue
		}
		if err := work(lock.Context(ctx)); err != nil {
			panic(err)
		}
	}
	return nil
}

func wrongInASwitch(ctx context.Context, node *mortise.Node, kind int) error {
	lock, err := node.Acquire(ctx, mortise.Request{Key: "a", Mode: mortise.Shared}) // want `the lock of Acquire`
	switch {
	case errors.Is(err, mortise.ErrHeld):
		return nil
	case err != nil:
		return err
	}
	switch kind {
	case 1:
		return lock.Unlock(ctx)
	case 2:
		return lock.UnlockSoon()
	}
	return nil
}

func wrongInAClosure(ctx context.Context, node *mortise.Node) error {
	run := func() error {
		lock, err := node.Lock(ctx, "a") // want `not unlocked`
		if err != nil {
			return err
		}
		return write(lock.Token())
	}
	return run()
}

func wrongGoroutine(ctx context.Context, session *mortise.Session) {
	go func() {
		lock, err := session.Lock(ctx, "a") // want `not unlocked`
		if err != nil {
			return
		}
		select {
		case <-lock.Done():
		case <-ctx.Done():
			return
		}
		_ = lock.Unlock(ctx)
	}()
}

func wrongClosureOnlyReads(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a") // want `not unlocked`
	if err != nil {
		return err
	}
	token := func() mortise.Token { return lock.Token() + 0 }
	return write(token())
}

func wrongReplaced(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a") // want `the request in line \d+ is made`
	if err != nil {
		return err
	}
	lock, err = node.Lock(ctx, "b")
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func wrongNamedResult(ctx context.Context, node *mortise.Node, bad bool) (lock *mortise.Lock, err error) {
	lock, err = node.Lock(ctx, "a") // want `not unlocked`
	if err != nil {
		return nil, err
	}
	if bad {
		return nil, errBad
	}
	return
}

func wrongInterface(ctx context.Context, by keep.Acquirer) error {
	lock, err := by.Acquire(ctx, mortise.Request{Key: "a"}) // want `not unlocked`
	if err != nil {
		return err
	}
	return write(lock.Token())
}

type locks interface {
	Lock(ctx context.Context, key string) (*mortise.Lock, error)
}

func wrongOwnInterface(ctx context.Context, by locks) error {
	var lock, err = by.Lock(ctx, "a") // want `not unlocked`
	if err != nil {
		return err
	}
	return write(lock.Token())
}

func wrongOfTheModuleLocker(ctx context.Context, by locker.Acquirer[string, locker.Lock]) error {
	lock, err := by.Acquire(ctx, "a") // want `not unlocked`
	if err != nil {
		return err
	}
	return write(lock.Token())
}

func wrongStripes(ctx context.Context, set *stripe.Set) error {
	_, one, err := set.Any(ctx) // want `the lock of Any`
	if err != nil {
		return err
	}
	all, err := set.All(ctx) // want `the lock of All`
	if err != nil {
		return errors.Join(err, one.Unlock(ctx))
	}
	return all.Err()
}

func wrongLeadership(ctx context.Context, e *election.Election) error {
	l, err := e.Campaign(ctx, "me") // want `the lock of Campaign`
	if err != nil {
		return err
	}
	return work(l.Context(ctx))
}

func wrongLimitedOnOnePath(ctx context.Context, node *mortise.Node, bad bool) error {
	lock, err := node.Acquire(ctx, mortise.Request{Key: "a", MaxHold: time.Minute}) // want `not unlocked`
	if err != nil {
		return err
	}
	if bad {
		return errBad
	}
	return lock.Unlock(ctx)
}

func wrongOtherErrors(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a") // want `not unlocked`
	if !(err == nil && ctx != nil) && err != nil {
		return err
	}
	if other := work(lock.Context(ctx)); other != nil {
		return other
	}
	return lock.Unlock(ctx)
}

func wrongWithoutError(ctx context.Context, node *mortise.Node) {
	lock, _ := node.Lock(ctx, "a") // want `not unlocked`
	if lock == nil {
		return
	}
	_ = lock
	consume(ctx, nil)
}

func wrongUpgradeDoesNotEnd(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Acquire(ctx, mortise.Request{Key: "a", Mode: mortise.Upgradable}) // want `not unlocked`
	if err != nil {
		return err
	}
	up, err := lock.Upgrade(ctx)
	if err != nil {
		return err
	}
	return up.Unlock(ctx)
}
