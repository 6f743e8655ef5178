package stripe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
)

const maxStripes = 4096

// Locker is the part of *mortise.Node that a Set uses. It must be safe for concurrent use.
type Locker interface {
	Lock(ctx context.Context, key string) (*mortise.Lock, error)
	TryLock(ctx context.Context, key string) (*mortise.Lock, error)
}

// Set is the access of one instance to the stripes of one name. It needs no Close. It must not be
// copied.
type Set struct {
	locker Locker
	name   string
	n      int
	start  atomic.Uint32 // the number from which the next Any computes its first stripe
}

// New returns the set of the n stripes of a name. n must be 1 to 4,096. New sends nothing.
func New(locker Locker, name string, n int) (*Set, error) {
	if locker == nil {
		return nil, errors.New("stripe: the locker is nil")
	}
	if n < 1 || n > maxStripes {
		return nil, fmt.Errorf("stripe: %d stripes of %q: must be 1 to %d", n, name, maxStripes)
	}
	s := &Set{locker: locker, name: name, n: n}
	s.start.Store(rand.Uint32()) // so that instances begin at different stripes
	return s, nil
}

// Len returns the number of stripes.
func (s *Set) Len() int { return s.n }

// Index returns the number of the stripe of an item; numbers begin at 0.
func (s *Set) Index(of string) int { return index(of, s.n) }

// Lock waits for the stripe of an item. Other items may have the same stripe. The caller owns the
// lock. The errors are those of the locker.
func (s *Set) Lock(ctx context.Context, of string) (*mortise.Lock, error) {
	return s.locker.Lock(ctx, Key(s.name, of, s.n))
}

// At waits for stripe i. The number i must be 0 to Len-1. The caller owns the lock. At fails with
// an error of the locker, or if stripe i does not exist.
func (s *Set) At(ctx context.Context, i int) (*mortise.Lock, error) {
	if i < 0 || i >= s.n {
		return nil, fmt.Errorf("stripe: %q has no stripe %d: they are 0 to %d", s.name, i, s.n-1)
	}
	return s.locker.Lock(ctx, key(s.name, i))
}

// Any acquires a free stripe and returns its number and lock. If no stripe is free, or the group
// cannot answer now, Any waits for one stripe. The first call begins at a random stripe, and each
// later call begins one stripe further. The caller owns the lock. The errors are those of the
// locker.
func (s *Set) Any(ctx context.Context) (int, *mortise.Lock, error) {
	first := s.begin()
	i, lock, err := s.round(ctx, first)
	if errors.Is(err, mortise.ErrHeld) || errors.Is(err, mortise.ErrNotReady) {
		i = first
		lock, err = s.locker.Lock(ctx, key(s.name, i))
	}
	return found(i, lock, err)
}

// TryAny is like Any, but does not wait. If every stripe is held, it fails with mortise.ErrHeld for
// the last stripe that it tried.
func (s *Set) TryAny(ctx context.Context) (int, *mortise.Lock, error) {
	return found(s.round(ctx, s.begin()))
}

func (s *Set) begin() int { return int(s.start.Add(1) % uint32(s.n)) }

func (s *Set) round(ctx context.Context, first int) (i int, lock *mortise.Lock, err error) {
	for step := range s.n {
		i = (first + step) % s.n
		if lock, err = s.locker.TryLock(ctx, key(s.name, i)); !errors.Is(err, mortise.ErrHeld) {
			return i, lock, err
		}
	}
	return i, nil, err
}

func found(i int, lock *mortise.Lock, err error) (int, *mortise.Lock, error) {
	if err != nil {
		return -1, nil, err
	}
	return i, lock, nil
}
