//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestLeasesGiveALostAnswerAgain checks that a client whose answer was lost gets the same lock by
// the same call, or gives it up, for each call that takes a lock.
func TestLeasesGiveALostAnswerAgain(t *testing.T) {
	i := openInn(t, nil, standard)
	lease := i.lease("")
	call := func(want int, path string, body object) (lock lockText, p problem) {
		t.Helper()
		body["lease"] = lease
		code, p := i.post("", path, body, &lock)
		if code != want {
			t.Fatalf("%s %v: %d %+v, want %d", path, body, code, p, want)
		}
		return lock, p
	}
	const ok = http.StatusOK
	up, _ := call(ok, "/v1/lock", object{"key": "u", "mode": "upgradable"})
	for name, c := range map[string]struct {
		path  string
		terms object
		other object // other terms
	}{
		"lock":    {"/v1/lock", object{"key": "k", "wait_seconds": 0, "request": "r1"}, object{"key": "l", "request": "r1"}},
		"upgrade": {"/v1/upgrade", object{"token": up.Token, "request": "r2"}, object{"token": "1", "request": "r2"}},
	} {
		first, _ := call(ok, c.path, c.terms)
		c.terms["wait_seconds"] = 5
		if again, _ := call(ok, c.path, c.terms); again != first {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
		want := http.StatusBadRequest
		if name == "upgrade" {
			want = http.StatusNotFound // there is no lock with that token
		}
		if _, p := call(want, c.path, c.other); want == http.StatusBadRequest &&
			!strings.Contains(p.Error, `the request "r1" was made before with other terms`) {
			t.Errorf("%s with other terms: %+v", name, p)
		}
		call(ok, "/v1/unlock", object{"token": first.Token})
		next, _ := call(ok, c.path, c.terms) // a released lock is not given again
		if next.Token <= first.Token {
			t.Errorf("%s after its release: %+v, before it was %+v", name, next, first)
		}
		call(ok, "/v1/unlock", object{"request": c.terms["request"]})
		if _, p := call(http.StatusNotFound, "/v1/unlock", object{"token": next.Token}); p.Kind != "no lock" {
			t.Errorf("%s: given up, then %+v", name, p)
		}
		if _, p := call(http.StatusNotFound, c.path, c.terms); p.Kind != "no lock" ||
			!strings.Contains(p.Error, "given up this request") {
			t.Errorf("%s: a call that came after the request was given up: %+v", name, p)
		}
	}
	for k, wants := range map[string]int{"k": 0, "u": 1} {
		if info, err := i.node.Peek(t.Context(), k); err != nil || info.Held != wants {
			t.Errorf("%s has %d holds, want %d, %v", k, info.Held, wants, err)
		}
	}
}

// TestLeasesGiveUpAWaitingRequest checks that a request that waits is given up by its ID, and that
// the same call beside it gets the same lock.
func TestLeasesGiveUpAWaitingRequest(t *testing.T) {
	i := openInn(t, nil, standard)
	lease := i.lease("")
	held, err := i.node.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		code int
		lock lockText
		p    problem
	}
	ask := func(id string) <-chan answer {
		c := make(chan answer, 1)
		go func() {
			var a answer
			a.code, a.p = i.post("", "/v1/lock", object{"lease": lease, "key": "k", "request": id}, &a.lock)
			c <- a
		}()
		return c
	}
	queued := func(n int) {
		t.Helper()
		until := time.Now().Add(patience)
		for {
			k, err := i.node.Peek(t.Context(), "k")
			if err == nil && k.Waiting == n {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("%d wait, want %d, %v", k.Waiting, n, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	a := ask("a")
	queued(1)
	if code, p := i.post("", "/v1/unlock", object{"lease": lease, "request": "a"}, nil); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	if got := <-a; got.code != http.StatusNotFound || got.p.Kind != "no lock" {
		t.Errorf("the call that was given up: %+v", got)
	}
	queued(0)
	b, again := ask("b"), ask("b")
	queued(1)
	if err := held.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, two := <-b, <-again
	if one.code != http.StatusOK || one.lock != two.lock {
		t.Errorf("one call has %+v, the same one %+v", one, two)
	}
}

// TestLeasesForgetRequests checks that a lease does not remember the requests of locks that have
// ended.
func TestLeasesForgetRequests(t *testing.T) {
	i := openInn(t, nil, standard)
	id := i.lease("")
	for n := range 2 * maxGivenUp {
		var lock lockText
		body := object{"lease": id, "key": "k", "request": fmt.Sprint(n)}
		if code, p := i.post("", "/v1/lock", body, &lock); code != http.StatusOK {
			t.Fatalf("%d %+v", code, p)
		}
		end := object{"lease": id, "token": lock.Token}
		if n%2 == 0 {
			end = object{"lease": id, "request": fmt.Sprint(n)}
		}
		if code, p := i.post("", "/v1/unlock", end, nil); code != http.StatusOK {
			t.Fatalf("%d %+v", code, p)
		}
	}
	l, err := i.leases.find(nil, id)
	if err != nil {
		t.Fatal(err)
	}
	if r := l.requests; len(r.byID) != 0 || len(r.ids) != 0 || len(r.givenUp) > maxGivenUp {
		t.Errorf("%d requests, %d tokens and %d given up are remembered", len(r.byID), len(r.ids), len(r.givenUp))
	}
}

// TestRequestsThatEndAreBusyOnlyBehindAHolder checks what a client learns when its wait is over:
// busy if a holder is known, and else not ready, for every way in which a wait ends.
func TestRequestsThatEndAreBusyOnlyBehindAHolder(t *testing.T) {
	held := &mortise.HeldError{Key: "k", Hold: mortise.Hold{Holder: "b", Token: 7}}
	for name, c := range map[string]struct {
		err  error
		code int
		kind string
	}{
		"a deadline":        {context.DeadlineExceeded, 503, "not ready"},
		"an unknown holder": {over{context.DeadlineExceeded, false}, 503, "not ready"},
		"a known holder":    {over{context.DeadlineExceeded, true}, 409, "busy"},
		"a holder, then no lead": {fmt.Errorf("%w: %w", mortise.ErrNotReady, over{context.DeadlineExceeded, true}), 503,
			"not ready"},
		"held":              {held, 409, "busy"},
		"a guest behind it": {fmt.Errorf("%w: %w", context.DeadlineExceeded, held), 409, "busy"},
		"a full queue":      {mortise.ErrQueueFull, 409, "busy"},
		"no answer":         {mortise.ErrNotReady, 503, "not ready"},
		"a doubt":           {fmt.Errorf("%w: %w", mortise.ErrInJeopardy, context.DeadlineExceeded), 409, "in doubt"},
	} {
		w := httptest.NewRecorder()
		refuse(w, c.err)
		if w.Code != c.code || !strings.Contains(w.Body.String(), `"kind":"`+c.kind+`"`) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, c.code, c.kind)
		}
	}
}

type over struct {
	error
	held bool
}

func (o over) Unwrap() error     { return o.error }
func (o over) HolderKnown() bool { return o.held }

// TestRequestsWithoutALeaderAreNotReady checks a whole agent: while its group has no leader, no
// request is answered as busy.
func TestRequestsWithoutALeaderAreNotReady(t *testing.T) {
	config := mortise.Config{Name: "agent", Join: []string{"127.0.0.1:1"}, Replicas: 3, Bind: "127.0.0.1:0",
		Secret: testSecret, Logger: slog.New(slog.DiscardHandler)}
	node, err := mortise.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	i := serveInn(t, node, config, nil, standard)
	lease := i.lease("")
	for _, wait := range []float64{0, 0.05} {
		code, p := i.post("", "/v1/lock", object{"lease": lease, "key": "k", "wait_seconds": wait}, nil)
		if code != http.StatusServiceUnavailable || p.Kind != "not ready" ||
			!strings.Contains(p.Error, "founding waits: 1 of 3 instances") {
			t.Errorf("wait_seconds %v: %d %+v", wait, code, p)
		}
	}
	for _, path := range []string{"/v1/key?key=k", "/v1/keys", "/v1/data?key=k", "/v1/leader?name=e", "/v1/health",
		"/readyz"} {
		if code, p := i.get("", path, nil); code != http.StatusServiceUnavailable || p.Kind != "not ready" {
			t.Errorf("%s: %d %+v", path, code, p)
		}
	}
}

// TestRequestsForNoRoute checks that the agent answers a path or a method that it does not have
// like every other error, and says where the right ones are.
func TestRequestsForNoRoute(t *testing.T) {
	i := openInn(t, nil, standard)
	for _, c := range []struct {
		path, method string
		code         int
		kind, text   string
	}{
		{"/v1/locks", "POST", 404, "no path", "/v1/openapi.json lists all of them"},
		{"/", "GET", 404, "no path", "/v1/openapi.json"},
		{"/v1/lock", "GET", 405, "wrong", "no such method GET: use POST"},
		{"/v1/keys", "DELETE", 405, "wrong", "use GET, HEAD"},
	} {
		q, err := http.NewRequest(c.method, i.server.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		r, err := i.server.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		var p problem
		err = errors.Join(json.NewDecoder(r.Body).Decode(&p), r.Body.Close())
		if r.StatusCode != c.code || p.Kind != c.kind || !strings.Contains(p.Error, c.text) || err != nil {
			t.Errorf("%s %s: %d %+v, %v", c.method, c.path, r.StatusCode, p, err)
		}
		if allow := r.Header.Get("Allow"); (allow != "") != (c.code == 405) {
			t.Errorf("%s %s: Allow is %q", c.method, c.path, allow)
		}
	}
}
