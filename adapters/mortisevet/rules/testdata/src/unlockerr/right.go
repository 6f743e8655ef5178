package unlockerr

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/mortise-lock/mortise"
)

func write(token mortise.Token) error                    { return nil }
func consume(ctx context.Context, l *mortise.Lock) error { return l.Err() }

func rightJoined(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return work(lock.Context(ctx))
}

func rightReturned(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func rightChecked(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if err := lock.Unlock(ctx); err != nil {
		return fmt.Errorf("the work may have been disturbed: %w", err)
	}
	return nil
}

func rightBlank(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	return work(lock.Context(ctx))
}

func rightNoError(ctx context.Context, node *mortise.Node) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return
	}
	defer lock.Unlock(ctx)
	_ = work(lock.Context(ctx))
}

func rightAfterAnError(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if err := work(lock.Context(ctx)); err != nil {
		lock.Unlock(ctx)
		return err
	}
	return lock.Unlock(ctx)
}

func rightAfterASentinel(ctx context.Context, node *mortise.Node, bad bool) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if bad {
		lock.Unlock(ctx)
		return errBad
	}
	if err := work(lock.Context(ctx)); errors.Is(err, context.Canceled) {
		lock.Unlock(ctx)
		return fmt.Errorf("work: %w", err)
	}
	return lock.Unlock(ctx)
}

func rightFenced(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return write(lock.Token())
}

func rightCheckedBefore(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if err := errors.Join(work(lock.Context(ctx)), lock.Err()); err != nil {
		return errors.Join(err, lock.Unlock(ctx))
	}
	lock.Unlock(ctx)
	return nil
}

func rightGuardedPut(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	_, err = lock.Put(ctx, "progress", nil, 0)
	return err
}

func rightShared(ctx context.Context, node *mortise.Node) error {
	lock, err := node.RLock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return work(lock.Context(ctx))
}

func rightPermit(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Acquire(ctx, mortise.Request{Key: "limit", Mode: mortise.Permits(1, 40)})
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx)
	return work(lock.Context(ctx))
}

func rightUnlockSoon(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = work(lock.Context(ctx))
	lock.UnlockSoon()
	return err
}

func rightHandedOver(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = consume(ctx, lock)
	lock.Unlock(ctx)
	return err
}

func rightNotOfThisFunction(ctx context.Context, lock *mortise.Lock) error {
	defer lock.Unlock(ctx)
	return work(lock.Context(ctx))
}

func rightWorkAfterwards(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	log.Print(lock.Key())
	lock.Unlock(ctx)
	return work(ctx)
}

func rightAgain(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer lock.Unlock(ctx) // ends the lock if work panics
	if err := work(lock.Context(ctx)); err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func rightReturnsTheLock(ctx context.Context, node *mortise.Node) (*mortise.Lock, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, err
	}
	if err := work(lock.Context(ctx)); err != nil {
		lock.Unlock(ctx)
		return nil, err
	}
	return lock, nil
}

func rightNamedFailure(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return
	}
	if err = work(lock.Context(ctx)); err != nil {
		lock.Unlock(ctx)
		return
	}
	return lock.Unlock(ctx)
}
