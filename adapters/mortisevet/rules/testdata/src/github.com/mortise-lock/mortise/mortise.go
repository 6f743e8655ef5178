// Package mortise has the signatures that the tests of the rules use. TestTheFakeIsLikeTheLibrary
// compares them with the library.
package mortise

import (
	"context"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

type Token = locker.Token

var (
	ErrHeld = locker.ErrHeld
	ErrLost = locker.ErrLost
)

type Config struct{}

func Start(ctx context.Context, config Config) (*Node, error) { return nil, nil }

func TokenFrom(ctx context.Context) (Token, bool) { return 0, false }

type Mode uint64

const (
	Exclusive Mode = iota
	Shared
	Upgradable
)

func Permits(n, of int) Mode { return 0 }

type Part struct {
	Key  string
	Mode Mode
}

type Request struct {
	Key     string
	Mode    Mode
	Also    []Part
	Try     bool
	MaxHold time.Duration
	MaxIdle time.Duration
	Notice  bool
}

type ResumeOptions struct {
	MaxHold time.Duration
	MaxIdle time.Duration
}

type StickyOptions struct {
	Shared bool
	Try    bool
}

type Node struct{}

func (n *Node) Acquire(ctx context.Context, r Request) (*Lock, error)               { return nil, nil }
func (n *Node) Lock(ctx context.Context, key string) (*Lock, error)                 { return nil, nil }
func (n *Node) RLock(ctx context.Context, key string) (*Lock, error)                { return nil, nil }
func (n *Node) LockAll(ctx context.Context, keys ...string) (*Lock, error)          { return nil, nil }
func (n *Node) TryLock(ctx context.Context, key string) (*Lock, error)              { return nil, nil }
func (n *Node) NewSession(ctx context.Context, ttl time.Duration) (*Session, error) { return nil, nil }
func (n *Node) Resume(ctx context.Context, key string, token Token, o ResumeOptions) (*Lock, error) {
	return nil, nil
}
func (n *Node) LockSticky(ctx context.Context, key string, o StickyOptions) (*Lock, error) {
	return nil, nil
}
func (n *Node) Do(ctx context.Context, key string, fn func(ctx context.Context, token Token) error) (err error) {
	return nil
}
func (n *Node) DoNested(ctx context.Context, requests []Request,
	fn func(ctx context.Context, token Token) error) (err error) {
	return nil
}
func (n *Node) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return 0, nil
}
func (n *Node) Leave(ctx context.Context) error { return nil }
func (n *Node) Close() error                    { return nil }

type Session struct{}

func (s *Session) Acquire(ctx context.Context, r Request) (*Lock, error) { return nil, nil }
func (s *Session) Lock(ctx context.Context, key string) (*Lock, error)   { return nil, nil }
func (s *Session) Close(ctx context.Context) error                       { return nil }

type Lock struct{ node *Node }

func (l *Lock) Key() string                                      { return "" }
func (l *Lock) Token() Token                                     { return 0 }
func (l *Lock) Err() error                                       { return nil }
func (l *Lock) Beat()                                            {}
func (l *Lock) Done() <-chan struct{}                            { return nil }
func (l *Lock) Wanted() <-chan struct{}                          { return nil }
func (l *Lock) Context(parent context.Context) context.Context   { return nil }
func (l *Lock) Regain(ctx context.Context) error                 { return nil }
func (l *Lock) Downgrade(ctx context.Context) error              { return nil }
func (l *Lock) Upgrade(ctx context.Context) (*Lock, error)       { return nil, nil }
func (l *Lock) SetValue(ctx context.Context, value string) error { return nil }
func (l *Lock) Unlock(ctx context.Context) error                 { return nil }
func (l *Lock) UnlockSoon() error                                { return nil }
func (l *Lock) Detach(ctx context.Context) error                 { return nil }
func (l *Lock) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	return 0, nil
}
