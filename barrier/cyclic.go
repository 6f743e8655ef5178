package barrier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Cyclic is the place of one participant at a barrier at which n participants wait for each other,
// again and again. It needs no Close. It must not be copied.
type Cyclic struct {
	place       place
	participant string

	waiting sync.Mutex // held by Await; guards the fields below
	last    uint64     // the last generation whose end Await has returned, or 0
	joined  uint64     // the generation that Await has tried to join, while its end is not known, or 0
}

// NewCyclic returns the place of a participant at the cyclic barrier of a name for n participants,
// 1 to 128. The barrier must have exactly n participants with different names. NewCyclic sends
// nothing. The node must not be nil.
func NewCyclic(node Node, name string, n int, participant string) (*Cyclic, error) {
	p, err := newPlace(node, name, kindCyclic, n)
	if err == nil {
		err = checkName(participant)
	}
	return &Cyclic{place: p, participant: participant}, err
}

// Await waits until all n participants wait, and returns nil for each of them. The next call waits
// for the next generation.
//
// Await fails with ErrBroken if the generation is broken: a participant stopped waiting, because
// its context ended or its process crashed, or was started again, or the barrier was removed, or
// the group was founded anew. Every participant gets ErrBroken for this generation: the ones that
// wait immediately, the others at their next call of Await. Then the barrier can be used again.
//
// If ctx ends during the wait, Await breaks the generation and returns the cause. If the generation
// is complete at that moment, Await returns nil. If the group does not answer for 1 s, Await
// returns an error that says so, and the next call of Await begins with the end of this generation.
// If ctx ends before Await has joined the generation, the others keep waiting for this participant.
//
// A second call of Await while one waits is an error. The other errors are ErrMismatch,
// ErrReplaced, and those of mortise.Node.Acquire.
func (c *Cyclic) Await(ctx context.Context) error {
	if !c.waiting.TryLock() {
		return fmt.Errorf("barrier: participant %q of %q waits already", c.participant, c.place.name)
	}
	defer c.waiting.Unlock()
	lock, err := c.place.hold(ctx, c.participant)
	if err != nil {
		return err
	}
	defer lock.UnlockSoon() // the wait is over, so the error does not matter
	w := wait{c: c, me: lock.Token(), names: map[mortise.Token]string{}}
	err = c.place.await(lock.Context(ctx), func(ctx context.Context) (bool, error) {
		err := c.place.agree(ctx, w.join)
		return w.over, err
	})
	if err != nil && !w.over && c.joined != 0 {
		err = w.withdraw(ctx, err)
	}
	return err
}

// wait is one call of Await.
type wait struct {
	c     *Cyclic
	me    mortise.Token
	over  bool                     // the end of the generation is known
	names map[mortise.Token]string // of the holds that this call has seen
}

func (w *wait) join(v *view) (changed bool, err error) {
	c := w.c
	if over, err := w.ended(v); over {
		return false, err
	}
	if err := v.holds(&c.place, c.participant, w.me); err != nil {
		return false, err
	}
	if v.revision == 0 {
		v.begin(&c.place, w.me) // joins in the next step, when it is certain which generation exists
		return true, nil
	}
	if why := w.gone(v); why != "" {
		v.breaks(why)
		return true, nil
	}
	if len(v.In) > 0 {
		if err := c.place.sized(v); err != nil {
			return false, err
		}
	}
	if slices.Contains(v.In, w.me) {
		return false, nil
	}
	c.joined, v.Size = v.Round, c.place.size
	if v.In = append(v.In, w.me); len(v.In) == v.Size {
		v.Passed, v.Round, v.In, v.Why = v.Round, v.Round+1, nil, ""
	}
	return true, nil
}

// gone returns why the present generation cannot become complete, or "".
func (w *wait) gone(v *view) (why string) {
	maps.Copy(w.names, v.holders)
	alive := v.alive(w.c.participant, w.me)
	for _, token := range v.In {
		if slices.Contains(alive, token) {
			continue
		}
		if name, known := w.names[token]; known {
			return fmt.Sprintf("participant %q has crashed, or was started again", name)
		}
		why = "a participant has crashed, or was started again"
	}
	return why
}

// ended reports whether the generation of this wait has ended, and how. If this participant has
// missed a generation, the wait is for that one.
func (w *wait) ended(v *view) (over bool, err error) {
	c := w.c
	switch {
	case v.revision == 0 && c.joined == 0 && c.last == 0: // nothing has begun
		return false, nil
	case v.revision == 0:
		c.last, c.joined, w.over = 0, 0, true
		return true, fmt.Errorf("%w: %q was removed, or its group was founded anew", ErrBroken, c.place.name)
	case c.joined != 0 && v.Round != c.joined:
		// Without this participant no generation can become complete. So Passed is not above joined.
		broken := v.Passed != c.joined
		c.last, c.joined, w.over = c.joined, 0, true
		if broken {
			return true, c.broken(v, c.last)
		}
		return true, nil
	case c.joined == 0 && c.last != 0 && v.Round != c.last+1:
		c.last, w.over = v.Round-1, true
		return true, c.broken(v, c.last)
	}
	return false, nil
}

func (c *Cyclic) broken(v *view, generation uint64) error {
	return fmt.Errorf("%w: generation %d of %q: %s", ErrBroken, generation, c.place.name, v.Why)
}

func (v *view) breaks(why string) { v.Round, v.In, v.Why = v.Round+1, nil, why }

// withdraw breaks the generation that this wait has joined, and returns why. If the generation has
// ended before, it returns how.
func (w *wait) withdraw(ctx context.Context, why error) error {
	c := w.c
	ctx, cancel := withdrawing(ctx)
	defer cancel()
	generation, mine := c.joined, false
	err := c.place.agree(ctx, func(v *view) (bool, error) {
		if over, err := w.ended(v); over {
			return false, err
		}
		v.breaks(fmt.Sprintf("participant %q has stopped waiting", c.participant))
		mine = true
		return true, nil
	})
	switch {
	case w.over && mine && errors.Is(err, ErrBroken):
		return why
	case w.over:
		return err
	}
	return fmt.Errorf("barrier: the end of generation %d of %q is unknown: %w", generation, c.place.name,
		errors.Join(why, err))
}

// Remove removes the barrier from the group. A participant that waits, and every other participant
// at its next call of Await, fails with ErrBroken. Call Remove when no participant uses the barrier
// any more.
func (c *Cyclic) Remove(ctx context.Context) error { return c.place.remove(ctx) }
