package stripe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise"
)

// answers is a locker that notes each request and answers it with an error.
type answers struct {
	asked []string
	tries map[string]error // by key; no error means a nil lock
	waits error
}

func (a *answers) Lock(_ context.Context, key string) (*mortise.Lock, error) {
	a.asked = append(a.asked, "wait "+key)
	return nil, a.waits
}

func (a *answers) TryLock(_ context.Context, key string) (*mortise.Lock, error) {
	a.asked = append(a.asked, "try "+key)
	return nil, a.tries[key]
}

var errOwn = errors.New("own")

// TestWhatALockerIsAsked compares all requests of each method, in order, with its result, from each
// first stripe.
func TestWhatALockerIsAsked(t *testing.T) {
	held := func(keys ...string) map[string]error {
		all := map[string]error{}
		for _, key := range keys {
			all[key] = fmt.Errorf("so: %w", mortise.ErrHeld)
		}
		return all
	}
	full := held("s/0", "s/1", "s/2")
	type method func(s *Set) (int, error)
	methodAny := func(s *Set) (int, error) { i, _, err := s.Any(t.Context()); return i, err }
	methodTry := func(s *Set) (int, error) { i, _, err := s.TryAny(t.Context()); return i, err }
	for _, row := range []struct {
		name   string
		method method
		first  uint32
		locker answers
		asked  []string
		want   string
	}{
		{"any, free", methodAny, 1, answers{}, []string{"try s/1"}, "1 <nil>"},
		{"any, the last", methodAny, 2, answers{tries: held("s/2", "s/0")}, []string{"try s/2", "try s/0", "try s/1"},
			"1 <nil>"},
		{"any, full", methodAny, 1, answers{tries: full}, []string{"try s/1", "try s/2", "try s/0", "wait s/1"}, "1 <nil>"},
		{"any, full, and the wait fails", methodAny, 1, answers{tries: full, waits: errOwn},
			[]string{"try s/1", "try s/2", "try s/0", "wait s/1"}, "-1 own"},
		{"any, not ready", methodAny, 0, answers{tries: map[string]error{"s/0": mortise.ErrNotReady}},
			[]string{"try s/0", "wait s/0"}, "0 <nil>"},
		{"any, not ready later", methodAny, 0, answers{tries: map[string]error{"s/0": mortise.ErrHeld,
			"s/1": mortise.ErrNotReady}}, []string{"try s/0", "try s/1", "wait s/0"}, "0 <nil>"},
		{"any, refused", methodAny, 0, answers{tries: map[string]error{"s/0": errOwn}}, []string{"try s/0"}, "-1 own"},
		{"try, free", methodTry, 5, answers{tries: held("s/2")}, []string{"try s/2", "try s/0"}, "0 <nil>"},
		{"try, full", methodTry, 0, answers{tries: full}, []string{"try s/0", "try s/1", "try s/2"},
			"-1 so: mortise: the lock is held"},
		{"try, not ready", methodTry, 0, answers{tries: map[string]error{"s/0": mortise.ErrNotReady}}, []string{"try s/0"},
			"-1 mortise: the group cannot answer now"},
		{"at the first", func(s *Set) (int, error) { _, err := s.At(t.Context(), 0); return 0, err }, 0,
			answers{waits: errOwn}, []string{"wait s/0"}, "0 own"},
		{"at the last", func(s *Set) (int, error) { _, err := s.At(t.Context(), 2); return 0, err }, 0, answers{},
			[]string{"wait s/2"}, "0 <nil>"},
		{"at the one after the last", func(s *Set) (int, error) { _, err := s.At(t.Context(), 3); return 0, err }, 0,
			answers{}, nil, `0 stripe: "s" has no stripe 3: they are 0 to 2`},
		{"before the first", func(s *Set) (int, error) { _, err := s.At(t.Context(), -1); return 0, err }, 0,
			answers{}, nil, `0 stripe: "s" has no stripe -1: they are 0 to 2`},
		{"of an item", func(s *Set) (int, error) { _, err := s.Lock(t.Context(), "x"); return s.Index("x"), err }, 0,
			answers{waits: errOwn}, []string{"wait " + Key("s", "x", 3)}, fmt.Sprint(index("x", 3), " own")},
		{"all", func(s *Set) (int, error) { all, err := s.All(t.Context()); return len(all), err }, 0, answers{},
			[]string{"wait s/0", "wait s/1", "wait s/2"}, "3 <nil>"},
		{"all, and the first fails", func(s *Set) (int, error) { all, err := s.All(t.Context()); return len(all), err }, 0,
			answers{waits: errOwn}, []string{"wait s/0"}, `0 stripe: all of "s": own`},
	} {
		s, err := New(&row.locker, "s", 3)
		if err != nil || s.Len() != 3 {
			t.Fatal(err)
		}
		s.start.Store(row.first - 1)
		i, err := row.method(s)
		if got := fmt.Sprint(i, " ", err); got != row.want || !slices.Equal(row.locker.asked, row.asked) {
			t.Errorf("%s: %s after %q, want %s after %q", row.name, got, row.locker.asked, row.want, row.asked)
		}
	}
	for n, want := range map[int]string{-1: `stripe: -1 stripes of "s": must be 1 to 4096`,
		0: `stripe: 0 stripes of "s": must be 1 to 4096`, 1: "<nil>", 4096: "<nil>",
		4097: `stripe: 4097 stripes of "s": must be 1 to 4096`} {
		if s, err := New(&answers{}, "s", n); fmt.Sprint(err) != want || (s == nil) != (err != nil) {
			t.Errorf("%d stripes: %v, want %s", n, err, want)
		}
	}
}

// Instances begin at different stripes.
func TestSetsBeginApart(t *testing.T) {
	starts := map[uint32]bool{}
	for range 20 {
		s, err := New(&answers{}, "s", 4096)
		if err != nil {
			t.Fatal(err)
		}
		starts[s.start.Load()] = true
	}
	if len(starts) < 2 {
		t.Errorf("20 sets begin at %v", starts)
	}
}
