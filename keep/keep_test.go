package keep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

func start(t *testing.T) *mortise.Node {
	t.Helper()
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return node
}

type told struct {
	token mortise.Token
	err   error
}

// TestALostLockIsAcquiredAgain keeps a request of each kind, and ends its first hold by force.
func TestALostLockIsAcquiredAgain(t *testing.T) {
	node := start(t)
	for name, r := range map[string]mortise.Request{
		"exclusive": {Key: "a", Value: "here"}, "shared": {Key: "b", Shared: true},
		"permits": {Key: "c", Permits: 1, Of: 2}, "several keys": {Keys: []string{"d", "e"}},
	} {
		t.Run(name, func(t *testing.T) {
			var tokens []mortise.Token
			var reports []told
			o := keep.Options{Report: func(token mortise.Token, err error) { reports = append(reports, told{token, err}) }}
			err := keep.Run(t.Context(), node, r, o, func(ctx context.Context, lock *mortise.Lock) error {
				tokens = append(tokens, lock.Token())
				info, err := node.Peek(ctx, lock.Key())
				if err != nil {
					return err
				}
				if s := info.Queue[0]; s.Value != r.Value || s.Shared != r.Shared || s.Permits != r.Permits ||
					len(s.Keys) != len(r.Keys) {
					t.Errorf("the hold is %+v", s)
				}
				if len(tokens) == 2 {
					return nil
				}
				if _, err := node.ForceUnlock(ctx, lock.Key(), lock.Token(), "a test"); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			})
			if err != nil || len(tokens) != 2 || tokens[1] <= tokens[0] {
				t.Errorf("Run returns %v after holds with %d", err, tokens)
			}
			if len(reports) != 1 || reports[0].token != tokens[0] || !errors.Is(reports[0].err, mortise.ErrLost) {
				t.Errorf("reported is %v", reports)
			}
		})
	}
}

func TestRunEnds(t *testing.T) {
	node := start(t)
	ctx, stop := context.WithCancelCause(t.Context())
	deploy := errors.New("deploy")
	fails, reported := errors.New("no file"), 0
	runs := 0
	o := keep.Options{Backoff: time.Millisecond, Report: func(_ mortise.Token, err error) {
		if reported++; !errors.Is(err, fails) {
			t.Errorf("reported is %v", err)
		}
	}}
	err := keep.Run(ctx, node, mortise.Request{Key: "k"}, o, func(ctx context.Context, lock *mortise.Lock) error {
		if runs++; runs < 4 {
			return fails
		}
		stop(deploy)
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, deploy) || runs != 4 || reported != 3 {
		t.Errorf("Run returns %v after %d runs and %d reports", err, runs, reported)
	}
	if lock, err := node.TryLock(t.Context(), "k"); err != nil {
		t.Errorf("the lock was not released: %v", err)
	} else if err := lock.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	for _, r := range []mortise.Request{{Key: "k", Try: true}, {Key: "k", Resume: 1}, {Key: "k", Shared: true, Of: 3}} {
		err := keep.Run(t.Context(), node, r, keep.Options{}, func(context.Context, *mortise.Lock) error {
			t.Error("a wrong request was granted")
			return nil
		})
		if !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
