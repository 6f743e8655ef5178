package mortise

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMistakesAreNamed: what a newcomer does wrong, and the text of the error, which says what was wrong and what to do.
func TestMistakesAreNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		n := f.nodes[0]
		soon := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		lock := func(ctx context.Context, key string) error {
			l, err := n.Lock(ctx, key)
			if err == nil {
				unlock(t, l)
			}
			return err
		}
		fields := strings.NewReplacer("SINCE", `since \S+, token \d+`)
		wants := func(what string, err, is error, text string) {
			t.Helper()
			if pattern := "^" + fields.Replace(text) + "$"; err == nil || is != nil && !errors.Is(err, is) || !regexp.MustCompile(pattern).MatchString(err.Error()) {
				t.Errorf("%s:\n got %.300v\nwant %s", what, err, text)
			}
		}
		wants("no key", lock(t.Context(), ""), ErrBadKey, `mortise: bad key: "": it is empty`)
		wants("a huge key", lock(t.Context(), strings.Repeat("k", 10<<20)), ErrBadKey,
			`mortise: bad key: "k{64}"\.\.\. \(10485760 bytes\): it has 10485760 bytes, at most 512 are allowed`)
		wants("a line break", lock(t.Context(), "a\nb"), ErrBadKey, `mortise: bad key: "a\\nb": it has a control character`)
		wants("not UTF-8", lock(t.Context(), "\xff"), ErrBadKey, `mortise: bad key: "\\xff": it is not UTF-8`)
		wants("a nil context", lock(nil, "k"), ErrBadRequest, //nolint:staticcheck // it is the mistake
			`mortise: bad request: lock "k": the context is nil: pass context\.Background\(\) if you have none`)

		l := f.acquire(0, Request{Key: "k"})
		wants("waiting for oneself", lock(soon(), "k"), context.DeadlineExceeded, `mortise: lock "k": context deadline exceeded `+
			`\(when this request was queued, this instance itself held it, SINCE, and no other request was waiting; to enter a lock again, pass lock\.Context\(ctx\)\)`)
		second := f.later(0, Request{Key: "k"})
		time.Sleep(time.Second) // fake time
		wants("behind another one", lock(soon(), "k"), context.DeadlineExceeded, `.*, and 1 other request was waiting; .*`)
		if err := l.Unlock(nil); err != nil { //nolint:staticcheck // it is the mistake
			t.Errorf("Unlock with a nil context: %v", err)
		}
		unlock(t, comes(t, "the second", second))

		shared := f.acquire(0, Request{Key: "r", Shared: true})
		wants("RLock, then Lock", lock(shared.Context(t.Context()), "r"), nil, `mortise: deadlock: node-0 waits for "r", under a shared lock of the same key: `+
			`a shared lock cannot be upgraded; unlock it first, or take the exclusive lock from the beginning`)
		unlock(t, shared)

		permits := f.acquire(0, Request{Key: "p", Permits: 3, Of: 3})
		_, err := n.Acquire(permits.Context(t.Context()), Request{Key: "p", Permits: 1, Of: 3})
		wants("one permit more than there are", err, nil, `mortise: deadlock: node-0 waits for "p", under permits of the same key: `+
			`unlock them first, or ask for all that the work needs at once`)
		unlock(t, permits)

		err = n.Do(t.Context(), "k", func(ctx context.Context, token Token) error {
			if _, err := n.ForceUnlock(t.Context(), "k", token, "a test"); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("charging: %w", context.Cause(ctx))
		})
		wants("a lock that is lost in Do", err, ErrLost, `charging: mortise: the lock was ended by force on node-0: a test`)

		f.acquire(0, Request{Key: "forgotten/1"})
		f.acquire(0, Request{Keys: []string{"forgotten/2", "forgotten/3"}})
		wants("Leave with locks", n.Leave(soon()), context.DeadlineExceeded,
			`mortise: left with locks that were not unlocked; they expire with the session: "forgotten/1", "forgotten/2": context deadline exceeded`)
	})
}
