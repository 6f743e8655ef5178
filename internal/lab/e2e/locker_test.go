package e2e

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/locker/lockertest"
)

// What fits the interface of module locker.
var (
	_ locker.Locker                                   = (*mortise.Node)(nil)
	_ locker.Lock                                     = (*mortise.Lock)(nil)
	_ locker.Acquirer[mortise.Request, *mortise.Lock] = (*mortise.Node)(nil)
	_ locker.Acquirer[mortise.Request, *mortise.Lock] = (*mortise.Session)(nil)
)

func loneNode(t *testing.T) *mortise.Node {
	t.Helper()
	node, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	return node
}

func TestANodeIsALocker(t *testing.T) {
	lockertest.Run(t, func(t *testing.T) locker.Locker { return loneNode(t) })
	lockertest.Run(t, func(t *testing.T) locker.Locker {
		return locker.Requests(loneNode(t), func(key string) mortise.Request { return mortise.Request{Key: key} })
	})
}

// meet runs two calls, each of which waits inside for the other, and reports whether they met.
func meet(t *testing.T, l locker.Locker, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	inside, met := make(chan struct{}, 2), make(chan error, 2)
	for range 2 {
		go func() {
			met <- l.Do(ctx, "k", func(ctx context.Context, _ mortise.Token) error {
				inside <- struct{}{}
				for len(inside) < 2 {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Millisecond):
					}
				}
				return nil
			})
		}()
	}
	return errors.Join(<-met, <-met) == nil
}

func TestALockerOfAllKinds(t *testing.T) {
	node := loneNode(t)
	for what, test := range map[string]struct {
		request mortise.Request
		meet    bool
	}{
		"exclusive":     {mortise.Request{Key: "k"}, false},
		"shared":        {mortise.Request{Key: "k", Mode: mortise.Shared}, true},
		"two permits":   {mortise.Request{Key: "k", Mode: mortise.Permits(1, 2)}, true},
		"both of two":   {mortise.Request{Key: "k", Mode: mortise.Permits(2, 2)}, false},
		"two keys":      {mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}}, false},
		"a path":        {mortise.Request{Key: "a/b", Tree: true}, false},
		"a shared path": {mortise.Request{Key: "a/b", Mode: mortise.Shared, Tree: true}, true},
		"shared two keys": {mortise.Request{Key: "a", Mode: mortise.Shared,
			Also: []mortise.Part{{Key: "b", Mode: mortise.Shared}}}, true},
	} {
		l := locker.Requests(node, func(string) mortise.Request { return test.request })
		within := 50 * time.Millisecond
		if test.meet {
			within = time.Minute
		}
		if got := meet(t, l, within); got != test.meet {
			t.Errorf("%s: two calls run at the same time: %v", what, got)
		}
	}
}

// A lock that was lost is reported once, by fn or by Do, and a try of a held lock names its holder.
func TestALockerReportsALoss(t *testing.T) {
	node := loneNode(t)
	l := locker.Requests(node, func(key string) mortise.Request {
		return mortise.Request{Key: key, MaxHold: time.Millisecond}
	})
	err := l.Do(t.Context(), "k", func(ctx context.Context, _ mortise.Token) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, locker.ErrLost) || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("%v", err)
	}
	if err := l.Do(t.Context(), "k", func(ctx context.Context, _ mortise.Token) error {
		<-ctx.Done()
		return nil
	}); !errors.Is(err, locker.ErrLost) {
		t.Errorf("fn did not report the loss: %v", err)
	}
	lock, err := node.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock(t.Context())
	try := locker.Requests(node, func(key string) mortise.Request { return mortise.Request{Key: key, Try: true} })
	err = try.Do(t.Context(), "k", func(context.Context, mortise.Token) error { return errors.New("it has run") })
	if _, is := errors.AsType[*mortise.HeldError](err); !is || !errors.Is(err, locker.ErrHeld) {
		t.Errorf("a try of a held lock: %v", err)
	}
}

// A project that knows only the interface tests for the errors of this module: each name means the
// same error in both, and an error with details is one of the interface, too.
func TestTheInterfaceHasTheErrors(t *testing.T) {
	for face, root := range map[error]error{
		locker.ErrHeld: mortise.ErrHeld, locker.ErrLost: mortise.ErrLost, locker.ErrInJeopardy: mortise.ErrInJeopardy,
		locker.ErrUnlocked: mortise.ErrUnlocked, locker.ErrNotReady: mortise.ErrNotReady,
		locker.ErrUnsupported: mortise.ErrUnsupported, locker.ErrOverloaded: mortise.ErrOverloaded,
		locker.ErrQueueFull: mortise.ErrQueueFull, locker.ErrNoRoom: mortise.ErrNoRoom,
		locker.ErrLeaving: mortise.ErrLeaving, locker.ErrClosed: mortise.ErrClosed,
		locker.ErrNotAllowed: mortise.ErrNotAllowed, locker.ErrBadRequest: mortise.ErrBadRequest,
		locker.ErrBadKey:   mortise.ErrBadKey,
		locker.ErrDeadlock: &mortise.DeadlockError{},
	} {
		if !errors.Is(root, face) {
			t.Errorf("%v is not %v of the interface", root, face)
		}
	}
	for is, detailed := range map[error]error{
		locker.ErrHeld: &mortise.HeldError{Hold: mortise.Hold{Token: 1}}, locker.ErrLost: &mortise.ForcedError{},
		locker.ErrBadRequest: &mortise.EnteredError{}, locker.ErrNotAllowed: &mortise.NotAllowedError{},
	} {
		if !errors.Is(detailed, is) {
			t.Errorf("a %T is not %v", detailed, is)
		}
	}
}
