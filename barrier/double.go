package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
)

// Double is a barrier that n participants enter together and leave together. It needs no Close.
type Double struct {
	place place
}

// NewDouble returns the double barrier of a name for n participants. All participants must use the
// same n, 1 to 128. NewDouble sends nothing. The node must not be nil.
func NewDouble(node Node, name string, n int) (*Double, error) {
	p, err := newPlace(node, name, kindDouble, n)
	return &Double{p}, err
}

// Presence is one participant inside one round of a Double. It lasts until Leave, or until it is
// lost with its session. Only Enter creates a Presence. It is safe for concurrent use.
type Presence struct {
	place *place
	lock  *mortise.Lock
	round uint64
}

// Enter waits until n participants have entered, and returns the presence of this one. The caller
// must call Leave. While the participants of an earlier round are still inside, Enter waits for
// them to leave first.
//
// If ctx ends during the wait, Enter withdraws and returns the cause, and this participant does not
// count. If the barrier has opened at that moment, Enter succeeds. If the group does not answer for
// 1 s, Enter returns an error that says so: the barrier may have opened with this participant,
// which then counts as left. The other errors are ErrMismatch, ErrReplaced, and those of
// mortise.Node.Acquire.
func (d *Double) Enter(ctx context.Context, participant string) (*Presence, error) {
	lock, err := d.place.hold(ctx, participant)
	if err != nil {
		return nil, err
	}
	a := arrival{place: &d.place, name: participant, me: lock.Token()}
	waiting, end := context.WithCancel(ctx)
	defer end() // the lock goes on, and nothing more needs its context
	err = d.place.await(lock.Context(waiting), func(ctx context.Context) (bool, error) {
		err := d.place.agree(ctx, a.enter) // first: it sets entered
		return a.entered, err
	})
	if err != nil && a.tried {
		err = a.withdraw(ctx, err)
	}
	if err != nil {
		_ = lock.UnlockSoon() // the hold no longer counts
		return nil, err
	}
	return &Presence{&d.place, lock, a.round}, nil
}

// arrival is one call of Enter.
type arrival struct {
	place   *place
	name    string
	me      mortise.Token
	tried   bool // a record with me may have been stored
	entered bool
	round   uint64
}

func (a *arrival) enter(v *view) (changed bool, err error) {
	if !a.tried && slices.Contains(v.In, a.me) {
		return false, fmt.Errorf("barrier: the context already belongs to a presence of %q: use another context",
			a.place.name)
	}
	if err := v.holds(a.place, a.name, a.me); err != nil {
		return false, err
	}
	inside := v.alive(a.name, a.me)
	switch {
	case v.Open && slices.Contains(inside, a.me):
		a.entered, a.round = true, v.Round
		return false, nil
	case len(inside) == 0:
		v.begin(a.place, a.me)
	case v.Open: // the others must leave first
		changed = len(inside) < len(v.In)
		v.In = inside
		return changed, nil
	default:
		if err := a.place.sized(v); err != nil {
			return false, err
		}
	}
	if slices.Contains(inside, a.me) && len(inside) == len(v.In) {
		return false, nil
	}
	if !slices.Contains(inside, a.me) {
		inside = append(inside, a.me)
	}
	v.In, v.Open, a.tried = inside, len(inside) == v.Size, true
	return true, nil
}

// withdraw removes the arrival from the record. It returns nil if the barrier has opened before,
// and otherwise why.
func (a *arrival) withdraw(ctx context.Context, why error) error {
	ctx, cancel := withdrawing(ctx)
	defer cancel()
	tried := true
	err := a.place.agree(ctx, func(v *view) (bool, error) {
		if a.entered, a.round = v.Open && slices.Contains(v.In, a.me), v.Round; a.entered {
			return false, nil
		}
		// The first change stores the record even if it does not contain me. Then a change of enter that
		// is still under way cannot take effect.
		changed := v.revision != 0 && (tried || slices.Contains(v.In, a.me))
		tried = false
		v.In = slices.DeleteFunc(v.In, func(t mortise.Token) bool { return t == a.me })
		if len(v.In) == 0 {
			v.record = record{}
		}
		return changed, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("barrier: it is unknown whether %q has opened with %q: %w", a.place.name, a.name,
			errors.Join(why, err))
	case a.entered && errors.Is(why, mortise.ErrLost):
		return fmt.Errorf("barrier: %q has opened, but the presence is lost: %w", a.place.name, why)
	case a.entered:
		return nil
	}
	return why
}

// Context returns a child of parent that ends when the presence is lost or left, or when the node
// begins to leave, with the cause of mortise.Lock.Context. Each call uses a goroutine until parent
// or the presence ends.
func (p *Presence) Context(parent context.Context) context.Context { return p.lock.Context(parent) }

// Leave leaves the barrier and waits until all participants of the round have left. A participant
// whose session has ended counts as left. After an error, this participant has left, or leaves when
// a leader is reached; Leave may be called again to wait for the others. It returns mortise.ErrLost
// if the presence was lost before, and otherwise the cause of the end of ctx or the error of the
// node.
func (p *Presence) Leave(ctx context.Context) error {
	if err := p.lock.Unlock(ctx); err != nil {
		return because(ctx, err)
	}
	return p.place.await(ctx, func(ctx context.Context) (over bool, err error) {
		err = p.place.agree(ctx, func(v *view) (changed bool, err error) {
			over = v.revision == 0 || v.Round != p.round || len(v.alive("", 0)) == 0
			if !over || v.revision == 0 || v.Round != p.round {
				return false, nil
			}
			v.record = record{} // the last one leaves no data behind
			return true, nil
		})
		return over, err
	})
}
