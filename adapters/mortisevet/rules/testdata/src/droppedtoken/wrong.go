package droppedtoken

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/locker"
)

func write(ctx context.Context, text string) error { return ctx.Err() }

func wrongStatement(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	lock.Token() // want `the token is dropped: give it to the resource, or leave the call out`
	return write(lock.Context(ctx), "42")
}

func wrongBlank(ctx context.Context, lock *mortise.Lock) error {
	_ = lock.Token() // want `the token is dropped`
	return write(lock.Context(ctx), "42")
}

func wrongVariable(ctx context.Context, lock *mortise.Lock) error {
	token := lock.Token()
	_ = token // want `the token is dropped: give it to the resource, or name the variable _`
	return write(lock.Context(ctx), "42")
}

func wrongDeclared(ctx context.Context, lock *mortise.Lock) error {
	var token = lock.Token()
	_ = token // want `the token is dropped`
	return write(lock.Context(ctx), "42")
}

func wrongOfDo(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error {
		_ = token // want `the token is dropped`
		return write(ctx, "42")
	})
}

func wrongOfALocker(ctx context.Context, locks locker.Locker) error {
	return locks.Do(ctx, "a", func(ctx context.Context, token locker.Token) error {
		defer func() {
			_ = write(ctx, "deferred")
		}()
		_ = (token) // want `the token is dropped`
		return write(ctx, "42")
	})
}

func wrongInterface(ctx context.Context, lock locker.Lock) error {
	lock.Token() // want `the token is dropped`
	return write(lock.Context(ctx), "42")
}

func wrongLeadership(ctx context.Context, l *election.Leadership) error {
	l.Token() // want `the token is dropped`
	return write(l.Context(ctx), "42")
}

func wrongTokenFrom(ctx context.Context) error {
	mortise.TokenFrom(ctx) // want `the token is dropped`
	return write(ctx, "42")
}

func wrongTokenFromBlank(ctx context.Context) error {
	_, _ = locker.TokenFrom(ctx) // want `the token is dropped`
	return write(ctx, "42")
}

func wrongInAClosure(lock *mortise.Lock) func(context.Context) error {
	return func(ctx context.Context) error {
		lock.Token() // want `the token is dropped`
		return write(lock.Context(ctx), "42")
	}
}

func wrongConstant(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, _ mortise.Token) error {
		return fence.WriteFile(ctx, "a", 1, nil, 0o600) // want `the constant 1 is not the token of the lock`
	})
}

const none mortise.Token = 0

func wrongConstantAfterLock(ctx context.Context, node *mortise.Node, store fence.Store) error {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	err = fence.Run(lock.Context(ctx), store, "a", none, func(ctx context.Context) error { return nil }) // want `the constant none`
	return errors.Join(err, lock.Unlock(ctx))
}

func wrongConversion(ctx context.Context, node *mortise.Node, store fence.Store) error {
	lock, err := node.TryLock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	return store.Advance(lock.Context(ctx), "a", mortise.Token(7)) // want `the constant mortise.Token\(7\)`
}
