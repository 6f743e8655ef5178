package barrier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Latch is a count of n that n participants bring to zero, once. It needs no Close.
type Latch struct {
	place place
}

// NewLatch returns the latch of a name, whose count begins at n. All instances must use the same n,
// 1 to 128. NewLatch sends nothing. The node must not be nil.
func NewLatch(node Node, name string, n int) (*Latch, error) {
	p, err := newPlace(node, name, kindLatch, n)
	return &Latch{p}, err
}

// latchBytes is the room for all names in the record of a latch, as JSON.
const latchBytes = 3900

// checkName refuses a name that could be too long for the record when all participants have counted
// down.
func (l *Latch) checkName(participant string) error {
	if err := checkName(participant); err != nil {
		return err
	}
	text, err := json.Marshal(participant)
	if most := latchBytes/l.place.size - len(`,`); len(text) > most {
		return fmt.Errorf("barrier: the name %.64q of a participant has %d bytes as JSON, more than %d: "+
			"this is the limit of a latch of %d", participant, len(text), most, l.place.size)
	}
	return err
}

// CountDown reduces the count by one, for the named participant. A participant counts once: call
// CountDown again after any error. If the count is zero, CountDown does nothing. The errors are
// ErrMismatch, and those of mortise.Node.Peek and Put.
func (l *Latch) CountDown(ctx context.Context, participant string) error {
	if err := l.checkName(participant); err != nil {
		return err
	}
	return l.place.agree(ctx, func(v *view) (changed bool, err error) {
		if v.revision == 0 {
			v.begin(&l.place, 0)
		}
		if err := l.place.sized(v); err != nil {
			return false, err
		}
		if len(v.Names) >= v.Size || slices.Contains(v.Names, participant) {
			return false, nil
		}
		v.Names = append(v.Names, participant)
		return true, nil
	})
}

// Counted returns the participants that have counted down, in the order in which they did. The
// count is zero when there are n. The answer is linearizable. The errors are those of CountDown.
func (l *Latch) Counted(ctx context.Context) ([]string, error) {
	v, err := l.place.view(ctx)
	if err != nil || v.revision == 0 {
		return nil, err
	}
	return v.Names, l.place.sized(&v)
}

// Wait returns nil when the count is zero, immediately if it is zero already. Any number of callers
// may wait. It returns ErrForgotten if it has seen a participant whose count no longer exists, and
// otherwise the cause of the end of ctx, ErrMismatch, or the error of the node.
func (l *Latch) Wait(ctx context.Context) error {
	var seen []string
	return l.place.await(ctx, func(ctx context.Context) (bool, error) {
		names, err := l.Counted(ctx)
		if err != nil {
			return false, err
		}
		if len(names) < len(seen) || !slices.Equal(names[:len(seen)], seen) {
			return false, fmt.Errorf("%w: latch %q", ErrForgotten, l.place.name)
		}
		seen = names
		return len(names) >= l.place.size, nil
	})
}

// Remove removes the latch from the group. A waiter that has seen a count fails with ErrForgotten.
// Call Remove when no participant uses the latch any more, and use a new name for the next latch: a
// CountDown after Remove begins a new latch.
func (l *Latch) Remove(ctx context.Context) error { return l.place.remove(ctx) }
