package guest

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// Refusal returns the error of package mortise for an answer that a repeated question would get,
// too: a wrong question is ErrBadRequest, and a Put at another revision ErrConflict. It returns any
// other error unchanged.
func Refusal(err error) error {
	switch f := failed(err); {
	case f != nil && f.Kind == query.Failure_WRONG:
		return fmt.Errorf("%w: %s", mortise.ErrBadRequest,
			strings.TrimPrefix(err.Error(), mortise.ErrBadRequest.Error()+": "))
	case f != nil && f.Kind == query.Failure_CONFLICT:
		return fmt.Errorf("%w: %w", mortise.ErrConflict, err)
	}
	return err
}

// Data changes the data of a key, and returns the new revision: see mortise.Node.Put. If lock is
// not nil, the change is made only while that lock is held.
func (g *Guest) Data(ctx context.Context, lock *Lock, key string, data []byte, revision uint64) (uint64, error) {
	q := &query.PutRequest{Key: []byte(key), Data: data, Revision: revision, Nonce: make([]byte, len(lockfsm.Nonce{}))}
	random(q.Nonce) // every attempt has the same nonce, so that the change takes effect once
	if lock != nil {
		q.Lock, q.Token = []byte(lock.key), uint64(lock.Token())
	}
	a, err := Put(ctx, g, query.AdminClient.Put, q)
	if err == nil && lock != nil && lockfsm.Code(a.Code) == lockfsm.NotHeld {
		err = lock.notHeld()
	}
	return a.GetRevision(), Refusal(err)
}

// Put changes the data of a key while the lock is held: see mortise.Lock.Put. The guest needs the
// right to write that key.
func (l *Lock) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	l.Beat()
	if err := l.mayChange("Put under"); err != nil {
		return 0, err
	}
	return l.session.guest.Data(ctx, l, key, data, revision)
}

// SetValue changes the value that others see: see mortise.Lock.SetValue. The guest still needs the
// right to lock the key.
func (l *Lock) SetValue(ctx context.Context, value string) error {
	l.Beat()
	if err := l.mayChange("SetValue of"); err != nil {
		return err
	}
	if l.base != nil {
		l = l.base // an upgrade has no value of its own
	}
	_, labels := shown.Decode(l.hold.Grant().Value)
	text := shown.Encode(value, labels, nil)
	if len(text) > lockfsm.MaxValueBytes {
		return fmt.Errorf("%w: SetValue: the value and the labels take %d bytes, more than %d", mortise.ErrBadRequest,
			len(text), lockfsm.MaxValueBytes)
	}
	a, err := Put(ctx, l.session.guest, query.AdminClient.SetValue, &query.ValueRequest{Key: []byte(l.key),
		Token: uint64(l.Token()), Seq: l.values.Add(1), Value: text})
	if err != nil {
		return Refusal(err)
	}
	switch code := lockfsm.Code(a.Code); code {
	case lockfsm.Done:
		return nil
	case lockfsm.NotHeld:
		return l.notHeld()
	case lockfsm.Unsupported:
		return fmt.Errorf("%w: SetValue of %q", mortise.ErrUnsupported, l.key)
	default:
		return fmt.Errorf("SetValue of %q: %w", l.key, client.BudgetErrorOf(code, a.Budget))
	}
}

func (l *Lock) mayChange(doing string) error {
	if l.hold.Passed() {
		return fmt.Errorf("%w: %s a sticky lock, whose callers the group does not know: request it not sticky",
			mortise.ErrBadRequest, doing)
	}
	return l.Err()
}

func (l *Lock) notHeld() error {
	return fmt.Errorf("%w: the group has no hold of %q with token %d", mortise.ErrLost, l.key, l.Token())
}
