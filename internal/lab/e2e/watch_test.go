package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// watcher applies the events of a watch to a state, and reports events that contradict that state.
type watcher struct {
	t       *testing.T
	held    map[string]bool // the keys have the form "key token"
	data    map[string]string
	last    uint64
	resets  int
	tokens  map[string]mortise.Token
	changes int
	whole   bool
}

func newWatcher(t *testing.T) *watcher {
	return &watcher{t: t, held: map[string]bool{}, data: map[string]string{}, tokens: map[string]mortise.Token{}}
}

func (w *watcher) see(e mortise.Event) {
	hold := fmt.Sprint(e.Key, " ", e.Token)
	if e.Position != 0 && (e.Position < w.last || e.Position == w.last && e.Kind != mortise.EventCurrent &&
		e.Kind != mortise.EventReset) {
		w.t.Errorf("%+v comes behind position %d", e, w.last)
	}
	w.last = max(w.last, e.Position)
	switch e.Kind {
	case mortise.EventReset:
		w.resets++
		w.whole = false
		clear(w.held)
		clear(w.data)
	case mortise.EventCurrent:
		w.whole = true
	case mortise.EventHeld:
		if w.held[hold] || w.whole && e.Token <= w.tokens[e.Key] || e.Holder == "" {
			w.t.Errorf("%+v, after token %d", e, w.tokens[e.Key])
		}
		w.held[hold] = true
		w.tokens[e.Key] = max(w.tokens[e.Key], e.Token)
		w.changes++
	case mortise.EventFreed:
		if !w.held[hold] || e.Cause == "" {
			w.t.Errorf("%+v was not held", e)
		}
		delete(w.held, hold)
		w.changes++
	case mortise.EventLeft:
		if !w.held[hold] {
			w.t.Errorf("%+v was not held", e)
		}
	case mortise.EventData:
		w.data[e.Key] = string(e.Data)
		if len(e.Data) == 0 {
			delete(w.data, e.Key)
		}
	default:
		w.t.Errorf("%+v", e)
	}
}

// TestWatchTellsEverything watches a busy group through the loss of a leader. Each hold must be
// reported once and in order.
func TestWatchTellsEverything(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		lead, on := f.leader(), f.follower()
		var working sync.WaitGroup
		var mu sync.Mutex
		granted := map[string]bool{}
		for i := range 12 {
			node := f.nodes[(lead+1+i%4)%5]
			working.Go(func() {
				for round := range 40 {
					r := mortise.Request{Key: fmt.Sprint("jobs/", (i+round)%7)}
					if (i+round)%5 == 0 {
						r.Mode = mortise.Shared
					}
					if round%9 == 0 {
						r = mortise.Request{Key: "jobs/1", Also: []mortise.Part{{Key: "jobs/all"}, {Key: "other"}}}
					}
					l, err := node.Acquire(t.Context(), r)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, p := range append(r.Also, mortise.Part{Key: r.Key}) {
						if strings.HasPrefix(p.Key, "jobs/") {
							granted[fmt.Sprint(p.Key, " ", l.Token())] = true
						}
					}
					mu.Unlock()
					time.Sleep(time.Duration(i) * time.Millisecond)
					if err := l.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		var before map[string]bool // may have ended before the watch began
		ctx, stop := context.WithCancel(t.Context())
		w := newWatcher(t)
		told := map[string]bool{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range f.nodes[on].Watch(ctx, "jobs/", 0) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				if before == nil {
					mu.Lock()
					before = maps.Clone(granted)
					mu.Unlock()
				}
				if e.Kind == mortise.EventHeld {
					told[fmt.Sprint(e.Key, " ", e.Token)] = true
				}
				w.see(e)
			}
		}()
		time.Sleep(100 * time.Millisecond)
		f.crash(lead)
		working.Wait()
		time.Sleep(3 * time.Second)
		stop()
		<-done
		for hold := range granted {
			if !told[hold] && !before[hold] {
				t.Errorf("%s was not told", hold)
			}
		}
		if len(told) < len(granted)/2 || w.resets != 1 || !w.whole || len(w.held) != 0 {
			t.Errorf("%d of %d told, %d resets, in the end %v", len(told), len(granted), w.resets, w.held)
		}
		t.Logf("%d holds told of %d, %d changes", len(told), len(granted), w.changes)
	})
}

// TestWatchBeginsWithWhatThereIs checks that a watch begins with the present state, even if the
// state changes while it is read page by page.
func TestWatchBeginsWithWhatThereIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		on := f.follower()
		held := map[string]*mortise.Lock{}
		for i := range 350 {
			key := fmt.Sprintf("k/%03d", i)
			held[key] = f.lock(i%3, key)
			if i%10 == 0 {
				if _, err := f.nodes[0].Put(t.Context(), key, []byte("first"), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.lock(0, "other")
		w := newWatcher(t)
		const last = "k/last"
		n, ended := 0, false
		for e, err := range f.nodes[on].Watch(t.Context(), "k/", 0) {
			if err != nil {
				t.Fatal(err)
			}
			w.see(e)
			if w.data[last] != "" {
				break
			}
			if e.Kind == mortise.EventCurrent { // changes of the last moment are told behind it
				if ended {
					continue // it began again
				}
				ended = true
				if _, err := f.nodes[0].Put(t.Context(), last, []byte("end"), 0); err != nil {
					t.Fatal(err)
				}
				continue
			}
			// Change keys that the watch has already reported, and keys that it has not.
			if n++; n%20 == 0 && n < 400 {
				for _, i := range []int{n / 20, 340 - n/20} {
					key := fmt.Sprintf("k/%03d", i)
					unlock(t, held[key])
					held[key] = f.lock(2, key)
				}
				key := fmt.Sprintf("k/%03d", 340-n/20*10)
				_, revision, err := f.nodes[0].Get(t.Context(), key)
				if err == nil {
					_, err = f.nodes[0].Put(t.Context(), key, []byte{byte('a' + n/20%2)}[:n/20%2], revision)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		want := map[string]bool{}
		for key, l := range held {
			want[fmt.Sprint(key, " ", l.Token())] = true
		}
		if !maps.Equal(w.held, want) {
			t.Errorf("%d are told, %d are held", len(w.held), len(want))
		}
		for i := range 350 {
			key := fmt.Sprintf("k/%03d", i)
			data, _, err := f.nodes[0].Get(t.Context(), key)
			if err != nil || string(data) != w.data[key] {
				t.Errorf("%s has %q, told was %q, %v", key, data, w.data[key], err)
			}
		}
	})
}

// TestWatchGoesOn resumes a watch at another instance. If there were too many events in the
// meantime, the watch must begin with a reset.
func TestWatchGoesOn(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		read := func(i int, after uint64, until func(mortise.Event) bool) (all []mortise.Event) {
			for e, err := range f.nodes[i].Watch(brief(t), "k", after) {
				if err != nil {
					t.Fatal(err)
				}
				if all = append(all, e); until(e) {
					break
				}
			}
			return all
		}
		current := func(e mortise.Event) bool { return e.Kind == mortise.EventCurrent }
		begin := read(0, 0, current)
		position := begin[len(begin)-1].Position
		unlock(t, f.lock(1, "k1"))
		unlock(t, f.lock(1, "elsewhere"))
		unlock(t, f.lock(2, "k2"))
		var texts []string
		for _, e := range read(1, position, current) {
			texts = append(texts, fmt.Sprint(e.Kind, " ", e.Key, " ", e.Holder, " ", e.Cause))
		}
		want := []string{"held k1 node-1 ", "freed k1 node-1 released", "held k2 node-2 ", "freed k2 node-2 released",
			"current   "}
		if !slices.Equal(texts, want) {
			t.Errorf("%q\nwant %q", texts, want)
		}
		second := read(2, position, func(mortise.Event) bool { return true })[0]
		if rest := read(0, second.Position, current); len(rest) != 4 || rest[0].Kind != mortise.EventFreed ||
			rest[0].Key != "k1" {
			t.Errorf("behind %+v: %+v", second, rest)
		}
		for range 10 {
			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() {
					if l, err := f.nodes[i%3].Lock(t.Context(), fmt.Sprint("many/", i)); err != nil ||
						l.Unlock(t.Context()) != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if again := read(0, position, current); again[0].Kind != mortise.EventReset {
			t.Errorf("after 10,000 events it goes on with %+v", again[0])
		}
	})
}

func TestWatchersAreBoundedAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				for range f.nodes[i%3].Watch(ctx, fmt.Sprint("k/", i), 0) {
				}
			})
		}
		time.Sleep(5 * time.Second)
		r := f.nodes[f.leader()].Replica()
		if n := r.Questions.Watching(); n > 3 { // all callers of a node share one
			t.Errorf("%d watch", n)
		}
		stop()
		all.Wait()
		time.Sleep(5 * time.Second)
		unlock(t, f.lock(0, "k"))
		synctest.Wait()
		if n := r.Questions.Watching(); n != 0 {
			t.Errorf("%d still watch", n)
		}
	})
}

// TestAuditTellsEndsByOthers checks that the audit log contains the holds that were not ended by
// their holders, and no other holds.
func TestAuditTellsEndsByOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		victim, other := f.follower(), f.leader()
		unlock(t, f.lock(victim, "quiet"))
		forced := f.lock(victim, "forced")
		if _, err := f.nodes[other].ForceUnlock(brief(t), "forced", forced.Token(), "hangs"); err != nil {
			t.Fatal(err)
		}
		f.lock(victim, "crashed")
		f.acquire(victim, mortise.Request{Key: "delayed", LockDelay: 5 * time.Second})
		name := f.nodes[victim].config.Name
		f.crash(victim)
		unlock(t, f.lock(other, "crashed"))
		unlock(t, f.lock(other, "delayed"))
		f.crash(other) // the group keeps the audit log, so it survives this crash
		var told []string
		events, err := f.nodes[f.follower()].Audit(brief(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			told = append(told, fmt.Sprint(e.Kind, " ", e.Key, " ", e.Holder == name, " ", e.Cause, " ", e.Reason))
			if e.At.IsZero() || e.Position == 0 || e.Token == 0 {
				t.Errorf("%+v", e)
			}
		}
		slices.Sort(told)
		want := []string{"freed crashed true expired ", "freed delayed true expired ",
			"freed forced true forced hangs", "left delayed true expired "}
		if !slices.Equal(told, want) {
			t.Errorf("%q\nwant %q", told, want)
		}
	})
}
