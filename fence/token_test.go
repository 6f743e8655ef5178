package fence_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func TestParseToken(t *testing.T) {
	for text, want := range map[string]mortise.Token{"1": 1, "42": 42, "9223372036854775807": math.MaxInt64} {
		if got, err := fence.ParseToken(text); err != nil || got != want || fence.FormatToken(got) != text {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "+1", " 1", "1 ", "01", "1_0", "0x10", "1e3", "1,2", "1, 2", "1.0", "9223372036854775808",
		"18446744073709551615",
		"18446744073709551617", "٣", "１", "1\x00", strings.Repeat("9", 1<<20),
	} {
		got, err := fence.ParseToken(text)
		if !errors.Is(err, fence.ErrBadToken) || got != 0 {
			t.Errorf("%.40q: %d, %v, want ErrBadToken", text, got, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("the error about %d bytes has %d itself", len(text), len(err.Error()))
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("42")
	f.Add("-0")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := fence.ParseToken(text)
		if err == nil && (fence.FormatToken(token) != text || token == 0 || token > math.MaxInt64) {
			t.Errorf("%q was read as %d", text, token)
		}
	})
}

func TestInt64(t *testing.T) {
	if n, err := fence.Int64(math.MaxInt64); n != math.MaxInt64 || err != nil {
		t.Error(n, err)
	}
	for _, token := range []mortise.Token{0, math.MaxInt64 + 1, math.MaxUint64} {
		if n, err := fence.Int64(token); n != 0 || !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("%d: %d, %v", uint64(token), n, err)
		}
	}
}

func TestTheInnerTokenCounts(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	lock, err := node.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock(t.Context())

	if _, ok := mortise.TokenFrom(t.Context()); ok {
		t.Error("a context without any has a token")
	}
	came := mortise.ContextWithToken(t.Context(), 7)
	for name, c := range map[string]struct {
		ctx  context.Context
		want mortise.Token
	}{
		"came":                  {came, 7},
		"lock":                  {lock.Context(t.Context()), lock.Token()},
		"lock inside came":      {lock.Context(came), lock.Token()},
		"came inside lock":      {mortise.ContextWithToken(lock.Context(t.Context()), 7), 7},
		"came inside came":      {mortise.ContextWithToken(came, 8), 8},
		"came in lock in came":  {mortise.ContextWithToken(lock.Context(came), 9), 9},
		"the value of a parent": {context.WithoutCancel(came), 7},
	} {
		if token, ok := mortise.TokenFrom(c.ctx); !ok || token != c.want {
			t.Errorf("%s: %d, %v, want %d", name, token, ok, c.want)
		}
	}
}

type advanceOnly struct{ fence.Store }

func TestRun(t *testing.T) {
	for name, store := range map[string]fence.Store{"section": &fence.Mark{}, "store": advanceOnly{&fence.Mark{}}} {
		broken := errors.New("of fn")
		err := fence.Run(t.Context(), store, "a", 5, func(ctx context.Context) error {
			if token, ok := mortise.TokenFrom(ctx); !ok || token != 5 {
				t.Errorf("%s: fn finds the token %d, %v", name, token, ok)
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		err = fence.Run(t.Context(), store, "a", 4,
			func(context.Context) error { t.Errorf("%s: fn runs with a stale token", name); return nil })
		if !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
