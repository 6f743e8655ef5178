package locker

import (
	"context"
	"errors"
)

var (
	ErrHeld = errors.New("mortise: the lock is held")
	ErrLost = errors.New("mortise: the lock is lost")
)

type Token uint64

func TokenFrom(ctx context.Context) (Token, bool) { return 0, false }

type Lock interface {
	Key() string
	Token() Token
	Context(parent context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Unlock(ctx context.Context) error
}

type Acquirer[R any, L Lock] interface {
	Acquire(ctx context.Context, r R) (L, error)
}

type Locker interface {
	Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error
}

type Local struct{}

func (l *Local) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) error {
	return nil
}
