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

// Locker is what a Set needs of a *mortise.Node, which is one. It must be safe for concurrent use.
type Locker interface {
	Lock(ctx context.Context, key string) (*mortise.Lock, error)
	TryLock(ctx context.Context, key string) (*mortise.Lock, error)
}

// Set is the stripes of one name, as one instance sees them. It holds nothing by itself and needs
// no Close. It is safe for concurrent use and must not be copied.
type Set struct {
	locker Locker
	name   string
	n      int
	start  atomic.Uint32 // where the next Any begins
}

// New returns the n stripes of a name, 1 to 4,096. It asks nobody: that all instances name the same
// n is for the caller to see to.
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

// Index returns which stripe a thing has, from 0.
func (s *Set) Index(of string) int { return index(of, s.n) }

// Lock waits for the stripe of a thing, which it may share with other things. The caller owns the
// lock; errors are those of the locker.
func (s *Set) Lock(ctx context.Context, of string) (*mortise.Lock, error) {
	return s.locker.Lock(ctx, Key(s.name, of, s.n))
}

// At waits for stripe i, 0 to Len-1. The caller owns the lock; errors are those of the locker, or
// say that there is no such stripe.
func (s *Set) At(ctx context.Context, i int) (*mortise.Lock, error) {
	if i < 0 || i >= s.n {
		return nil, fmt.Errorf("stripe: %q has no stripe %d: they are 0 to %d", s.name, i, s.n-1)
	}
	return s.locker.Lock(ctx, key(s.name, i))
}

// Any returns a stripe that is free, and which one it is. If it finds none it waits for one, in
// that stripe's order: see the package comment for what that means for fairness. Every call begins
// one stripe further than the one before, and every Set at one of its own. The caller owns the
// lock; errors are those of the locker.
func (s *Set) Any(ctx context.Context) (int, *mortise.Lock, error) {
	first := s.begin()
	i, lock, err := s.round(ctx, first)
	if errors.Is(err, mortise.ErrHeld) || errors.Is(err, mortise.ErrNotReady) {
		i = first
		lock, err = s.locker.Lock(ctx, key(s.name, i))
	}
	return found(i, lock, err)
}

// TryAny is Any, but never queues: if every stripe is taken its error is mortise.ErrHeld, of the
// last stripe that it asked for. It can be wrong about the whole set, since it asks for one stripe
// after the other: a stripe that it passed may have become free.
func (s *Set) TryAny(ctx context.Context) (int, *mortise.Lock, error) {
	return found(s.round(ctx, s.begin()))
}

// begin returns the stripe at which the next search begins.
func (s *Set) begin() int { return int(s.start.Add(1) % uint32(s.n)) }

// round tries each stripe once, and stops at the first answer that is not "held".
func (s *Set) round(ctx context.Context, first int) (i int, lock *mortise.Lock, err error) {
	for step := range s.n {
		i = (first + step) % s.n
		if lock, err = s.locker.TryLock(ctx, key(s.name, i)); !errors.Is(err, mortise.ErrHeld) {
			return i, lock, err
		}
	}
	return i, nil, err
}

// found makes sure that an error never comes with a stripe.
func found(i int, lock *mortise.Lock, err error) (int, *mortise.Lock, error) {
	if err != nil {
		return -1, nil, err
	}
	return i, lock, nil
}
