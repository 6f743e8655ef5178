package stripe

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Locks are the locks of all stripes of a set: Locks[i] is stripe i. The caller of All owns the
// slice. The methods are safe for concurrent use as long as the slice is not changed.
type Locks []*mortise.Lock

// All acquires every stripe, in ascending order. It holds the lower stripes while it waits for
// the higher ones, so use it only for rare operations. If All fails, it holds no stripe, and the
// error is that of the locker.
func (s *Set) All(ctx context.Context) (Locks, error) {
	all := make(Locks, 0, s.n)
	for i := range s.n {
		lock, err := s.locker.Lock(ctx, key(s.name, i))
		if err != nil {
			all.unlockSoon()
			return nil, fmt.Errorf("stripe: all of %q: %w", s.name, err)
		}
		all = append(all, lock)
	}
	return all, nil
}

// Unlock releases every stripe, even if ctx has ended: ctx limits only the wait for the
// confirmations. It returns nil if all releases are confirmed, and otherwise the joined errors of
// mortise.Lock.Unlock.
func (l Locks) Unlock(ctx context.Context) error {
	l.unlockSoon() // sends all releases before Unlock waits for the first confirmation
	errs := make([]error, 0, len(l))
	for _, lock := range l {
		errs = append(errs, lock.Unlock(ctx))
	}
	return errors.Join(errs...)
}

// unlockSoon releases all stripes without waiting for confirmations. It begins with the highest
// stripe, so that a waiting All then finds the higher stripes free.
func (l Locks) unlockSoon() {
	for i := len(l) - 1; i >= 0; i-- {
		_ = l[i].UnlockSoon() // a following Unlock returns the error
	}
}

// Err returns nil while every stripe is held. Otherwise it returns the error of the lowest stripe
// that is not held: mortise.ErrLost or mortise.ErrUnlocked. It reads the clock at each call.
func (l Locks) Err() error {
	for _, lock := range l {
		if err := lock.Err(); err != nil {
			return fmt.Errorf("stripe: %q: %w", lock.Key(), err)
		}
	}
	return nil
}

// Context returns a child of parent that ends when one of the stripes is no longer held. Its cause
// is then the error of that stripe. Each call uses one goroutine per stripe until parent or the
// locks end. mortise.TokenFrom returns the token of the highest stripe. A resource with a fence per
// stripe needs the token of the lock of its own stripe.
func (l Locks) Context(parent context.Context) context.Context {
	for _, lock := range l {
		parent = lock.Context(parent)
	}
	return parent
}
