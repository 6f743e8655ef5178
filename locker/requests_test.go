package locker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
)

func requests(t testing.TB, by locker.Acquirer, r mortise.Request) *locker.Requests {
	t.Helper()
	return make1[*locker.Requests](t)(locker.NewRequests(by, func(string) mortise.Request { return r }))
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

func TestRequestsCarryTheirTerms(t *testing.T) {
	node := soloNode(t).(*mortise.Node)
	for what, test := range map[string]struct {
		request mortise.Request
		meet    bool
	}{
		"exclusive":       {mortise.Request{}, false},
		"shared":          {mortise.Request{Shared: true}, true},
		"two permits":     {mortise.Request{Permits: 1, Of: 2}, true},
		"both of two":     {mortise.Request{Permits: 2, Of: 2}, false},
		"its own keys":    {mortise.Request{Keys: []string{"a", "b"}}, false},
		"a path":          {mortise.Request{Path: "a/b"}, false},
		"a shared path":   {mortise.Request{Path: "a/b", Shared: true}, true},
		"shared two keys": {mortise.Request{Keys: []string{"a", "b"}, Shared: true}, true},
	} {
		direct := requests(t, node, test.request)
		retried := make1[*locker.Retry](t)(locker.NewRetry(locker.RetryConfig{Locker: direct}))
		for _, l := range []locker.Locker{direct, retried} {
			within := 50 * time.Millisecond
			if test.meet {
				within = time.Minute
			}
			if got := meet(t, l, within); got != test.meet {
				t.Errorf("%s: two calls run at the same time: %v", what, got)
			}
		}
	}
	held := func(key string) (now bool) {
		info, err := node.Peek(t.Context(), key)
		return err != nil || info.Held > 0
	}
	l := requests(t, node, mortise.Request{Keys: []string{"a", "b"}})
	if err := l.Do(t.Context(), "k", func(context.Context, mortise.Token) error {
		if !held("a") || !held("b") || held("k") {
			t.Error("it does not hold its keys, or it holds the key of the call")
		}
		return nil
	}); err != nil || held("a") {
		t.Errorf("it still holds a key: %v", err)
	}
}

// A request with Try fails at once, and Retry makes it again.
func TestRequestsWithTry(t *testing.T) {
	node := soloNode(t).(*mortise.Node)
	lock, err := node.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	try := requests(t, node, mortise.Request{Try: true})
	ran := func(context.Context, mortise.Token) error { return errors.New("it has run") }
	if err := try.Do(t.Context(), "k", ran); !errors.Is(err, mortise.ErrHeld) {
		t.Errorf("a try of a held lock: %v", err)
	}
	tries := 0
	retry := make1[*locker.Retry](t)(locker.NewRetry(locker.RetryConfig{Locker: locker.Func(
		func(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
			defer lock.Unlock(ctx) // after the first try
			tries++
			return try.Do(ctx, key, fn)
		})}))
	if err := retry.Do(t.Context(), "k", ran); err == nil || err.Error() != "it has run" || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestRequestsReportALossOnce(t *testing.T) {
	node := soloNode(t).(*mortise.Node)
	l := requests(t, node, mortise.Request{MaxHold: time.Millisecond})
	err := l.Do(t.Context(), "k", func(ctx context.Context, _ mortise.Token) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, mortise.ErrLost) || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("%v", err)
	}
	if err := l.Do(t.Context(), "k", func(ctx context.Context, _ mortise.Token) error {
		<-ctx.Done()
		return nil
	}); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("fn did not report the loss: %v", err)
	}
}

func TestRequestsRefuse(t *testing.T) {
	if _, err := locker.NewRequests(nil, nil); err == nil || strings.Count(err.Error(), "is missing") != 2 {
		t.Errorf("%v", err)
	}
	if err := new(locker.Requests).Do(t.Context(), "k", nil); err == nil || !strings.Contains(err.Error(), "NewRequests") {
		t.Errorf("%v", err)
	}
	l := requests(t, soloNode(t).(*mortise.Node), mortise.Request{Key: "good"})
	if err := l.Do(t.Context(), "bad\n", nil); !errors.Is(err, mortise.ErrBadKey) {
		t.Errorf("%v", err)
	}
}
