package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

type losing struct {
	locker.Local
	name string
	note func(string)
	lose chan struct{}
}

func (l *losing) Do(ctx context.Context, key string, fn func(context.Context, locker.Token) error) error {
	return l.Local.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-l.lose:
				end(locker.ErrLost)
			case <-stop:
			}
		}()
		l.note("lock " + l.name)
		defer l.note("unlock " + l.name)
		err := fn(ctx, token)
		select {
		case <-l.lose:
			return errors.Join(err, fmt.Errorf("%s: %w", l.name, locker.ErrLost))
		default:
			return err
		}
	})
}

type bothBench struct {
	first, second *losing
	notes         []string
}

func newBothBench() *bothBench {
	b := new(bothBench)
	note := func(what string) { b.notes = append(b.notes, what) }
	b.first = &losing{name: "first", note: note, lose: make(chan struct{})}
	b.second = &losing{name: "second", note: note, lose: make(chan struct{})}
	_ = b.second.Local.Do(context.Background(), "ahead", nothing) // so that tokens differ
	return b
}

func (b *bothBench) both(t *testing.T, authority Authority, observe bool) *Both {
	t.Helper()
	c := BothConfig{First: b.first, Second: b.second, Authority: authority, Observe: observe}
	if observe {
		c.OnSecond = func(key string, err error) { b.notes = append(b.notes, fmt.Sprintf("hook %s: %v", key, err)) }
	}
	both, err := NewBoth(c)
	if err != nil {
		t.Fatal(err)
	}
	return both
}

func (b *bothBench) saw(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(b.notes, want) {
		t.Errorf("saw\n%s\nwant\n%s", strings.Join(b.notes, "\n"), strings.Join(want, "\n"))
	}
	if !free(t, &b.first.Local, "k") || !free(t, &b.second.Local, "k") {
		t.Error("a lock is still held")
	}
}

func TestBothLocksInOrderAndUnlocksInReverse(t *testing.T) {
	for _, c := range []struct {
		authority Authority
		observe   bool
		token     locker.Token
	}{{FirstLock, false, 1}, {SecondLock, false, 2}, {FirstLock, true, 1}} {
		b := newBothBench()
		err := b.both(t, c.authority, c.observe).Do(t.Context(), "k",
			func(ctx context.Context, token locker.Token) error {
				found, _ := locker.TokenFrom(ctx)
				if token != c.token || found != c.token || len(Via(ctx)) != 0 {
					t.Errorf("%+v: token %d, in the context %d, via %v", c, token, found, Via(ctx))
				}
				b.notes = append(b.notes, "work")
				return nil
			})
		if err != nil {
			t.Error(err)
		}
		b.saw(t, "lock first", "lock second", "work", "unlock second", "unlock first")
	}
}

func TestBothRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBothBench()
		free := holdUntil(t, &b.second.Local, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := b.both(t, FirstLock, false).Do(ctx, "k",
			func(context.Context, locker.Token) error { t.Error("ran under one lock"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "the first lock was held, the second failed") {
			t.Errorf("returned %v", err)
		}
		if err := free(); err != nil {
			t.Error(err)
		}
		b.saw(t, "lock first", "unlock first")
	})
}

// Without Observe, the context of fn ends when either lock is lost. With Observe, it ends only
// when First is lost, and OnSecond is called when Second is lost.
func TestBothEndsWithEitherLock(t *testing.T) {
	for _, c := range []struct {
		observe, first bool
		ends           bool
	}{{false, true, true}, {false, false, true}, {true, true, true}, {true, false, false}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBothBench()
			lost := b.second
			if c.first {
				lost = b.first
			}
			err := b.both(t, FirstLock, c.observe).Do(t.Context(), "k",
				func(ctx context.Context, _ locker.Token) error {
					close(lost.lose)
					synctest.Wait()
					if ended := context.Cause(ctx) != nil; ended != c.ends {
						t.Errorf("%+v: the context's cause is %v", c, context.Cause(ctx))
					}
					return nil
				})
			if errors.Is(err, locker.ErrLost) != c.ends {
				t.Errorf("%+v: returned %v", c, err)
			}
			if hook := slices.Contains(b.notes, "hook k: second: "+locker.ErrLost.Error()); hook != (c.observe &&
				!c.first) {
				t.Errorf("%+v: saw %q", c, b.notes)
			}
		})
	}
}

func TestBothObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBothBench()
		free := holdUntil(t, &b.second.Local, "k")
		both, own, began := b.both(t, FirstLock, true), errors.New("own"), time.Now()
		err := both.Do(t.Context(), "k", func(ctx context.Context, token locker.Token) error {
			if !slices.Equal(Via(ctx), []string{FirstOnly}) || token != 1 || time.Since(began) != time.Second ||
				ctx.Err() != nil {
				t.Errorf("via %v, token %d, after %v, %v", Via(ctx), token, time.Since(began), ctx.Err())
			}
			b.notes = append(b.notes, "work")
			return own
		})
		if err != own {
			t.Errorf("returned %v", err)
		}
		if err := free(); err != nil {
			t.Error(err)
		}
		if len(b.notes) != 4 || !strings.Contains(b.notes[1], ErrWait.Error()) {
			t.Fatalf("saw %q", b.notes)
		}
		b.notes[1] = "hook"
		b.saw(t, "lock first", "hook", "work", "unlock first")

		b.notes = nil
		if err := both.Do(t.Context(), "k", func(context.Context, locker.Token) error { return own }); err != own {
			t.Errorf("under both: returned %v", err)
		}
		b.saw(t, "lock first", "lock second", "unlock second", "unlock first")

		b.notes = nil
		free = holdUntil(t, &b.second.Local, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		err = both.Do(ctx, "k", func(context.Context,
			locker.Token) error {
			t.Error("ran after its context had ended")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("returned %v", err)
		}
		if err := free(); err != nil {
			t.Error(err)
		}
		b.saw(t, "lock first", "unlock first")
	})
}

func TestBothDoesNotDeadlock(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 2))
			var old, new_ locker.Local
			var instances [2]*Both
			for i := range instances {
				var err error
				if instances[i], err = NewBoth(BothConfig{First: &old, Second: &new_,
					Authority: SecondLock}); err != nil {
					t.Fatal(err)
				}
			}
			who := []locker.Locker{instances[0], instances[1], &old, instances[0], instances[1], &new_}
			var all sync.WaitGroup
			var mu sync.Mutex
			inside := map[locker.Locker]int{}
			for range 60 {
				i, stay := chance.IntN(len(who)), time.Duration(chance.IntN(3))*time.Millisecond
				all.Go(func() {
					err := who[i].Do(t.Context(), "k", func(context.Context, locker.Token) error {
						mu.Lock()
						inside[who[i]]++
						both := inside[instances[0]] + inside[instances[1]]
						if both > 1 || both == 1 && inside[&old]+inside[&new_] > 0 {
							t.Errorf("seed %d: %d in Both, %d in old, %d in new at once", seed, both, inside[&old],
								inside[&new_])
						}
						mu.Unlock()
						time.Sleep(stay)
						mu.Lock()
						inside[who[i]]--
						mu.Unlock()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}

func TestViaTellsOfBothLocks(t *testing.T) {
	fallen := func() locker.Locker {
		b, err := NewBreaker(BreakerConfig{Locker: failing(errors.New("down")), Wait: time.Second, Failures: 1,
			Pause: time.Hour, Fallback: new(locker.Local)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	healthy, err := NewBreaker(BreakerConfig{Locker: new(locker.Local), Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	both, err := NewBoth(BothConfig{First: fallen(), Second: healthy, Authority: FirstLock})
	if err != nil {
		t.Fatal(err)
	}
	outer, err := NewBreaker(BreakerConfig{Locker: both, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = outer.Do(t.Context(), "k", func(ctx context.Context, _ locker.Token) error {
		if got := Via(ctx); !slices.Equal(got, []string{Primary, Fallback, Primary}) {
			t.Errorf("via %v", got)
		}
		return healthy.Do(ctx, "within", func(ctx context.Context, _ locker.Token) error {
			if got := Via(ctx); !slices.Equal(got, []string{Primary}) {
				t.Errorf("within: via %v", got)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func failing(err error) locker.Locker {
	return locker.Func(func(context.Context, string, func(context.Context, locker.Token) error) error { return err })
}
