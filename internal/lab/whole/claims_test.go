package whole

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

// held is what a run does with the locks of nodes and guests.
type held interface {
	Key() string
	Token() mortise.Token
	Err() error
	Done() <-chan struct{}
	Unlock(context.Context) error
	UnlockSoon() error
	Downgrade(context.Context) error
	Detach(context.Context) error
	Regain(context.Context) error
}

func upgrade(ctx context.Context, h held) (held, error) {
	if l, ok := h.(*mortise.Lock); ok {
		return lockOf(l.Upgrade(ctx))
	}
	return lockOf(h.(*guest.Lock).Upgrade(ctx))
}

// lockOf returns no held if there was an error, because a nil pointer in an interface is not nil.
func lockOf[L held](l L, err error) (held, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// claims are the locks that callers believe to hold. Package history judges the calls of nodes; the
// claims judge guests, too, and at once.
type claims struct {
	of   map[string][]*claim  // by key
	last map[string]lastToken // the highest tokens of each key
}

type lastToken struct{ any, exclusive mortise.Token }

type claim struct {
	key     string
	lock    held
	caller  string
	mode    mortise.Mode
	permits int64 // with of, for permits
	of      int64
	entered bool // a further handle of a lock, or a pass of a sticky one
}

func (c *claim) exclusive() bool { return c.of == 0 && c.mode == mortise.Exclusive }

// beside reports whether two may hold a key together.
func (c *claim) beside(d *claim) bool {
	if c.of != 0 && d.of != 0 {
		return true // add compares the sums
	}
	if c.of != 0 || d.of != 0 {
		other := c
		if c.of != 0 {
			other = d
		}
		return other.mode == mortise.Shared
	}
	return c.mode == mortise.Shared && d.mode != mortise.Exclusive ||
		d.mode == mortise.Shared && c.mode != mortise.Exclusive
}

// add returns what is wrong with a new claim, or "".
func (s *claims) add(key string, c *claim) string {
	wrong := ""
	sum, total := c.permits, c.of
	for _, d := range s.of[key] {
		if d.lock.Err() != nil || c.lock.Err() != nil {
			continue
		}
		if !c.beside(d) {
			wrong = fmt.Sprintf("%s and %s hold %s: tokens %d and %d", d.caller, c.caller, key, d.lock.Token(),
				c.lock.Token())
		}
		if d.of != 0 {
			sum, total = sum+d.permits, min(total, d.of)
		}
	}
	if c.of != 0 && sum > total {
		wrong = fmt.Sprintf("%d permits of %s are held, of %d", sum, key, total)
	}
	last, t := s.last[key], c.lock.Token()
	switch {
	case c.entered || c.lock.Err() != nil:
	case c.exclusive() && t <= last.any, !c.exclusive() && t <= last.exclusive:
		wrong = fmt.Sprintf("%s holds %s with token %d after %+v", c.caller, key, t, last)
	}
	if c.exclusive() {
		last.exclusive = max(last.exclusive, t)
	}
	last.any = max(last.any, t)
	s.last[key] = last
	s.of[key] = append(s.of[key], c)
	return wrong
}

func (s *claims) drop(key string, c *claim) {
	for i, d := range s.of[key] {
		if d == c {
			s.of[key] = append(s.of[key][:i:i], s.of[key][i+1:]...)
			return
		}
	}
}
