package httplock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

func byPath(r *http.Request) (mortise.Request, bool) {
	return mortise.Request{Key: strings.TrimPrefix(r.URL.Path, "/"), Try: r.Header.Get("Try") != "", MaxWaiting: 2},
		r.Method != http.MethodGet
}

// service is a middleware on each node of a cluster, and a handler that counts.
type service struct {
	cluster    *mortisetest.Cluster
	middleware []Middleware
	now, most  atomic.Int64
	mu         sync.Mutex
	failed     []error
	tokens     []mortise.Token
	handle     http.HandlerFunc // nil means that it takes a second and writes ok
}

func newService(t *testing.T, nodes int) *service {
	s := &service{cluster: mortisetest.New(t, nodes)}
	for i := range nodes {
		s.middleware = append(s.middleware, Middleware{Node: s.cluster.Node(i), Request: byPath,
			Failed: func(_ *http.Request, err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = append(s.failed, err)
			}})
	}
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	if token, ok := mortise.TokenFrom(r.Context()); ok {
		s.mu.Lock()
		s.tokens = append(s.tokens, token)
		s.mu.Unlock()
	}
	if s.handle != nil {
		s.handle(w, r)
		return
	}
	time.Sleep(time.Second)
	fmt.Fprint(w, "ok")
}

func (s *service) send(ctx context.Context, node int, method, path string, header ...string) *http.Response {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	for _, h := range header {
		r.Header.Set(h, "1")
	}
	w := httptest.NewRecorder()
	s.middleware[node].Wrap(s).ServeHTTP(w, r)
	return w.Result()
}

func inBubble(t *testing.T, nodes int, test func(t *testing.T, s *service)) {
	synctest.Test(t, func(t *testing.T) { test(t, newService(t, nodes)) })
}

func expect(t *testing.T, what string, got *http.Response, status int) {
	t.Helper()
	text, _ := io.ReadAll(got.Body)
	retry := status == http.StatusLocked || status == http.StatusServiceUnavailable
	if got.StatusCode != status || (got.Header.Get("Retry-After") != "") != retry {
		t.Errorf("%s: %s, %v, %q, want %d", what, got.Status, got.Header, text, status)
	}
}

func TestOneRequestAtATime(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { expect(t, "put", s.send(t.Context(), i, http.MethodPut, "/a"), http.StatusOK) })
		}
		all.Wait()
		if took := time.Since(begin); took < 3*time.Second || s.most.Load() != 1 {
			t.Errorf("%d at a time, after %v", s.most.Load(), took)
		}
		for i := range s.tokens[1:] {
			if s.tokens[i+1] <= s.tokens[i] {
				t.Errorf("tokens %v", s.tokens)
			}
		}
		for i := range 3 { // other keys, and requests without a lock
			all.Go(func() { expect(t, "put", s.send(t.Context(), i, http.MethodPut, fmt.Sprint("/", i)), http.StatusOK) })
			all.Go(func() { expect(t, "get", s.send(t.Context(), i, http.MethodGet, "/0"), http.StatusOK) })
		}
		all.Wait()
		if s.most.Load() != 6 || len(s.tokens) != 6 || len(s.failed) != 0 {
			t.Errorf("%d at a time, %d tokens, failed %v", s.most.Load(), len(s.tokens), s.failed)
		}
	})
}

func TestAnswersWithoutTheLock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *service) {
		ctx, over := context.WithCancel(t.Context())
		s.handle = func(http.ResponseWriter, *http.Request) { <-ctx.Done() }
		var all sync.WaitGroup
		for range 3 { // one is handled, and two wait
			all.Go(func() { expect(t, "put", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusOK) })
			synctest.Wait()
		}
		expect(t, "queue full", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusLocked)
		expect(t, "try", s.send(t.Context(), 0, http.MethodPut, "/a", "Try"), http.StatusLocked)
		s.middleware[0].RetryAfter = 1500 * time.Millisecond
		if got := s.send(t.Context(), 0, http.MethodPut, "/a", "Try").Header.Get("Retry-After"); got != "2" {
			t.Errorf("Retry-After is %s", got)
		}
		over()
		all.Wait()

		lock, err := s.cluster.Node(0).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.middleware[0].MaxWait = 5 * time.Second
		begin := time.Now()
		expect(t, "MaxWait", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusLocked)
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("waited %v", took)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect(t, "the client is gone", s.send(soon, 0, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		expect(t, "no key", s.send(t.Context(), 0, http.MethodPut, "/"), http.StatusBadRequest)
		s.middleware[0].Request = func(*http.Request) (mortise.Request, bool) {
			return mortise.Request{Key: "a", Mode: mortise.Permits(3, 0)}, true
		}
		expect(t, "a mistake", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusInternalServerError)
		if s.now.Load() != 0 || len(s.failed) != 7 {
			t.Errorf("%d are handled, failed %v", s.now.Load(), s.failed)
		}
	})
}

// The handler of a node that loses its lock ends. If it has written nothing, the client is asked to
// try again.
func TestALostLockEndsTheHandler(t *testing.T) {
	for writes, status := range map[bool]int{false: http.StatusServiceUnavailable, true: http.StatusAccepted} {
		inBubble(t, 3, func(t *testing.T, s *service) {
			began := make(chan bool, 1)
			var cause error
			s.handle = func(w http.ResponseWriter, r *http.Request) {
				if writes {
					w.WriteHeader(http.StatusAccepted)
				}
				began <- true
				<-r.Context().Done()
				cause = context.Cause(r.Context())
			}
			var answer *http.Response
			done := make(chan bool)
			go func() {
				defer close(done)
				answer = s.send(t.Context(), 0, http.MethodPut, "/a")
			}()
			<-began
			s.cluster.Lose(0)
			<-done
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode != status || writes != (len(text) == 0) {
				t.Errorf("lost, written before %v: %s, %q", writes, answer.Status, text)
			}
			if !errors.Is(cause, mortise.ErrLost) || len(s.failed) != 1 || !errors.Is(s.failed[0], mortise.ErrLost) {
				t.Errorf("cause %v, failed %v", cause, s.failed)
			}
			s.cluster.Ready(0)
		})
	}
}

// When the node leaves, the context of the handler ends, too.
func TestANodeThatLeaves(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		began := make(chan bool, 1)
		s.handle = func(_ http.ResponseWriter, r *http.Request) {
			began <- true
			<-r.Context().Done()
		}
		done := make(chan bool)
		go func() {
			defer close(done)
			expect(t, "leaving", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		}()
		<-began
		if err := s.cluster.Node(0).Leave(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
		expect(t, "left", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		if len(s.failed) != 1 || !errors.Is(s.failed[0], mortise.ErrClosed) {
			t.Errorf("failed %v", s.failed)
		}
	})
}

// A node that cannot reach the group answers within about a second once its lease is lost.
func TestAnUnreachableGroup(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, s *service) {
		s.cluster.Isolate(0)
		time.Sleep(10 * time.Second)
		begin := time.Now()
		expect(t, "isolated", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusServiceUnavailable)
		if took := time.Since(begin); took > 1100*time.Millisecond {
			t.Errorf("answered after %v, want a second", took)
		}
		expect(t, "isolated, try", s.send(t.Context(), 0, http.MethodPut, "/a", "Try"), http.StatusServiceUnavailable)
		s.cluster.Heal()
		s.cluster.Ready(0)
		expect(t, "healed", s.send(t.Context(), 0, http.MethodPut, "/a"), http.StatusOK)
	})
}

func TestAPanicUnlocks(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, s *service) {
		s.handle = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("recovered %v", got)
				}
			}()
			s.send(t.Context(), 0, http.MethodPut, "/a")
		}()
		s.handle = nil
		expect(t, "after a panic", s.send(t.Context(), 0, http.MethodPut, "/a", "Try"), http.StatusOK)
	})
}

// Handlers find the optional methods of the writer.
func TestTheWriterIsComplete(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	locks := Middleware{Node: node, Request: byPath}
	server := httptest.NewServer(locks.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flush":
			_, _ = io.Copy(w, strings.NewReader("a"))
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
		case "/hijack":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			conn.Close()
		}
	})))
	defer server.Close()
	for path, status := range map[string]int{"/flush": http.StatusOK, "/hijack": http.StatusNoContent} {
		response, err := http.Post(server.URL+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}
