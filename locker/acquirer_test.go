package locker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/mortise-lock/mortise/locker"
)

// handle is a lock of another project.
type handle struct {
	key     string
	unlocks error
	ended   *bool
}

func (h *handle) Key() string                               { return h.key }
func (h *handle) Token() locker.Token                       { return 7 }
func (h *handle) Context(p context.Context) context.Context { return locker.ContextWithToken(p, 7) }
func (h *handle) Done() <-chan struct{}                     { return nil }
func (h *handle) Err() error                                { return nil }
func (h *handle) Unlock(context.Context) error              { *h.ended = true; return h.unlocks }

// terms is a request of another project.
type terms struct {
	key     string
	refused error
	unlocks error
	ended   *bool
}

type other struct{}

func (other) Acquire(_ context.Context, r terms) (*handle, error) {
	if r.refused != nil {
		return nil, r.refused
	}
	return &handle{r.key, r.unlocks, r.ended}, nil
}

// The types of the request and of the lock follow from the arguments. A refused request runs
// nothing, a panic unlocks, and a loss that both fn and Unlock return is reported once.
func TestRequests(t *testing.T) {
	own := errors.New("own")
	lost := fmt.Errorf("%w: cut off", locker.ErrLost)
	for name, c := range map[string]struct {
		terms
		result error
		want   string
		ran    bool
	}{
		"good":           {terms{}, nil, "", true},
		"own error":      {terms{}, own, "own", true},
		"refused":        {terms{refused: locker.ErrHeld}, nil, "mortise: the lock is held", false},
		"lost":           {terms{unlocks: lost}, nil, lost.Error(), true},
		"lost and told":  {terms{unlocks: lost}, fmt.Errorf("work: %w", lost), "work: " + lost.Error(), true},
		"lost and other": {terms{unlocks: lost}, own, "own\n" + lost.Error(), true},
	} {
		ran, ended := false, false
		l := locker.Requests(other{}, func(key string) terms {
			c.terms.key, c.terms.ended = key, &ended
			return c.terms
		})
		err := l.Do(t.Context(), "k", func(ctx context.Context, token locker.Token) error {
			ran = true
			if found, ok := locker.TokenFrom(ctx); !ok || found != token || token != 7 {
				t.Errorf("%s: the token is %d, and %d in the context", name, token, found)
			}
			return c.result
		})
		if text := fmt.Sprint(err); (err != nil || c.want != "") && text != c.want || ran != c.ran || ended != c.ran {
			t.Errorf("%s: %v, fn ran %v, unlocked %v", name, err, ran, ended)
		}
		if (c.unlocks != nil) != errors.Is(err, locker.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended := false
	l := locker.Requests(other{}, func(key string) terms { return terms{key: key, ended: &ended} })
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(t.Context(), "k", func(context.Context, locker.Token) error { panic("fn") })
	}()
	if !ended {
		t.Error("a panic keeps the lock")
	}
}

func TestTokens(t *testing.T) {
	if _, ok := locker.TokenFrom(t.Context()); ok {
		t.Error("a context without a lock has a token")
	}
	ctx := locker.ContextWithToken(locker.ContextWithToken(t.Context(), 1), 2)
	if token, ok := locker.TokenFrom(ctx); !ok || token != 2 {
		t.Errorf("the innermost token is %d, %v", token, ok)
	}
	large := locker.Token(1<<64 - 1)
	text, err := json.Marshal(large)
	var back locker.Token
	if err != nil || string(text) != `"18446744073709551615"` || json.Unmarshal(text, &back) != nil || back != large {
		t.Errorf("%s, %v, back as %d", text, err, back)
	}
	for _, wrong := range []string{`7`, `"-1"`, `"x"`, `"18446744073709551616"`} {
		if json.Unmarshal([]byte(wrong), &back) == nil {
			t.Errorf("%s was read as %d", wrong, back)
		}
	}
	back = 5
	if json.Unmarshal([]byte(`7`), &back) == nil || back != 5 {
		t.Errorf("what is no text has changed the token to %d", back)
	}
}
