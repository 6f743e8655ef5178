package stripe

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type Set struct{}

func (s *Set) All(ctx context.Context) (Locks, error)                     { return nil, nil }
func (s *Set) Any(ctx context.Context) (int, *mortise.Lock, error)        { return 0, nil, nil }
func (s *Set) At(ctx context.Context, i int) (*mortise.Lock, error)       { return nil, nil }
func (s *Set) Lock(ctx context.Context, of string) (*mortise.Lock, error) { return nil, nil }
func (s *Set) TryAny(ctx context.Context) (int, *mortise.Lock, error)     { return 0, nil, nil }

type Locks []*mortise.Lock

func (l Locks) Unlock(ctx context.Context) error               { return nil }
func (l Locks) Err() error                                     { return nil }
func (l Locks) Context(parent context.Context) context.Context { return nil }
