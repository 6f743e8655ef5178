package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func serve(t *testing.T, b *bucket) webStore {
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return webStore{server.URL}
}

func TestPut(t *testing.T) {
	b := &bucket{}
	store := serve(t, b)
	for _, c := range []struct {
		token mortise.Token
		ok    bool
	}{{5, true}, {6, true}, {5, false}, {6, true}, {1, false}, {7, true}} {
		text := fmt.Sprint("by ", c.token)
		err := fence.Put(t.Context(), store, "report", c.token, []byte(text))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d: %v, admitted should be %v", c.token, err, c.ok)
		}
		if (string(b.objects["/report"].data) == text) != c.ok {
			t.Errorf("after token %d the object says %q", c.token, b.objects["/report"].data)
		}
	}
	if err := fence.Put(t.Context(), store, "report", 1<<63, nil); !errors.Is(err, fence.ErrBadToken) {
		t.Error(err)
	}
}

// An old writer is stopped between its read and its write, and a new writer writes meanwhile.
func TestPutIsNotOvertaken(t *testing.T) {
	for name, start := range map[string]string{"there is none": "", "there is one": "4"} {
		b := &bucket{}
		if start != "" {
			b.put("/report", start, nil)
		}
		var once sync.Once
		b.meddling = func(b *bucket) {
			once.Do(func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.put("/report", "6", []byte("new"))
			})
		}
		err := fence.Put(t.Context(), serve(t, b), "report", 5, []byte("old"))
		var stale *fence.StaleError
		if !errors.As(err, &stale) || stale.Highest != 6 || stale.Resource != "report" {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.objects["/report"]; string(got.data) != "new" {
			t.Errorf("%s: the object says %q", name, got.data)
		}
	}
}

func TestPutNeverGoesBack(t *testing.T) {
	last := mortise.Token(0)
	b := &bucket{onWrite: func(o object) {
		token, err := fence.ParseToken(o.token)
		if err != nil || token < last || string(o.data) != o.token {
			t.Errorf("after %d: token %q with the data %q, %v", last, o.token, o.data, err)
		}
		last = token
	}}
	store := serve(t, b)
	var all sync.WaitGroup
	for writer := range 6 {
		all.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(writer), 4))
			for range 20 {
				token := mortise.Token(1 + chance.IntN(1000))
				if err := fence.Put(t.Context(), store, "report", token,
					[]byte(fence.FormatToken(token))); err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

type oddStore struct {
	seen   fence.Object
	head   error
	put    error
	writes int
}

func (s *oddStore) Head(context.Context, string) (fence.Object, error) { return s.seen, s.head }
func (s *oddStore) PutIf(context.Context, string, string, mortise.Token, []byte) error {
	s.writes++
	return s.put
}

func TestPutAndOddStores(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		store  oddStore
		want   error
		writes int
	}{
		"cannot be read":    {oddStore{head: down}, down, 0},
		"cannot be written": {oddStore{head: fence.ErrMissing, put: down}, down, 1},
		"object of others":  {oddStore{seen: fence.Object{Version: "1"}}, nil, 1},
		"gives no version":  {oddStore{seen: fence.Object{Token: 1}}, nil, 0},
		"changes all day": {oddStore{seen: fence.Object{Version: "1"},
			put: fmt.Errorf("412: %w", fence.ErrChanged)}, fence.ErrChanged, 32},
		// If Head returns an error, Put ignores the Object that Head returns.
		"missing, with data": {oddStore{head: fence.ErrMissing, seen: fence.Object{Version: "9", Token: 9}}, nil, 1},
	} {
		err := fence.Put(t.Context(), &c.store, "a", 5, nil)
		if c.want != nil && !errors.Is(err, c.want) || c.store.writes != c.writes || c.want == nil && c.writes == 1 &&
			err != nil || c.writes == 0 && err == nil {
			t.Errorf("%s: %v after %d writes", name, err, c.store.writes)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(down)
	store := oddStore{seen: fence.Object{Version: "1"}, put: fence.ErrChanged}
	if err := fence.Put(ctx, &store, "a", 5, nil); !errors.Is(err, down) || store.writes != 1 {
		t.Errorf("with an ended context: %v after %d writes, want one and then a pause", err, store.writes)
	}
}
