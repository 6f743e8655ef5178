package counter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mortise-lock/mortise"
)

var errLost = errors.New("no answer")

// faulty is a node whose answers are lost at random. A Put whose answer was lost has taken effect,
// never takes effect, or takes effect later, if the data then still has its revision.
type faulty struct {
	rand     *rand.Rand
	data     []byte
	revision uint64
	late     []func()
	faults   int // of 10 calls
}

func (f *faulty) Get(context.Context, string) ([]byte, uint64, error) {
	f.arrive()
	if f.rand.IntN(10) < f.faults {
		return nil, 0, errLost
	}
	return f.data, f.revision, nil
}

func (f *faulty) Put(_ context.Context, _ string, data []byte, revision uint64) (uint64, error) {
	f.arrive()
	if len(data) > 4096 {
		return 0, errors.New("more than a key can have")
	}
	put := func() {
		if revision == f.revision {
			f.data, f.revision = data, f.revision+1
		}
	}
	if f.rand.IntN(10) < f.faults {
		if f.rand.IntN(2) == 0 {
			f.late = append(f.late, put)
		}
		return 0, errLost
	}
	conflict := revision != f.revision
	if put(); conflict {
		return 0, mortise.ErrConflict
	}
	return f.revision, nil
}

func (f *faulty) arrive() {
	for len(f.late) > 0 && f.rand.IntN(3) == 0 {
		i := f.rand.IntN(len(f.late))
		f.late[i]()
		f.late = append(f.late[:i], f.late[i+1:]...)
	}
}

// TestEachAdditionCountsOnce repeats additions until they succeed, on a node that loses answers.
// The results must be the sums in one order. An addition whose outcome is not known counts once or
// not at all, and only if more than 64 others were made meanwhile.
func TestEachAdditionCountsOnce(t *testing.T) {
	unknown := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		f := &faulty{rand: r, faults: r.IntN(6)}
		c := New(f, "k")
		const adders = 5
		var open [adders]*Addition
		seen := map[int64]bool{}
		begun, done, lost := 0, 0, 0
		for range 1500 {
			i := r.IntN(adders * adders)
			if i = min(i, adders-1); i == 0 && r.IntN(50) > 0 {
				continue // this one is slow, so its result can be forgotten
			}
			if open[i] == nil {
				open[i] = c.Addition(1)
				begun++
			}
			value, err := open[i].Do(t.Context())
			switch {
			case err == nil && seen[value]:
				t.Fatalf("seed %d: two additions have the result %d", seed, value)
			case err == nil:
				done, seen[value], open[i] = done+1, true, nil
			case errors.Is(err, ErrUnknown):
				if again, err := open[i].Do(t.Context()); err == nil {
					t.Fatalf("seed %d: after ErrUnknown the result is %d", seed, again)
				}
				lost, open[i] = lost+1, nil
			}
		}
		f.faults, f.late = 0, nil
		for _, a := range open {
			if a == nil {
				continue
			}
			if _, err := a.Do(t.Context()); err == nil {
				done++
			} else {
				lost++
			}
		}
		value, err := c.Value(t.Context())
		if err != nil || value < int64(done) || value > int64(begun) || done+lost != begun {
			t.Fatalf("seed %d: value %d, %v after %d additions, %d of them unknown", seed, value, err, done, lost)
		}
		unknown += lost
	}
	if unknown == 0 {
		t.Error("no result was forgotten")
	}
	t.Logf("%d unknown", unknown)
}

// TestAResultIsFoundAmong64 checks the bound that the documentation gives.
func TestAResultIsFoundAmong64(t *testing.T) {
	for _, others := range []int{0, 63, 64, 200} {
		f := &faulty{rand: rand.New(rand.NewPCG(1, 1))}
		c := New(f, "k")
		made, notMade := c.Addition(5), c.Addition(7)
		if _, err := made.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		notMade.sent, notMade.known = true, 1 // its Put got no answer, and took no effect
		for range others {
			if _, err := c.Add(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		value, err := made.Do(t.Context())
		switch {
		case others < 64 && (err != nil || value != 5):
			t.Errorf("made, after %d others: %d, %v", others, value, err)
		case others >= 64 && !errors.Is(err, ErrUnknown):
			t.Errorf("made, after %d others: %d, %v", others, value, err)
		}
		value, err = notMade.Do(t.Context())
		switch want := int64(12 + others); {
		case others <= 64 && (err != nil || value != want):
			t.Errorf("not made, after %d others: %d, %v, want %d", others, value, err, want)
		case others > 64 && !errors.Is(err, ErrUnknown):
			t.Errorf("not made, after %d others: %d, %v", others, value, err)
		}
	}
}

func TestARemovedCounter(t *testing.T) {
	f := &faulty{rand: rand.New(rand.NewPCG(1, 1))}
	c := New(f, "k")
	for range 3 {
		if _, err := c.Add(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	a := c.Addition(1)
	a.sent, a.known = true, 3
	f.data = nil
	if _, err := a.Do(t.Context()); !errors.Is(err, ErrUnknown) {
		t.Errorf("an addition that may have been removed with the counter: %v", err)
	}
	if value, err := c.Add(t.Context(), 1); value != 1 || err != nil {
		t.Errorf("a new addition: %d, %v", value, err)
	}
}

func TestBounds(t *testing.T) {
	f := &faulty{rand: rand.New(rand.NewPCG(1, 1))}
	c := New(f, "k")
	for _, step := range []struct {
		delta, want int64
		bad         bool
	}{
		{math.MaxInt64, math.MaxInt64, false}, {1, 0, true}, {0, math.MaxInt64, false}, {-math.MaxInt64, 0, false},
		{math.MinInt64, math.MinInt64, false}, {-1, 0, true}, {math.MinInt64, 0, true},
	} {
		value, err := c.Add(t.Context(), step.delta)
		if value != step.want || step.bad != errors.Is(err, mortise.ErrBadRequest) || !step.bad && err != nil {
			t.Errorf("add %d: %d, %v", step.delta, value, err)
		}
	}
	for range 100 { // the longest results
		if _, err := c.Add(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOtherDataIsRefused(t *testing.T) {
	f := &faulty{rand: rand.New(rand.NewPCG(1, 1))}
	for _, data := range []string{"7", "counter 1\n", "counter 1\n1", "counter 1\n1 x\n", "counter 1\n1 1\nid\n",
		"counter 2\n1 1\n", "counter 1\n1 1\na 1\nb 1\n"} {
		f.data = []byte(data)
		c := New(f, "k")
		if _, err := c.Add(t.Context(), 1); !errors.Is(err, mortise.ErrBadRequest) || string(f.data) != data {
			t.Errorf("Add to %q: %v, then %q", data, err, f.data)
		}
		if _, err := c.Value(t.Context()); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("Value of %q: %v", data, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("counter 1\n2 2\na 1\nb 2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := parse(data)
		if !ok {
			return
		}
		again, ok := parse(r.encode())
		if fmt.Sprint(again) != fmt.Sprint(r) || !ok {
			t.Errorf("%q: %v, then %v, %v", data, r, again, ok)
		}
	})
}

// overtaken is a node whose answers are never lost. Before each Put of its caller, another addition
// is made, so that the Put is refused.
type overtaken struct {
	*faulty
	others int // additions that are still to be made
}

func (o *overtaken) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	if o.others > 0 {
		o.others--
		if _, err := New(o.faulty, key).Add(ctx, 1); err != nil {
			return 0, err
		}
	}
	return o.faulty.Put(ctx, key, data, revision)
}

// TestAnAdditionThatIsOftenOvertakenIsMade lets other additions be faster, more often than the data
// has results. No answer is lost, so the outcome of each attempt is known.
func TestAnAdditionThatIsOftenOvertakenIsMade(t *testing.T) {
	const others = 3 * kept
	o := &overtaken{&faulty{rand: rand.New(rand.NewPCG(1, 1))}, others}
	if value, err := New(o, "k").Add(t.Context(), 5); err != nil || value != others+5 {
		t.Errorf("%d, %v, want %d", value, err, others+5)
	}
	if o.others != 0 {
		t.Errorf("%d others were not made", o.others)
	}
}
