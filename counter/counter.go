package counter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise"
)

// Node is the part of *mortise.Node that this package uses. It must be safe for concurrent use.
type Node interface {
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
}

// ErrUnknown means that an addition may have taken effect once or not at all, and that the counter
// no longer has its result. A repetition returns this error again.
var ErrUnknown = errors.New("counter: it is not known whether the addition took effect")

// Counter is a number that starts at zero. It is safe for concurrent use.
type Counter struct {
	node Node
	key  string
}

// New returns the counter whose value is in the data of key. All instances must use the key only
// for this counter.
func New(node Node, key string) *Counter { return &Counter{node, key} }

// Value returns the present value. The errors are those of mortise.Node.Get, and ErrBadRequest if
// the key has other data.
func (c *Counter) Value(ctx context.Context) (int64, error) {
	r, _, err := c.read(ctx)
	return r.value, err
}

// Add adds delta, which may be negative, and returns the value directly after that. It returns the
// errors of [Addition.Do]. After an error the addition may have taken effect: to find out, use an
// [Addition].
func (c *Counter) Add(ctx context.Context, delta int64) (int64, error) {
	return c.Addition(delta).Do(ctx)
}

// Addition is one addition, which can be repeated after an error without being made twice. An
// Addition belongs to one goroutine at a time.
type Addition struct {
	counter *Counter
	delta   int64
	id      string
	// sent reports that a Put with this addition may have taken effect. When the counter was last read
	// without this addition, it had known additions.
	sent  bool
	known uint64
}

// Addition returns an addition of delta, which nothing has made yet.
func (c *Counter) Addition(delta int64) *Addition {
	return &Addition{counter: c, delta: delta, id: rand.Text()}
}

// Do makes the addition unless an earlier call has made it, and returns the value directly after
// the addition. It returns ErrUnknown if it cannot find out whether an earlier call has made it,
// and ErrBadRequest if the value would exceed an int64 or the key has other data. Other errors are
// those of mortise.Node.Get and Put; then call Do again.
func (a *Addition) Do(ctx context.Context) (int64, error) {
	c := a.counter
	for {
		r, revision, err := c.read(ctx)
		if err != nil {
			return 0, err
		}
		value, made := r.result(a.id)
		switch {
		case made:
			return value, nil
		case a.sent && r.forgets(a.known):
			return 0, fmt.Errorf("%w: %q had %d additions before it, and has %d", ErrUnknown, c.key, a.known, r.count)
		}
		// No attempt has taken effect so far, and one that still does so is the next addition: each Put
		// is for the revision that it has read.
		a.known = r.count
		if value, made = r.add(a.id, a.delta); !made {
			return 0, fmt.Errorf("%w: counter %q: %d and %d exceed an int64", mortise.ErrBadRequest, c.key, r.value, a.delta)
		}
		a.sent = true
		switch _, err = c.node.Put(ctx, c.key, r.encode(), revision); {
		case err == nil:
			return value, nil
		case !errors.Is(err, mortise.ErrConflict):
			return 0, err
		}
	}
}

func (c *Counter) read(ctx context.Context) (record, uint64, error) {
	data, revision, err := c.node.Get(ctx, c.key)
	if err != nil {
		return record{}, 0, err
	}
	r, ok := parse(data)
	if !ok {
		return record{}, 0, fmt.Errorf("%w: the data of %q is not a counter: use another key", mortise.ErrBadRequest, c.key)
	}
	return r, revision, nil
}
