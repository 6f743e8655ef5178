package queries

import (
	"errors"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// TestTheLeaderRefusesWhatLacksItsMark sends each question without the number that makes it safe: a
// token, a nonce, or a count. The leader has no parts here, so a question that is not refused at
// once panics.
func TestTheLeaderRefusesWhatLacksItsMark(t *testing.T) {
	ctx, l := t.Context(), leader{}
	nonce := make([]byte, len(lockfsm.Nonce{}))
	for name, c := range map[string]struct {
		ask  func() error
		want error
	}{
		"PutHeld without a token": {func() error {
			_, err := l.PutHeld(ctx, &query.PutRequest{Key: []byte("k"), Lock: []byte("l"), Nonce: nonce})
			return err
		}, errNoToken},
		"Put without a nonce": {func() error {
			_, err := l.Put(ctx, &query.PutRequest{Key: []byte("k")})
			return err
		}, errNonce},
		"Put with a longer nonce": {func() error {
			_, err := l.Put(ctx, &query.PutRequest{Key: []byte("k"), Nonce: append(nonce, 0)})
			return err
		}, errNonce},
		"SetValue without a token": {func() error {
			_, err := l.SetValue(ctx, &query.ValueRequest{Key: []byte("k"), Seq: 1})
			return err
		}, errNoToken},
		"SetValue without a number": {func() error {
			_, err := l.SetValue(ctx, &query.ValueRequest{Key: []byte("k"), Token: 1})
			return err
		}, errNoToken},
		"Reserve of none": {func() error {
			_, err := l.Reserve(ctx, &query.ReserveRequest{})
			return err
		}, errCount},
		"Reserve of too many": {func() error {
			_, err := l.Reserve(ctx, &query.ReserveRequest{Count: lockfsm.MaxReserved + 1})
			return err
		}, errCount},
		"Evict without a token": {func() error {
			_, err := l.Evict(ctx, &query.EvictRequest{Key: []byte("k"), By: []byte("b")})
			return err
		}, nil},
	} {
		if err := c.ask(); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
