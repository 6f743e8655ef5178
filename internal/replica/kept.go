package replica

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/lockfsm"
)

// ErrKept is the error of a Check or an Evict with a token that a stay has reserved. Only the
// session of the stay knows whether a caller holds the lock with that token.
var ErrKept = errors.New("mortise: the token is reserved by a kept lock")

// keptError returns the error about a token that a stay has reserved, or nil if no stay has
// reserved it.
func keptError(m *lockfsm.Machine, q *Question) error {
	stay, reserved := m.Reserver(q.Key, lockfsm.Token(q.Token))
	if !reserved {
		return nil
	}
	holder := plain.Text(HolderName(stay.Record, stay.Session))
	if q.Op == OpEvict {
		return fmt.Errorf("%w: %s keeps lock %q with token %d; to end the hold of every caller on %s, use token %d "+
			"instead of %d", ErrKept, holder, q.Key, stay.Token, holder, stay.Token, q.Token)
	}
	return fmt.Errorf("%w: %s keeps lock %q with token %d, and only %s knows whether a caller holds it with token %d; "+
		"compare tokens with package fence", ErrKept, holder, q.Key, stay.Token, holder, q.Token)
}
