package droppedtoken

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func set(ctx context.Context, token mortise.Token) error { return ctx.Err() }

func rightPassed(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return set(lock.Context(ctx), lock.Token())
}

func rightNotRequested(ctx context.Context, node *mortise.Node) (err error) {
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	return write(lock.Context(ctx), "nothing compares tokens")
}

func rightUnnamed(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, _ mortise.Token) error { return write(ctx, "42") })
}

func rightUnused(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error { return write(ctx, "42") })
}

func rightOfDo(ctx context.Context, node *mortise.Node, store fence.Store) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error {
		return fence.Run(ctx, store, "a", token, func(ctx context.Context) error { return write(ctx, "42") })
	})
}

func rightUsedToo(ctx context.Context, node *mortise.Node) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error {
		_ = token
		return set(ctx, token)
	})
}

func rightInAClosure(ctx context.Context, lock *mortise.Lock) func() error {
	token := lock.Token()
	_ = token
	return func() error { return set(ctx, token) }
}

func rightTest(ctx context.Context) bool {
	_, ok := mortise.TokenFrom(ctx)
	return ok
}

func rightPrinted(lock *mortise.Lock) string {
	return fmt.Sprint(lock.Token())
}

func rightCompared(lock *mortise.Lock, highest mortise.Token) bool {
	return lock.Token() > highest
}

func rightConstantWithoutLock(ctx context.Context) error {
	return fence.WriteFile(ctx, "the first content", 1, nil, 0o600)
}

func rightConstantBeforeLock(ctx context.Context, node *mortise.Node) error {
	if err := fence.WriteFile(ctx, "the first content", 1, nil, 0o600); err != nil {
		return err
	}
	lock, err := node.Lock(ctx, "a")
	if err != nil {
		return err
	}
	return errors.Join(set(lock.Context(ctx), lock.Token()), lock.Unlock(ctx))
}

func rightOtherConstant(ctx context.Context, node *mortise.Node, ledger fence.Ledger) error {
	return node.Do(ctx, "a", func(ctx context.Context, token mortise.Token) error {
		if _, err := ledger.Forget(ctx, "a", 100); err != nil {
			return err
		}
		return set(ctx, token)
	})
}

type parser struct{}

func (p *parser) Token() mortise.Token { return 0 }

func rightOtherToken(p *parser) {
	p.Token() // reads the next one
	_ = p.Token()
}

func rightParameter(ctx context.Context, token mortise.Token) error {
	_ = token // another version of this function needs it
	return write(ctx, "42")
}

func rightForwarded(ctx context.Context, node *mortise.Node) (token mortise.Token, err error) {
	err = node.Do(ctx, "a", func(ctx context.Context, t mortise.Token) error { token = t; return nil })
	return token, err
}
