package mortisetusd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestTheKeyOfEachName compares the key for names at the limit of the length, and for names that no
// key may have.
func TestTheKeyOfEachName(t *testing.T) {
	hashed := func(prefix, name string) string {
		return fmt.Sprintf("%ssha256/%x", prefix, sha256.Sum256([]byte(name)))
	}
	for _, prefix := range []string{"p/", strings.Repeat("p", 256)} {
		fits := strings.Repeat("x", maxKey-len(prefix))
		for name, plain := range map[string]bool{"": true, "a": true, "a/b c": true, "Zürich": true, fits: true,
			fits + "x": false, fits[1:] + "ü": false, "a\x00": false, "a\nb": false, "a\u0085": false, "\xff": false,
			strings.Repeat("y", 2000): false} {
			want := prefix + name
			if !plain {
				want = hashed(prefix, name)
			}
			if got := New(nil, prefix).key(name); got != want {
				t.Errorf("%.40q after a prefix of %d: %s, want %s", name, len(prefix), got, want)
			}
		}
	}
}

// TestWhatALockAsks compares the key, the labels and the holder of a lock that is held.
func TestWhatALockAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 1)
		l := lockOf(t, c, 0, "one")
		mustLock(t, l, never(t))
		info, err := c.Node(0).Peek(t.Context(), "uploads/one")
		if err != nil || info.Held != 1 || fmt.Sprint(info.Queue[0].Labels) != "map[mortise.purpose:job]" {
			t.Errorf("%+v, %v", info, err)
		}
		mustUnlock(t, l)
		mustUnlock(t, l)
		c.Await("uploads/one", 0, 0)
	})
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		l := lockOf(t, c, 0, "one")
		mustLock(t, l, never(t)) // it ends the context, as tusd does
		mustUnlock(t, l)
		if len(all) != 2 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
