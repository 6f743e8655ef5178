package outerctx

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/tick"
)

type store struct{}

func (s *store) Advance(ctx context.Context, resource string, token mortise.Token) error { return nil }
func (s *store) Begin(ctx context.Context) (*store, error)                               { return s, nil }
func (s *store) Rollback(ctx context.Context) error                                      { return nil }
func (s *store) Commit(ctx context.Context) error                                        { return nil }

func rightShadowed(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error {
		return charge(ctx, "42")
	})
}

func rightNamed(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		short, cancel := context.WithTimeout(held, time.Second)
		defer cancel()
		return charge(short, "42")
	})
}

func rightCleansUp(ctx context.Context, node *mortise.Node, s *store) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		tx, err := s.Begin(held)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // held may have ended
		if err := charge(held, "42"); err != nil {
			report(ctx, err)
			return errors.Join(err, tx.Rollback(ctx))
		}
		return tx.Commit(held)
	})
}

func rightTellsTheReason(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		err := charge(held, "42")
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		slog.InfoContext(ctx, "charged", "error", err)
		return err
	})
}

func rightOutlives(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		go report(ctx, nil)
		go func() { report(ctx, nil) }()
		time.AfterFunc(time.Minute, func() { report(ctx, nil) })
		return charge(context.WithoutCancel(ctx), "42")
	})
}

func rightSelect(ctx context.Context, node *mortise.Node, orders <-chan string) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		for {
			select {
			case <-held.Done():
				report(ctx, context.Cause(held))
				return context.Cause(held)
			case order := <-orders:
				if err := charge(held, order); err != nil {
					return err
				}
			}
		}
	})
}

func rightNestedLock(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) (err error) {
		lock, err := node.Lock(held, "b")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
		return charge(lock.Context(held), "42")
	})
}

func rightRequest(w http.ResponseWriter, r *http.Request, node *mortise.Node) {
	err := node.Do(r.Context(), "a", func(ctx context.Context, _ mortise.Token) error {
		r := r.WithContext(ctx)
		return charge(r.Context(), r.PathValue("id"))
	})
	if err != nil {
		report(r.Context(), err)
	}
}

func rightFence(ctx context.Context, s *store, token mortise.Token) error {
	return fence.Run(ctx, s, "orders/42", token, func(inner context.Context) error { return charge(ctx, "42") })
}

func rightTick(ctx context.Context, node *mortise.Node) error {
	return tick.Run(ctx, node, tick.Job{Name: "a", Run: func(ctx context.Context, t tick.Tick) error {
		return charge(ctx, "42")
	}})
}

func rightBeforeAndAfter(ctx context.Context, node *mortise.Node) error {
	if err := charge(ctx, "before"); err != nil {
		return err
	}
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return errors.Join(err, charge(ctx, "not held"))
	}
	err = charge(lock.Context(ctx), "42")
	if err := errors.Join(err, lock.Unlock(ctx)); err != nil {
		return err
	}
	return charge(ctx, "after")
}

func rightReplaced(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	over := ctx
	defer func() { err = errors.Join(err, lock.Unlock(over)) }()
	ctx = lock.Context(ctx)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return errors.Join(charge(ctx, "42"), charge(short, "43"))
}

func rightHandlesErrors(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	err = charge(lock.Context(ctx), "42")
	switch {
	case errors.Is(err, mortise.ErrLost):
		report(ctx, err)
	case err != nil:
		report(ctx, err)
	}
	if err == nil {
		return nil
	} else {
		report(ctx, err)
	}
	return err
}

func rightChecksErr(ctx context.Context, node *mortise.Node, orders []string) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	for _, order := range orders {
		if err := lock.Err(); err != nil {
			return err
		}
		if err := charge(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

func work(ctx context.Context, l *mortise.Lock) error { return charge(l.Context(ctx), "42") }

func rightHandedOver(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = work(ctx, lock)
	return errors.Join(err, lock.Unlock(ctx))
}

func rightPermit(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Acquire(ctx, mortise.Request{Key: "limit", Mode: mortise.Permits(1, 40)})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	return charge(ctx, "42")
}

func rightCallsOfTheNode(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	if _, err := node.Put(ctx, "key", nil, 0); err != nil {
		return errors.Join(err, lock.Unlock(ctx))
	}
	if err := lock.Downgrade(ctx); err != nil {
		return errors.Join(err, lock.Unlock(ctx))
	}
	return errors.Join(lock.Unlock(ctx), node.Leave(ctx))
}

func rightOnOnePath(ctx context.Context, node *mortise.Node, exclusive bool) (err error) {
	if exclusive {
		lock, err := node.Lock(ctx, "a")
		if err != nil {
			return err
		}
		defer func() { _ = lock.Unlock(context.WithoutCancel(ctx)) }()
		ctx = lock.Context(ctx)
	}
	return charge(ctx, "42")
}

func rightReturnsTheContext(ctx context.Context, node *mortise.Node) (context.Context, func() error, error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return nil, nil, err
	}
	return lock.Context(ctx), func() error { return lock.Unlock(ctx) }, charge(ctx, "not judged, as lock has left")
}

func rightWithoutTheLock(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	if err != nil && !errors.Is(err, mortise.ErrHeld) {
		return err
	}
	err = charge(ctx, "whether the lock is held or not")
	if lock != nil {
		err = errors.Join(err, lock.Unlock(ctx))
	}
	return err
}

func rightWithAndWithout(ctx context.Context, node *mortise.Node, exclusive bool) error {
	var lock *mortise.Lock
	if exclusive {
		var err error
		if lock, err = node.Lock(ctx, "a"); err != nil {
			return err
		}
	}
	err := charge(ctx, "42")
	if exclusive {
		err = errors.Join(err, lock.Unlock(ctx))
	}
	return err
}

func rightDeferred(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, token mortise.Token) error {
		defer report(ctx, nil)
		return charge(held, "42")
	})
}
