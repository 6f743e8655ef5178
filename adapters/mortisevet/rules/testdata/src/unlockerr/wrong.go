package unlockerr

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

var errBad = errors.New("bad")

func work(ctx context.Context) error { return ctx.Err() }

func wrongStatement(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if err := work(lock.Context(ctx)); err != nil {
		return errors.Join(err, lock.Unlock(ctx))
	}
	lock.Unlock(ctx) // want `the error of Unlock is ignored, and the function may then return success although the lock was lost`
	return nil
}

func wrongVariable(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = work(lock.Context(ctx))
	lock.Unlock(ctx) // want `the error of Unlock is ignored`
	return err
}

func wrongDeferred(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // want `the error of Unlock is ignored`
	return work(lock.Context(ctx))
}

func wrongDeferredNil(ctx context.Context, node *mortise.Node) (int, error) {
	lock, err := node.LockAll(ctx, "a", "b")
	if err != nil {
		return 0, err
	}
	defer lock.Unlock(context.WithoutCancel(ctx)) // want `the error of Unlock is ignored`
	if err := work(lock.Context(ctx)); err != nil {
		return 0, err
	}
	return 1, nil
}

func wrongDeferredClosure(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() {
		lock.Unlock(ctx) // want `the error of Unlock is ignored`
	}()
	return work(lock.Context(ctx))
}

func wrongNamedResult(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return
	}
	defer lock.Unlock(ctx) // want `the error of Unlock is ignored`
	err = work(lock.Context(ctx))
	return
}

func wrongOnOnePath(ctx context.Context, node *mortise.Node, quick bool) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = work(lock.Context(ctx))
	if quick {
		lock.Unlock(ctx) // want `the error of Unlock is ignored`
		return err
	}
	return errors.Join(err, lock.Unlock(ctx))
}

func wrongInAClosure(ctx context.Context, session *mortise.Session) error {
	run := func() error {
		lock, err := session.Lock(ctx, "a")
		if err != nil {
			return err
		}
		defer lock.Unlock(ctx) // want `the error of Unlock is ignored`
		return work(lock.Context(ctx))
	}
	return run()
}

func wrongInALoop(ctx context.Context, node *mortise.Node, keys []string) error {
	for _, key := range keys {
		lock, err := node.Lock(ctx, key)
		if err != nil {
			return err
		}
		err = work(lock.Context(ctx))
		lock.Unlock(ctx) // want `the error of Unlock is ignored`
		if err != nil {
			return err
		}
	}
	return nil
}

func wrongAcquire(ctx context.Context, by keep.Acquirer) error {
	lock, err := by.Acquire(ctx, mortise.Request{Key: "a", Try: true})
	switch {
	case errors.Is(err, mortise.ErrHeld):
		return nil
	case err != nil:
		return err
	}
	defer lock.Unlock(ctx) // want `the error of Unlock is ignored`
	return work(lock.Context(ctx))
}

func wrongSticky(ctx context.Context, node *mortise.Node) error {
	lock, err := node.LockSticky(ctx, "a", mortise.StickyOptions{})
	if err != nil {
		return err
	}
	lock.Beat()
	lock.Unlock(ctx) // want `the error of Unlock is ignored`
	return nil
}

func wrongAfterAnotherTest(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	first := work(lock.Context(ctx))
	if first != nil {
		first = work(lock.Context(ctx))
	}
	lock.Unlock(ctx) // want `the error of Unlock is ignored`
	return first
}
