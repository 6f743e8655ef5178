package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func asHeld(err error, held **mortise.HeldError) bool { return errors.As(err, held) }

func TestUnlockReleasesEvenIfItsContextHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(0, "k")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ended); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Unlock: %v", err)
		}
		wantIs(t, l.Err(), mortise.ErrUnlocked)
		unlock(t, f.lock(1, "k"))
		f.nothingLeft()
	})
}

func TestUnlockAgainIsHarmless(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		old := f.lock(0, "k")
		unlock(t, old)
		mine := f.lock(0, "k")
		if err := old.Unlock(t.Context()); err != nil {
			t.Errorf("a second Unlock: %v", err)
		}
		time.Sleep(time.Second)
		if err := mine.Err(); err != nil {
			t.Errorf("a second Unlock of an old handle ended a newer lock of the same key: %v", err)
		}
		if _, err := f.nodes[0].TryLock(t.Context(), "k"); !errors.Is(err, mortise.ErrHeld) {
			t.Errorf("a second Unlock of an old handle freed a newer lock: %v", err)
		}
		unlock(t, mine)
	})
}

func TestContextOfALockEndsWithIt(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(0, "k")
		ctx := l.Context(t.Context())
		if ctx.Err() != nil {
			t.Fatal("the context of a held lock has ended")
		}
		f.isolate(0)
		<-ctx.Done()
		wantIs(t, context.Cause(ctx), mortise.ErrLost)
		wantIs(t, l.Err(), mortise.ErrLost)
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		f.rejoin(0)
		f.nothingLeft()
	})
}

func TestContextOfALockThatIsOverHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l := f.lock(0, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := l.Context(t.Context())
		if ctx.Err() == nil {
			t.Fatal("it lives")
		}
		wantIs(t, context.Cause(ctx), mortise.ErrUnlocked)
		f.nothingLeft()
	})
}

func TestDoUnlocksWhenItPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		func() {
			defer func() { _ = recover() }()
			_ = f.nodes[0].Do(t.Context(), "k", func(context.Context, mortise.Token) error { panic("the user's own") })
		}()
		unlock(t, f.lock(0, "k"))
		boom := errors.New("boom")
		if err := f.nodes[0].Do(t.Context(), "k",
			func(context.Context, mortise.Token) error { return boom }); !errors.Is(err, boom) {
			t.Errorf("Do returned %v, want the function's error", err)
		}
		f.nothingLeft()
	})
}

func TestTokenFromFindsTheInnermostLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		if token, ok := mortise.TokenFrom(t.Context()); ok {
			t.Errorf("a context of no lock has the token %d", token)
		}
		outer, inner := f.lock(0, "outer"), f.lock(0, "inner")
		ctx := outer.Context(t.Context())
		below := inner.Context(ctx)
		for _, c := range []struct {
			ctx  context.Context
			want mortise.Token
		}{{ctx, outer.Token()}, {below, inner.Token()}, {context.WithoutCancel(below), inner.Token()},
			{mortise.ContextWithToken(below, 7), 7}} {
			if token, ok := mortise.TokenFrom(c.ctx); !ok || token != c.want {
				t.Errorf("token %d, %v, want %d", token, ok, c.want)
			}
		}
		if err := f.nodes[0].Do(t.Context(), "k", func(ctx context.Context, token mortise.Token) error {
			if got, ok := mortise.TokenFrom(ctx); !ok || got != token {
				t.Errorf("Do: token %d, %v, want %d", got, ok, token)
			}
			// A token that is added to the context does not hide the lock in it.
			again, err := f.nodes[0].TryLock(mortise.ContextWithToken(ctx, 7), "k")
			if err != nil {
				return err
			}
			return again.Unlock(ctx)
		}); err != nil {
			t.Error(err)
		}
		unlock(t, outer)
		unlock(t, inner)
	})
}
