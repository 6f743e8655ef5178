package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/stripe"
)

// TestKeysNeverChange compares keys with numbers that another program, in another language,
// computed. Do not change these numbers: all instances and all versions must agree on them.
func TestKeysNeverChange(t *testing.T) {
	for _, c := range []struct {
		of   string
		n    int
		want string
	}{
		{"", 8, "seats/7"},
		{"buyer-1", 1, "seats/0"},
		{"buyer-1", 2, "seats/0"},
		{"buyer-1", 8, "seats/1"},
		{"buyer-2", 8, "seats/4"},
		{"buyer-1", 1000, "seats/177"},
		{"käufer/3", 4096, "seats/1687"},
		{"\xff\x00", 7, "seats/6"},
	} {
		if got := stripe.Key("seats", c.of, c.n); got != c.want {
			t.Errorf("Key(seats, %q, %d) = %s, want %s forever", c.of, c.n, got, c.want)
		}
	}
}

func TestKeyRefusesNoStripes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a key of none of 0 stripes")
		}
	}()
	stripe.Key("seats", "buyer", 0)
}

func TestThingsSpreadEvenly(t *testing.T) {
	for _, n := range []int{2, 7, 16} {
		for _, format := range []string{"%d", "order-%06d", "%[1]d%[1]d"} {
			set := newSet(t, nil, n)
			counts := make([]int, n)
			for i := range 1000 * n {
				counts[set.Index(fmt.Sprintf(format, i))]++
			}
			// These limits are five standard deviations from the mean.
			if low, high := slices.Min(counts), slices.Max(counts); low < 850 || high > 1150 {
				t.Errorf("%d stripes of %s have %d to %d of 1000", n, format, low, high)
			}
		}
	}
}

// recorder records the requested keys, in order. A recorder without a Locker is for tests in
// which no request may be made.
type recorder struct {
	stripe.Locker
	mu    sync.Mutex
	asked []string
	fail  string // requests for this key fail
	waits func() // if set, called before a request waits
}

func (r *recorder) note(key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, key)
	if key == r.fail {
		return mortise.ErrQueueFull
	}
	return nil
}

func (r *recorder) Lock(ctx context.Context, key string) (*mortise.Lock, error) {
	if err := r.note("wait " + key); err != nil {
		return nil, err
	}
	if r.waits != nil {
		r.waits()
	}
	return r.Locker.Lock(ctx, key)
}

func (r *recorder) TryLock(ctx context.Context, key string) (*mortise.Lock, error) {
	if err := r.note("try " + key); err != nil {
		return nil, err
	}
	return r.Locker.TryLock(ctx, key)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func solo(t *testing.T) *recorder {
	t.Helper()
	node, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	if err := node.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &recorder{Locker: node}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func newSet(t *testing.T, locker stripe.Locker, n int) *stripe.Set {
	t.Helper()
	if locker == nil {
		locker = &recorder{}
	}
	set, err := stripe.New(locker, "seats", n)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	for _, n := range []int{-1, 0, 4097} {
		if _, err := stripe.New(&recorder{}, "seats", n); err == nil {
			t.Errorf("%d stripes were made", n)
		}
	}
	if _, err := stripe.New(nil, "seats", 1); err == nil {
		t.Error("stripes of no locker were made")
	}
	if _, err := newSet(t, nil, 4).At(t.Context(), 4); err == nil {
		t.Error("the fifth of four stripes was locked")
	}
}

func TestAnyTakesEveryStripeOnceThenWaitsForOne(t *testing.T) {
	node := solo(t)
	set := newSet(t, node, 4)
	held := map[int]*mortise.Lock{}
	for range set.Len() {
		i, lock, err := set.Any(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held[i] != nil || lock.Key() != fmt.Sprintf("seats/%d", i) {
			t.Fatalf("got stripe %d as %s, have %v", i, lock.Key(), held)
		}
		held[i] = lock
	}
	if i, _, err := set.TryAny(t.Context()); !errors.Is(err, mortise.ErrHeld) || i != -1 {
		t.Fatalf("TryAny of a set that is taken gave stripe %d, %v", i, err)
	}
	node.take()
	short, cancel := context.WithCancel(t.Context())
	node.waits = cancel
	if _, _, err := set.Any(short); !errors.Is(err, context.Canceled) {
		t.Fatalf("Any of a set that is taken gave %v", err)
	}
	asked := node.take()
	if len(asked) != 5 || "try "+asked[4][len("wait "):] != asked[0] {
		t.Fatalf("Any asked %q, want each of four once, and then to wait for the first", asked)
	}
	go held[2].Unlock(t.Context())
	// A waiter for one stripe does not notice that another stripe becomes free, but a later call
	// does. So try until a round finds the free stripe.
	for {
		if i, _, err := set.TryAny(t.Context()); err == nil {
			if i != 2 {
				t.Fatalf("stripe %d was free, want 2", i)
			}
			return
		} else if !errors.Is(err, mortise.ErrHeld) {
			t.Fatal(err)
		}
	}
}

func TestAnyBeginsFurtherOnEachTime(t *testing.T) {
	node := solo(t)
	set := newSet(t, node, 3)
	var begun []int
	for range 4 {
		i, lock, err := set.Any(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun = append(begun, i)
		if err := lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for k, i := range begun[1:] {
		if i != (begun[k]+1)%3 {
			t.Fatalf("stripes %v: want each one after the one before", begun)
		}
	}
}

func TestAllTakesThemInAscendingOrder(t *testing.T) {
	node, ctx := solo(t), bounded(t)
	set := newSet(t, node, 3)
	all, err := set.All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if asked := node.take(); !slices.Equal(asked, []string{"wait seats/0", "wait seats/1", "wait seats/2"}) {
		t.Fatalf("asked %q", asked)
	}
	under := all.Context(ctx)
	if err := all.Err(); err != nil || under.Err() != nil {
		t.Fatalf("all are held, and yet %v, %v", err, under.Err())
	}
	if _, _, err := set.TryAny(ctx); !errors.Is(err, mortise.ErrHeld) {
		t.Fatalf("another caller's try: %v", err)
	}
	if err := all[1].Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	<-under.Done()
	if err := all.Err(); !errors.Is(err, mortise.ErrUnlocked) || context.Cause(under) != mortise.ErrUnlocked {
		t.Fatalf("one is not held, and yet %v, %v", err, context.Cause(under))
	}
	if err := all.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := set.All(ctx); err != nil {
		t.Fatalf("after all were unlocked: %v", err)
	}
}

func TestAllThatFailsHoldsNothing(t *testing.T) {
	node, ctx := solo(t), bounded(t)
	set := newSet(t, node, 3)
	node.fail = "wait seats/2"
	if all, err := set.All(ctx); !errors.Is(err, mortise.ErrQueueFull) || all != nil {
		t.Fatalf("got %v, %v", all, err)
	}
	for i := range 2 { // these calls may wait until the release has arrived
		if _, err := set.At(ctx, i); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllAndAnyTogetherEnd(t *testing.T) {
	node, ctx := solo(t), bounded(t)
	var users sync.WaitGroup
	guarded := [4]int{} // the race detector reports callers that do not exclude each other
	for range 4 {
		users.Go(func() {
			set := newSet(t, node, 4)
			for range 25 {
				all, err := set.All(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range guarded {
					guarded[i]++
				}
				if err := all.Unlock(ctx); err != nil {
					t.Error(err)
				}
				i, one, err := set.Any(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				guarded[i]++
				if err := one.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	if sum := guarded[0] + guarded[1] + guarded[2] + guarded[3]; sum != 4*25*5 {
		t.Fatalf("%v: %d writes, want %d", guarded, sum, 4*25*5)
	}
}

// Unlock sends all releases, the highest stripe first, before it waits for the first.
func TestUnlockBeginsWithTheHighest(t *testing.T) {
	node, ctx := solo(t), bounded(t)
	all, err := newSet(t, node, 4).All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	watcher := node.Locker.(*mortise.Node)
	var released sync.WaitGroup
	defer released.Wait()
	begun, freed := false, []string(nil)
	for e, err := range watcher.Watch(ctx, "seats/", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case mortise.EventCurrent:
			if !begun {
				begun = true
				released.Go(func() {
					if err := all.Unlock(ctx); err != nil {
						t.Error(err)
					}
				})
			}
		case mortise.EventFreed:
			freed = append(freed, e.Key)
		}
		if len(freed) == 4 {
			break
		}
	}
	if want := []string{"seats/3", "seats/2", "seats/1", "seats/0"}; !slices.Equal(freed, want) {
		t.Errorf("released in the order %q, want %q", freed, want)
	}
}
