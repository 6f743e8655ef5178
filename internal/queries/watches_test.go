package queries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// events is a leader's log of events, and answers watches like a leader.
type events struct {
	mu      sync.Mutex
	all     []*query.Event // event n has the position n
	kept    int            // the last events that can still be had
	most    int            // events in an answer
	changed chan struct{}
	waiting int // watches that wait
	worst   int
	asked   int
	goes    sync.WaitGroup
	over    context.Context
}

func newEvents(over context.Context) *events {
	return &events{kept: 100_000, most: 7, changed: make(chan struct{}), over: over}
}

func (l *events) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &query.Event{Position: uint64(len(l.all) + 1), Part: &query.Part{Key: []byte(key)}})
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *events) since(q *query.WatchRequest) (*query.EventList, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	var prefixes []string
	for _, each := range q.Prefixes {
		prefixes = append(prefixes, string(each))
	}
	of, list := lockfsm.NewPrefixes(prefixes...), &query.EventList{Position: uint64(len(l.all))}
	if int(q.After) < len(l.all)-l.kept {
		list.Missed = true
		return list, nil
	}
	for _, e := range l.all[q.After:] {
		if len(list.Events) == l.most {
			list.Position, list.More = e.Position-1, true
			break
		}
		if of.Cover(string(e.Part.GetKey())) {
			list.Events = append(list.Events, e)
		}
	}
	return list, l.changed
}

func (l *events) ask(ctx context.Context, q *query.WatchRequest) (*query.EventList, error) {
	idle := time.NewTimer(replica.WatchTime)
	defer idle.Stop()
	for {
		time.Sleep(time.Millisecond)
		list, changed := l.since(q)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if q.AtOnce || list.Missed || len(list.Events) > 0 {
			return list, nil
		}
		l.waits(1)
		select {
		case <-changed:
		case <-idle.C:
			l.waits(-1)
			return list, nil
		case <-ctx.Done():
			l.waits(-1)
			return nil, ctx.Err()
		}
		l.waits(-1)
	}
}

func (l *events) waits(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting += n
	l.worst = max(l.worst, l.waiting)
}

// shared is the watch of a node whose leader is l.
type shared struct {
	Watches
	WatchedNode
}

func (s *shared) Open(prefix string) *Subscription { return s.Watches.Open(s.WatchedNode, prefix) }

func (l *events) watches() *shared {
	return &shared{WatchedNode: WatchedNode{Ask: l.ask, Spawn: func(f func(context.Context)) bool {
		l.goes.Go(func() { f(l.over) })
		return true
	}}}
}

// Callers with all kinds of prefixes come and go, some are slow, and each gets all its events after
// the position at which it began, once and in order, through one watch.
func TestSharedWatchesLeaveNothingOut(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			over, end := context.WithCancel(t.Context())
			defer end()
			l := newEvents(over)
			w, rng := l.watches(), rand.New(rand.NewPCG(seed, 1))
			var callers sync.WaitGroup
			for n := range 30 {
				prefix := []string{"", "a", "a/1", "a/2", "b", "b/", "c/7"}[rng.IntN(7)]
				begins, until := time.Duration(rng.IntN(3000))*time.Millisecond, 200+rng.IntN(3000)
				slow := time.Duration(rng.IntN(5)/4*rng.IntN(900)) * time.Millisecond
				callers.Go(func() {
					time.Sleep(begins)
					s := w.Open(prefix)
					defer s.Close()
					l.mu.Lock()
					after, from := uint64(len(l.all)), len(l.all)
					l.mu.Unlock()
					var got []*query.Event
					for range until {
						list, err := s.Events(t.Context(), after)
						if err != nil || list.Missed || list.Position < after {
							t.Errorf("seed %d, caller %d: %+v, %v", seed, n, list, err)
							return
						}
						got, after = append(got, list.Events...), list.Position
						if time.Sleep(slow); after >= 4000 {
							break
						}
					}
					l.mu.Lock()
					defer l.mu.Unlock()
					for _, e := range l.all[from:after] {
						if !strings.HasPrefix(string(e.Part.GetKey()), prefix) {
							continue
						}
						if len(got) == 0 || got[0] != e {
							t.Errorf("seed %d, caller %d of %q: without event %d", seed, n, prefix, e.Position)
							return
						}
						got = got[1:]
					}
					if len(got) > 0 {
						t.Errorf("seed %d, caller %d: %d events too many", seed, n, len(got))
					}
				})
			}
			for range 4000 {
				l.add(fmt.Sprintf("%c/%d", 'a'+rune(rng.IntN(4)), rng.IntN(9)))
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
			callers.Wait()
			time.Sleep(time.Second)
			l.goes.Wait()
			if l.worst > 1 || l.waiting != 0 || len(w.callers) != 0 || w.runs {
				t.Errorf("%d watches at once, %d left; %d callers left", l.worst, l.waiting, len(w.callers))
			}
		})
	}
}

// A caller that does not read delays no other, holds bounded memory, and can go on.
func TestASlowCallerDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEvents(t.Context())
		l.most = 512
		w := l.watches()
		slow, quick := w.Open(""), w.Open("")
		for _, s := range []*Subscription{slow, quick} {
			s.join(0)
		}
		after := uint64(0)
		for n := range uint64(20_000) {
			l.add("k")
			if n%100 != 99 {
				continue
			}
			for began := time.Now(); after < n+1; {
				list, err := quick.Events(t.Context(), after)
				if err != nil || time.Since(began) > 10*time.Millisecond {
					t.Fatalf("event %d is %v late: %v", n, time.Since(began), err)
				}
				after = list.Position
			}
			w.mu.Lock()
			if len(slow.queue) > sharedQueue+512 {
				t.Fatalf("%d events wait for a slow caller", len(slow.queue))
			}
			w.mu.Unlock()
		}
		for after, next := uint64(0), uint64(1); after < 20_000; {
			list, err := slow.Events(t.Context(), after)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list.Events {
				if e.Position != next {
					t.Fatalf("event %d, want %d", e.Position, next)
				}
				next++
			}
			after = list.Position
		}
		slow.Close()
		quick.Close()
		l.goes.Wait()
	})
}

// Without events a caller is told the position every few seconds, also if others have events.
func TestSharedWatchesTellThePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEvents(t.Context())
		w := l.watches()
		quiet, busy := w.Open("quiet"), w.Open("busy")
		defer l.goes.Wait()
		defer quiet.Close()
		defer busy.Close()
		busy.join(0)
		after := uint64(0)
		for n := range 200 {
			l.add("busy")
			time.Sleep(100 * time.Millisecond)
			if n%50 != 49 {
				continue
			}
			began := time.Now()
			list, err := quiet.Events(t.Context(), after)
			if err != nil || len(list.Events) > 0 || list.Position <= after || time.Since(began) > 2*replica.WatchTime {
				t.Fatalf("%+v, %v after %v", list, err, time.Since(began))
			}
			after = list.Position
		}
	})
}

// While the answer to a caller's own question is under way, the shared watch can pass events that
// the caller needs. The caller then asks once more.
func TestACallerThatJoinsBehindASharedWatchAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEvents(t.Context())
		w := l.watches()
		busy, late := w.Open("busy"), w.Open("late")
		defer l.goes.Wait()
		defer late.Close()
		defer busy.Close()
		busy.join(0)
		for _, key := range []string{"busy", "late", "busy"} {
			l.add(key)
			time.Sleep(10 * time.Millisecond) // the shared watch passes the event
		}
		late.join(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if list, err := late.Events(ctx, 1); err != nil || len(list.Events) != 1 || list.Events[0].Position != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
	})
}

// If the leader no longer has the events, or a question fails, each caller learns it itself.
func TestSharedWatchesPassOnWhatIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEvents(t.Context())
		w := l.watches()
		s := w.Open("k")
		defer l.goes.Wait()
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Events(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		l.mu.Lock()
		l.kept = 0
		l.mu.Unlock()
		l.add("k")
		l.add("k")
		if list, err := s.Events(t.Context(), 0); err != nil || !list.Missed {
			t.Fatalf("%+v, %v", list, err)
		}
		l.mu.Lock()
		l.kept = 1000
		l.mu.Unlock()
		l.add("k")
		if list, err := s.Events(t.Context(), 2); err != nil || list.Position != 3 || len(list.Events) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
	})
}

// When the node is closed, the goroutine ends, and the calls return.
func TestSharedWatchesEndWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, end := context.WithCancel(t.Context())
		closed := errors.New("closed")
		l := newEvents(over)
		w := l.watches()
		ask := w.Ask
		w.Ask = func(ctx context.Context, q *query.WatchRequest) (*query.EventList, error) {
			if over.Err() != nil {
				return nil, closed
			}
			return ask(ctx, q)
		}
		var callers sync.WaitGroup
		for n := range 10 {
			callers.Go(func() {
				s := w.Open(fmt.Sprint(n))
				defer s.Close()
				for after := uint64(0); ; {
					list, err := s.Events(t.Context(), after)
					if err != nil {
						if err != closed {
							t.Error(err)
						}
						return
					}
					after = list.Position
				}
			})
		}
		time.Sleep(time.Minute)
		end()
		callers.Wait()
		l.goes.Wait()
	})
}

func TestManyPrefixesAreShortened(t *testing.T) {
	var prefixes []string
	for n := range 10_000 {
		prefixes = append(prefixes, fmt.Sprintf("tenants/%d/orders/%d", n%300, n))
	}
	set := fewer(append([]string(nil), prefixes...))
	if checkPrefixes(set) != nil || len(set) < 2 {
		t.Errorf("%d prefixes", len(set))
	}
	for _, each := range prefixes {
		if !set.Cover(each) {
			t.Fatalf("%q is not covered", each)
		}
	}
	long := strings.Repeat("x", 2*sharedBytes)
	if set := fewer([]string{long, "y"}); !set.Cover(long+"1") || !set.Cover("y1") {
		t.Error(len(set))
	}
}
