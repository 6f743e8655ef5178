//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
)

// The same call with the same ID gets the same answer, although the data has changed since: of a
// change, of a refused one, and of one under a lock.
func TestRequestsToPutGiveALostAnswerAgain(t *testing.T) {
	i := openInn(t, nil, standard)
	put := func(want int, body object) (shown dataShown, p problem) {
		t.Helper()
		code, p := i.post("", "/v1/put", body, &shown)
		if code != want {
			t.Fatalf("%v: %d %+v, want %d", body, code, p, want)
		}
		return shown, p
	}
	lease, lock := i.lease(""), lockText{}
	if code, p := i.post("", "/v1/lock", object{"lease": lease, "key": "k"}, &lock); code != http.StatusOK {
		t.Fatalf("%d %+v", code, p)
	}
	for name, terms := range map[string]object{
		"alone":        {"key": "a", "data": []byte("1"), "request": "r1"},
		"under a lock": {"key": "b", "data": []byte("1"), "request": "r2", "lease": lease, "token": lock.Token},
	} {
		first, _ := put(http.StatusOK, terms)
		if again, _ := put(http.StatusOK, terms); again.Revision != first.Revision || first.Revision == 0 {
			t.Errorf("%s: revision %d, then %d", name, first.Revision, again.Revision)
		}
		refused := object{"key": terms["key"], "data": []byte("2"), "request": name}
		put(http.StatusConflict, refused)
		put(http.StatusOK, object{"key": terms["key"], "revision": fmt.Sprint(first.Revision)}) // there is no data now
		put(http.StatusConflict, refused)
		if again, _ := put(http.StatusOK, terms); again.Revision != first.Revision {
			t.Errorf("%s: revision %d, and %d after another change", name, first.Revision, again.Revision)
		}
		if _, revision, err := i.node.Get(t.Context(), terms["key"].(string)); revision != 0 || err != nil {
			t.Errorf("%s: the repeated calls have changed the data: revision %d, %v", name, revision, err)
		}
		terms["data"] = []byte("3")
		if _, p := put(http.StatusBadRequest, terms); !strings.Contains(p.Error, "was made before with other terms") {
			t.Errorf("%s with other terms: %+v", name, p)
		}
	}
	put(http.StatusBadRequest, object{"key": "a", "request": strings.Repeat("x", maxRequestID+1)})
}

// A call with an ID goes on when its client has gone, and the same call beside it waits for its
// result. A call that the group has not decided can be made again.
func TestRequestsToPutAreMadeOnce(t *testing.T) {
	var p madePuts
	began, end := make(chan struct{}), make(chan struct{})
	gone, leave := context.WithCancel(t.Context())
	sum := sha256.Sum256(nil)
	var all sync.WaitGroup
	all.Go(func() {
		shown, err := p.once(gone, "r", sum, func() (uint64, error) {
			close(began)
			<-end
			return 7, nil
		})
		if shown != 7 || err != nil {
			t.Errorf("the first call: %v, %v", shown, err)
		}
	})
	<-began
	leave()
	again := func() (uint64, error) { t.Error("it is made twice"); return 0, nil }
	if _, err := p.once(gone, "r", sum, again); !errors.Is(err, context.Canceled) {
		t.Errorf("a second call whose client has gone: %v", err)
	}
	all.Go(func() {
		if shown, err := p.once(t.Context(), "r", sum, again); shown != 7 || err != nil {
			t.Errorf("a second call: %v, %v", shown, err)
		}
	})
	close(end)
	all.Wait()
	calls := 0
	for _, failed := range []error{mortise.ErrNotReady, context.DeadlineExceeded, mortise.ErrConflict, nil, nil} {
		_, err := p.once(t.Context(), "s", sum, func() (uint64, error) { calls++; return 0, failed })
		if calls > 3 || calls == 3 && !errors.Is(err, mortise.ErrConflict) {
			t.Errorf("%d calls, %v", calls, err)
		}
	}
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}

func TestRequestsToPutAreForgotten(t *testing.T) {
	var p madePuts
	sum := sha256.Sum256(nil)
	for n := range 3 * maxPuts {
		failed := error(nil)
		if n%3 == 0 {
			failed = mortise.ErrNotReady
		}
		_, _ = p.once(t.Context(), fmt.Sprint(n), sum, func() (uint64, error) { return 0, failed })
	}
	if len(p.byID) != maxPuts || len(p.order) != maxPuts || p.byID[fmt.Sprint(3*maxPuts-1)] == nil {
		t.Errorf("%d and %d are remembered", len(p.byID), len(p.order))
	}
}
