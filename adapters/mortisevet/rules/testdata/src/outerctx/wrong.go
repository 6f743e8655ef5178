package outerctx

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/flight"
	"github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/tick"
)

func charge(ctx context.Context, order string) error { return ctx.Err() }
func report(ctx context.Context, err error)          {}

func wrongInDo(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "orders/42", func(held context.Context, token mortise.Token) error {
		return charge(ctx, "42") // want `ctx does not end when the lock is lost: in the function of Do use the context that the function is given`
	})
}

func wrongUnnamed(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "orders/42", func(context.Context, mortise.Token) error {
		if err := charge(ctx, "42"); err != nil { // want `ctx does not end when the lock is lost`
			return err
		}
		return nil
	})
}

func wrongNested(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(outer context.Context, _ mortise.Token) error {
		return node.Do(outer, "b", func(inner context.Context, _ mortise.Token) error {
			return errors.Join(charge(outer, "1"), charge(ctx, "2")) // want `outer does not end` `ctx does not end`
		})
	})
}

func wrongRequest(w http.ResponseWriter, r *http.Request, node *mortise.Node) {
	err := node.Do(r.Context(), "a", func(ctx context.Context, _ mortise.Token) error {
		return charge(r.Context(), r.PathValue("id")) // want `r.Context\(\) does not end`
	})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func wrongDerived(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(held context.Context, _ mortise.Token) error {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return charge(short, "42") // want `short does not end`
	})
}

func wrongLocker(ctx context.Context, locks locker.Locker) error {
	return locks.Do(ctx, "a", func(held context.Context, token locker.Token) error {
		return fence.WriteFile(ctx, "file", token, nil, 0o600) // want `ctx does not end`
	})
}

func wrongElection(ctx context.Context, e *election.Election) error {
	return e.Run(ctx, "me", func(leads context.Context, l *election.Leadership) error {
		for leads.Err() == nil {
			if err := charge(ctx, "42"); err != nil { // want `ctx does not end`
				return err
			}
		}
		return nil
	})
}

func wrongKeep(ctx context.Context, node *mortise.Node) error {
	return keep.Run(ctx, node, mortise.Request{Key: "a"}, keep.Options{}, func(held context.Context, l *mortise.Lock) error {
		return charge(ctx, "42") // want `in the function of Run`
	})
}

func wrongTick(ctx context.Context, node *mortise.Node) error {
	return tick.Run(ctx, node, tick.Job{Name: "a", Run: func(held context.Context, t tick.Tick) error {
		return charge(ctx, "42") // want `ctx does not end`
	}})
}

func wrongFlight(ctx context.Context, g *flight.Group[int]) (int, error) {
	return g.Do(ctx, "a", func(held context.Context) (int, bool, error) {
		return 0, false, charge(ctx, "fresh") // want `ctx does not end`
	}, func(held context.Context, _ locker.Token) (int, error) {
		return 1, charge(held, "compute")
	})
}

type counted struct{ locker.Locker }

func (c counted) Do(ctx context.Context, key string, fn func(ctx context.Context, token locker.Token) error) error {
	return c.Locker.Do(ctx, key, fn)
}

func wrongOwnLocker(ctx context.Context, locks counted) error {
	return locks.Do(ctx, "a", func(held context.Context, _ locker.Token) error {
		return func() error { return charge(ctx, "42") }() // want `ctx does not end`
	})
}

func wrongAfterLock(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return charge(ctx, "42") // want `ctx does not end when the lock is lost: while the lock of Lock is held use Context of the lock`
}

func wrongUntilUnlock(ctx context.Context, node *mortise.Node) error {
	lock, err := node.TryLock(ctx, "a")
	if err != nil {
		return err
	}
	err = charge(ctx, "42") // want `the lock of TryLock is held`
	return errors.Join(err, lock.Unlock(ctx))
}

func wrongSecondCall(ctx context.Context, node *mortise.Node) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = charge(lock.Context(ctx), "1")
	if err == nil {
		err = charge(ctx, "2") // want `ctx does not end`
	}
	return errors.Join(err, lock.Unlock(ctx))
}

func wrongLimitOfTheWait(ctx context.Context, node *mortise.Node) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := node.Lock(wait, "a")
	if err != nil {
		return err
	}
	err = errors.Join(charge(ctx, "1"), charge(wait, "2")) // want `ctx does not end` `wait does not end`
	return errors.Join(err, lock.Unlock(ctx))
}

func wrongSecondLock(ctx context.Context, node *mortise.Node) error {
	first, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	second, err := node.Lock(ctx, "b") // want `ctx does not end`
	if err != nil {
		return errors.Join(err, first.Unlock(ctx))
	}
	return errors.Join(second.Unlock(ctx), first.Unlock(ctx))
}

func wrongInALoop(ctx context.Context, session *mortise.Session, orders []string) error {
	for _, order := range orders {
		lock, err := session.Lock(ctx, order)
		if err != nil {
			return err
		}
		err = charge(ctx, order) // want `ctx does not end`
		if err := lock.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}
