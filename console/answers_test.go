package console

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// fakeNode is a leader with any number of keys. It counts the queries that it receives.
type fakeNode struct {
	keys   []mortise.KeyInfo
	many   int
	takes  time.Duration // the duration of a List or a Peek
	silent atomic.Bool
	panics bool
	fleet  int

	walks, peeks, told atomic.Int64
	searches           atomic.Int64
	at, most           atomic.Int64 // the present and the highest number of concurrent queries
	listed             atomic.Int64
}

func (f *fakeNode) Err() error                  { return nil }
func (f *fakeNode) Ready(context.Context) error { return nil }
func (f *fakeNode) Status() mortise.Status {
	return mortise.Status{Member: mortise.Member{Name: "fake"}, Group: "g", Leader: "fake", Attached: true,
		Lease: mortise.LeaseSafe, Health: &mortise.Health{Eligible: 3, Members: f.fleet, Advice: "go on"}}
}

func (f *fakeNode) Members(ctx context.Context, after string) iter.Seq2[mortise.Member, error] {
	return func(yield func(mortise.Member, error) bool) {
		if f.silent.Load() || ctx.Err() != nil {
			yield(mortise.Member{}, errors.New("no leader answers"))
			return
		}
		first, _ := strconv.Atoi(after)
		for i := first; i < f.fleet && yield(fakeMember(i), nil); i++ {
			f.listed.Add(1)
		}
	}
}

func fakeMember(i int) mortise.Member {
	return mortise.Member{Name: fmt.Sprintf("pod-%03d", i), Instance: fmt.Sprint("instance", i),
		Address: "10.0.0.1:7947", Tier: mortise.TierRoot, Session: fmt.Sprint(i + 1)}
}

func (f *fakeNode) Health(context.Context) (mortise.Health, error) { return mortise.Health{}, nil }

func (f *fakeNode) Audit(context.Context) ([]mortise.Event, error) { return nil, nil }

func (f *fakeNode) Sessions(context.Context) ([]mortise.SessionInfo, error) { return nil, nil }

func (f *fakeNode) ForceUnlock(context.Context, string, mortise.Token, string) (bool, error) {
	return true, nil
}

// ask waits for the duration of a query, and counts concurrent queries.
func (f *fakeNode) ask(ctx context.Context) error {
	f.most.Store(max(f.most.Load(), f.at.Add(1)))
	defer f.at.Add(-1)
	if f.silent.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(f.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeNode) Peek(ctx context.Context, key string) (mortise.KeyInfo, error) {
	f.peeks.Add(1)
	return mortise.KeyInfo{Key: key}, f.ask(ctx)
}

func (f *fakeNode) List(ctx context.Context, prefix string) iter.Seq2[mortise.KeyInfo, error] {
	return func(yield func(mortise.KeyInfo, error) bool) {
		f.walks.Add(1)
		if prefix != "" {
			f.searches.Add(1)
		}
		if err := f.ask(ctx); err != nil {
			yield(mortise.KeyInfo{}, fmt.Errorf("look: %w", err))
			return
		}
		if f.panics {
			panic("planted")
		}
		for i := range len(f.keys) + f.many {
			k := mortise.KeyInfo{Key: fmt.Sprintf("many/%d", i), Held: 1,
				Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: "h", Token: 1, Since: time.Now()}}}}
			if i < len(f.keys) {
				k = f.keys[i]
			}
			if f.told.Add(1); strings.HasPrefix(k.Key, prefix) && !yield(k, nil) {
				return
			}
		}
	}
}

// However many viewers there are, the leader is queried by one request at a time, and the same
// query is repeated only after a second.
func TestManyViewersAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNode{takes: 100 * time.Millisecond}
		h := New(f, Options{})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 10 {
					if answer, _, _ := get(t, h, "/"); answer.StatusCode != http.StatusOK {
						t.Errorf("%s", answer.Status)
					}
					time.Sleep(300 * time.Millisecond)
				}
			})
		}
		all.Wait()
		if n := f.walks.Load(); n < 2 || n > 4 {
			t.Errorf("50 viewers in three seconds asked %d times", n)
		}
		for i := range 20 {
			all.Go(func() { get(t, h, fmt.Sprintf("/?prefix=%d&key=k%d", i%4, i%3)) })
		}
		all.Wait()
		if n := f.most.Load(); n != 1 {
			t.Errorf("%d questions were under way at a time", n)
		}
	})
}

// Of a million keys, only a thousand are read and a few hundred are shown. Searches with many
// different terms must not fill the memory.
func TestWorkIsBounded(t *testing.T) {
	f := &fakeNode{many: 1_000_000}
	for i := range 50 { // List returns only the first entries of each queue
		f.keys = append(f.keys, mortise.KeyInfo{Key: fmt.Sprintf("hot/%d", i), Held: 1, Waiting: 9,
			Queue: []mortise.Standing{{Hold: mortise.Hold{Token: 1}}, {}, {}}})
	}
	h := New(f, Options{})
	page := mustPage(t, h, "/")
	wantText(t, page, "200 keys shown; 800 more looked at; there are others that were not looked at",
		fmt.Sprintf("%d keys more with waiters are left out", 50-maxTrees))
	if told, peeks := f.told.Load(), f.peeks.Load(); told > keysRead+1 || peeks != maxPeeks {
		t.Errorf("the leader was asked for %d keys and %d queues", told, peeks)
	}
	if rows := strings.Count(page, `<tr data-k="`); rows > maxShown || len(page) > 400_000 {
		t.Errorf("%d rows, %d bytes", rows, len(page))
	}
	f = &fakeNode{many: 100}
	h = New(f, Options{})
	for i := range 100 {
		wantText(t, mustPage(t, h, fmt.Sprintf("/?prefix=many/%d", i)), "shown")
	}
	if kept := len(h.(*handler).answers.all); kept > answersKept+1 {
		t.Errorf("%d answers are kept", kept)
	}
	before := f.searches.Load()
	mustPage(t, h, "/?prefix="+strings.Repeat("x", 513))
	mustPage(t, h, "/?prefix=%ff")
	if n := f.searches.Load() - before; n > 0 {
		t.Error("the leader was asked for keys that there cannot be")
	}
}

func TestALeaderThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNode{keys: []mortise.KeyInfo{{Key: "orders/42", Held: 1,
			Queue: []mortise.Standing{{Hold: mortise.Hold{Holder: "h", Token: 7, Since: time.Now()}}}}}}
		h := New(f, Options{})
		wantText(t, mustPage(t, h, "/"), "All is well", "orders/42")
		f.silent.Store(true)
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				_, page, took := get(t, h, fmt.Sprintf("/?prefix=orders/4&key=%d", i))
				if took > turnWithin+askWithin {
					t.Errorf("an answer took %v", took)
				}
				wantText(t, page, "orders/42", "The leader has not answered with the holders of locks", "They may have changed")
			})
		}
		all.Wait()
		if p := status(t, h, ""); p.Level != "watch" || len(p.Locks.Keys) != 1 {
			t.Errorf("%+v", p)
		}
		f.silent.Store(false)
		time.Sleep(2 * fresh)
		wantText(t, mustPage(t, h, "/"), "All is well")
	})
}

// A viewer that disconnects must not cancel the query that other requests wait for. After a panic
// in a query, other requests must still be answered.
func TestAViewerWhoGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNode{takes: 500 * time.Millisecond}
		h := New(f, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet,
				"http://10.0.0.9/", nil))
		}()
		synctest.Wait()
		cancel()
		wantText(t, mustPage(t, h, "/"), "All is well")
		<-gone
		if n := f.walks.Load(); n != 1 {
			t.Errorf("the leader was queried %d times", n)
		}
		time.Sleep(2 * fresh)
		f.panics = true
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the planted panic was swallowed")
				}
			}()
			get(t, h, "/")
		}()
		f.panics = false
		wantText(t, mustPage(t, h, "/"), "All is well")
	})
}

func TestAWalkThatBreaksOff(t *testing.T) {
	h := &handler{node: walkingNode{&fakeNode{}}, options: Options{Long: time.Hour}}
	a := &answer{}
	h.walk(t.Context(), a, "", keysRead)
	if a.err != nil || len(a.keys) != 3 || !a.more {
		t.Errorf("%+v", a)
	}
}

// walkingNode is a node whose List returns three keys and then the error of the time limit.
type walkingNode struct{ *fakeNode }

func (walkingNode) List(context.Context, string) iter.Seq2[mortise.KeyInfo, error] {
	return func(yield func(mortise.KeyInfo, error) bool) {
		for i := range 3 {
			if !yield(mortise.KeyInfo{Key: fmt.Sprint(i)}, nil) {
				return
			}
		}
		yield(mortise.KeyInfo{}, errors.Join(errors.New("look"), context.DeadlineExceeded))
	}
}
