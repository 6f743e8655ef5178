package mortiseserver_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/grpclock"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httpleader"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/httplock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/mortisetest"
)

// behind calls do while the lock of "k" is held for a minute.
func behind(t *testing.T, do func(t *testing.T, node *mortise.Node)) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 1)
		lock, err := c.Node(0).Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			_ = lock.Unlock(context.Background())
		}()
		do(t, c.Node(0))
		time.Sleep(2 * time.Minute)
	})
}

func TestEveryInput(t *testing.T) {
	serve := func(m httplock.Middleware) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })).
			ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		return answer
	}
	limits.Trials{Durations: map[string]func(*testing.T, time.Duration){
		"httplock.Middleware.MaxWait": func(t *testing.T, d time.Duration) {
			behind(t, func(t *testing.T, node *mortise.Node) {
				m := httplock.Middleware{Node: node, MaxWait: d,
					Request: func(*http.Request) (mortise.Request, bool) { return mortise.Request{Key: "k"}, true }}
				if got := serve(m).Code; got != http.StatusNoContent {
					t.Errorf("with %v: %d", d, got)
				}
			})
		},
		"httplock.Middleware.RetryAfter": func(t *testing.T, d time.Duration) {
			behind(t, func(t *testing.T, node *mortise.Node) {
				m := httplock.Middleware{Node: node, RetryAfter: d,
					Request: func(*http.Request) (mortise.Request, bool) {
						return mortise.Request{Key: "k", Try: true}, true
					}}
				text := serve(m).Header().Get("Retry-After")
				if got, err := strconv.ParseInt(text, 10, 64); err != nil || got < int64(d/time.Second) {
					t.Errorf("with %v: Retry-After is %q", d, text)
				}
			})
		},
		"httpleader.ToLeader.Within": func(t *testing.T, d time.Duration) {
			l := toLeader(func(ctx context.Context) error {
				if at, is := ctx.Deadline(); is && time.Until(at) < d-time.Minute {
					t.Errorf("with %v the leader is sought until %v", d, at)
				}
				return nil
			})
			l.Within = d
			if got := answer(l).Code; got != http.StatusServiceUnavailable {
				t.Errorf("with %v: %d", d, got)
			}
		},
		"httpleader.ToLeader.RetryAfter": func(t *testing.T, d time.Duration) {
			l := toLeader(func(context.Context) error { return mortise.ErrOverloaded })
			l.RetryAfter = d
			text := answer(l).Header().Get("Retry-After")
			if got, err := strconv.ParseInt(text, 10, 64); err != nil || got < int64(d/time.Second) {
				t.Errorf("with %v: Retry-After is %q", d, text)
			}
		},
		"grpclock.Interceptor.MaxWait": func(t *testing.T, d time.Duration) {
			behind(t, func(t *testing.T, node *mortise.Node) {
				i := grpclock.Interceptor{Node: node, MaxWait: d,
					Request: func(context.Context, string, any) (mortise.Request, bool) {
						return mortise.Request{Key: "k"}, true
					}}
				_, err := i.Unary()(t.Context(), nil, &grpc.UnaryServerInfo{},
					func(context.Context, any) (any, error) { return nil, nil })
				if err != nil {
					t.Errorf("with %v: %v", d, err)
				}
			})
		},
	}, Counts: map[string]limits.Count{
		"httpleader.ToLeader.MaxForwards": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) error {
			l := toLeader(func(context.Context) error { return nil })
			l.MaxForwards = int(n)
			if got := answer(l).Code; got != http.StatusServiceUnavailable {
				t.Errorf("with %d: %d", n, got)
			}
			return nil
		}},
	}}.Run(t, ".")
}

// peeks is a node of a group in which no instance leads.
type peeks func(ctx context.Context) error

func (p peeks) Peek(ctx context.Context, key string) (mortise.KeyInfo, error) {
	return mortise.KeyInfo{Key: key}, p(ctx)
}

func (peeks) Status() mortise.Status { return mortise.Status{} }

func toLeader(peek peeks) httpleader.ToLeader {
	return httpleader.ToLeader{Node: peek, Key: func(*http.Request) string { return "k" }}
}

func answer(l httpleader.ToLeader) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.Wrap(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w
}
