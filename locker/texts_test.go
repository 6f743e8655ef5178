package locker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatALocalSays compares the whole error of each call that does not get a lock, and what it
// wraps.
func TestWhatALocalSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Local
		free := holdUntil(t, &l, "k")
		enough := errors.New("enough")
		ended, end := context.WithCancelCause(t.Context())
		end(enough)
		plain, cancel := context.WithCancel(t.Context())
		cancel()
		do := func(ctx context.Context, key string) error {
			return l.Do(ctx, key, func(context.Context, Token) error {
				t.Errorf("%q was locked", key)
				return nil
			})
		}
		for _, row := range []struct {
			err   error
			want  string
			wraps []error
		}{
			{do(ended, "k"), `locker: lock "k": context canceled: enough`, []error{context.Canceled, enough}},
			{do(plain, "other"), `locker: lock "other": context canceled`, []error{context.Canceled}},
		} {
			if row.err == nil || row.err.Error() != row.want {
				t.Errorf("%v, want %s", row.err, row.want)
			}
			for _, wrapped := range row.wraps {
				if !errors.Is(row.err, wrapped) {
					t.Errorf("%v does not wrap %v", row.err, wrapped)
				}
			}
		}
		gaveUp := make(chan error, 3)
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
			defer cancel()
			go func() { gaveUp <- do(ctx, "k") }()
			synctest.Wait()
		}
		said := map[string]bool{}
		for range 3 {
			err := <-gaveUp
			said[fmt.Sprint(err)] = errors.Is(err, context.DeadlineExceeded) && errors.Is(err, enough)
		}
		for waiting := range 3 {
			text := fmt.Sprintf(`locker: lock "k": context deadline exceeded: enough (when this call queued, it was held `+
				`and %d were waiting)`, waiting)
			if !said[text] {
				t.Errorf("no call says %s: %v", text, said)
			}
		}
		if err := free(); err != nil || l.names() != 0 {
			t.Errorf("%v, %d names are left", err, l.names())
		}
	})
}

// TestKeysOfALocal checks each length at its bound, and each kind of character.
func TestKeysOfALocal(t *testing.T) {
	for key, good := range map[string]bool{"": false, "a": true, strings.Repeat("a", 512): true,
		strings.Repeat("a", 513): false, "\xff": false, "a\nb": false, "a\u0085": false, "\x7f": false, "ä b/%": true} {
		var l Local
		err := l.Do(t.Context(), key, nothing)
		want := fmt.Sprintf("mortise: bad key: %.64q: want 1 to 512 bytes of UTF-8 without control characters", key)
		if good && err != nil || !good && (err == nil || err.Error() != want || !errors.Is(err, ErrBadKey)) {
			t.Errorf("%.20q: %v", key, err)
		}
		if l.names() != 0 || l.token > 1 || !good && l.token != 0 {
			t.Errorf("%.20q: %d names are left, the last token is %d", key, l.names(), l.token)
		}
	}
}

// TestTheTokensOfALocal checks that each lock of any key has the next token, also if it was passed
// on, and that an error of the function is returned as it is.
func TestTheTokensOfALocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Local
		own := errors.New("own")
		for i, key := range []string{"a", "b", "a"} {
			if err := l.Do(t.Context(), key, func(ctx context.Context, token Token) error {
				if found, ok := TokenFrom(ctx); !ok || found != token || token != Token(1+i) {
					t.Errorf("lock %d has the token %d, and %d in its context", i, token, found)
				}
				return own
			}); err != own {
				t.Error(err)
			}
		}
		free := holdUntil(t, &l, "a")
		passed := make(chan Token, 2)
		for range 2 {
			go l.Do(t.Context(), "a", func(ctx context.Context, token Token) error {
				if found, ok := TokenFrom(ctx); !ok || found != token {
					t.Errorf("the token is %d, and %d in the context", token, found)
				}
				passed <- token
				return nil
			})
			synctest.Wait()
		}
		_ = free()
		if first, second := <-passed, <-passed; first != 5 || second != 6 {
			t.Errorf("passed on with the tokens %d and %d", first, second)
		}
	})
}
