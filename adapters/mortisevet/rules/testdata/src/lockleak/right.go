package lockleak

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/stripe"
)

type holder struct {
	lock  *mortise.Lock
	token mortise.Token
}

func rightDeferred(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "orders/42")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return work(lock.Context(ctx))
}

func rightDeferredBefore(ctx context.Context, node *mortise.Node, bad bool) (err error) {
	var lock *mortise.Lock
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Unlock(ctx))
		}
	}()
	lock, err = node.Lock(ctx, "orders/42")
	if err != nil {
		return err
	}
	if bad {
		return errBad
	}
	return write(lock.Token())
}

func rightReturned(ctx context.Context, node *mortise.Node) (*mortise.Lock, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, err
	}
	if err := work(lock.Context(ctx)); err != nil {
		return nil, errors.Join(err, lock.Unlock(ctx))
	}
	return lock, nil
}

func rightReturnedAtOnce(ctx context.Context, node *mortise.Node) (*mortise.Lock, error) {
	return node.Lock(ctx, "a")
}

func rightNamedResult(ctx context.Context, node *mortise.Node) (lock *mortise.Lock, err error) {
	lock, err = node.TryLock(ctx, "a")
	if err != nil {
		return nil, err
	}
	log.Print(lock.Token())
	return
}

func rightStored(ctx context.Context, node *mortise.Node, h *holder) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	h.lock = lock
	return nil
}

func rightStoredAtOnce(ctx context.Context, node *mortise.Node, h *holder) (err error) {
	h.lock, err = node.Lock(ctx, "a")
	return err
}

func rightCollected(ctx context.Context, node *mortise.Node, keys []string) (err error) {
	var all []*mortise.Lock
	defer func() {
		for _, lock := range all {
			err = errors.Join(err, lock.Unlock(ctx))
		}
	}()
	for _, key := range keys {
		lock, err := node.Lock(ctx, key)
		if err != nil {
			return err
		}
		all = append(all, lock)
	}
	return nil
}

func rightSent(ctx context.Context, node *mortise.Node, to chan<- *mortise.Lock) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	to <- lock
	return nil
}

func rightPassed(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	consume(ctx, lock)
	return nil
}

func rightClosureUnlocks(ctx context.Context, node *mortise.Node) (func() error, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Unlock(ctx) }, nil
}

func rightAfterFunc(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = lock.Unlock(context.WithoutCancel(ctx)) })
	return nil
}

func rightMethodValue(ctx context.Context, node *mortise.Node) (func(context.Context) error, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, err
	}
	unlock := lock.Unlock
	return unlock, nil
}

func rightRetries(ctx context.Context, node *mortise.Node) error {
	var lock *mortise.Lock
	var err error
	for range 3 {
		lock, err = node.TryLock(ctx, "a")
		if err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func rightConditional(ctx context.Context, node *mortise.Node, exclusive bool) error {
	var lock *mortise.Lock
	if exclusive {
		var err error
		if lock, err = node.Lock(ctx, "a"); err != nil {
			return err
		}
	}
	err := work(ctx)
	if exclusive {
		err = errors.Join(err, lock.Unlock(ctx))
	}
	return err
}

func rightFlag(ctx context.Context, node *mortise.Node) error {
	locked := false
	lock, err := node.TryLock(ctx, "a")
	if err == nil {
		locked = true
	}
	worked := work(ctx)
	if locked {
		return errors.Join(worked, lock.Unlock(ctx))
	}
	return worked
}

func rightIfNotNil(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	if err != nil && !errors.Is(err, mortise.ErrHeld) {
		return err
	}
	worked := work(ctx)
	if lock != nil {
		worked = errors.Join(worked, lock.Unlock(ctx))
	}
	return worked
}

func isHeld(err error) bool { return errors.Is(err, mortise.ErrHeld) }

func rightOwnTest(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	if isHeld(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}

func rightSwitch(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	switch err {
	case nil:
		return lock.UnlockSoon()
	case mortise.ErrHeld:
		return nil
	}
	return err
}

func rightProbe(ctx context.Context, node *mortise.Node) (held bool) {
	_, err := node.TryLock(ctx, "a")
	return errors.Is(err, mortise.ErrHeld)
}

func fatal(err error) {
	log.Print(err)
	os.Exit(1)
}

func rightProcessEnds(ctx context.Context, node *mortise.Node, bad bool) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		fatal(err)
	}
	if err := work(lock.Context(ctx)); err != nil {
		fatal(err)
	}
	if bad {
		panic("bad")
	}
	os.Exit(0)
}

func rightForEver(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	for {
		_ = work(lock.Context(ctx))
	}
}

func rightDetached(ctx context.Context, node *mortise.Node) (mortise.Token, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return 0, err
	}
	token := lock.Token()
	return token, lock.Detach(ctx)
}

func rightHandedOverByToken(ctx context.Context, node *mortise.Node) (mortise.Token, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return 0, err
	}
	return lock.Token(), nil
}

func rightHandedOverInAStruct(ctx context.Context, node *mortise.Node) (*holder, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, err
	}
	return &holder{token: lock.Token()}, nil
}

func rightOncePerMinute(ctx context.Context, node *mortise.Node) error {
	_, err := node.Acquire(ctx, mortise.Request{Key: "a", Try: true, MaxHold: time.Minute})
	if err != nil {
		return err
	}
	return work(ctx)
}

func rightUnknownRequest(ctx context.Context, node *mortise.Node, r mortise.Request) error {
	lock, err := node.Acquire(ctx, r)
	if err != nil {
		return err
	}
	return write(lock.Token())
}

func rightCrash(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	log.Print(lock.Token())
	return node.Close()
}

func rightUpgrade(ctx context.Context, lock *mortise.Lock) error {
	up, err := lock.Upgrade(ctx)
	if err != nil {
		return err
	}
	return errors.Join(write(up.Token()), lock.Unlock(ctx))
}

func rightStripes(ctx context.Context, set *stripe.Set) (err error) {
	all, err := set.All(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Unlock(ctx)) }()
	log.Print(len(all))
	return work(all.Context(ctx))
}

type registry struct{ held map[string]*mortise.Lock }

// Lock is not a method of mortise: its caller does not own the lock.
func (r *registry) Lock(ctx context.Context, key string) (*mortise.Lock, error) {
	return r.held[key], nil
}

func rightForeignMethod(ctx context.Context, r *registry) error {
	lock, err := r.Lock(ctx, "a")
	if err != nil {
		return err
	}
	return write(lock.Token())
}

func rightLoop(ctx context.Context, node *mortise.Node, keys []string) error {
	for _, key := range keys {
		lock, err := node.Lock(ctx, key)
		if err != nil {
			return err
		}
		err = work(lock.Context(ctx))
		if err = errors.Join(err, lock.Unlock(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func rightTestedTwice(ctx context.Context, node *mortise.Node, quick bool) error {
	lock, err := node.TryLock(ctx, "a")
	if err == nil {
		log.Print(lock.Key())
	}
	if errors.Is(err, mortise.ErrHeld) || quick {
		if quick && err == nil {
			return lock.Unlock(ctx)
		}
		return err
	}
	if err != nil {
		return err
	}
	return errors.Join(work(lock.Context(ctx)), lock.Unlock(ctx))
}
