package flight_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/flight"
	"github.com/mortise-lock/mortise/internal/lab/fakelock"
)

// TestWhatCallersGet compares the whole result of each way in which a call ends, for two callers
// that share it. The next call begins anew.
func TestWhatCallersGet(t *testing.T) {
	own, refused := errors.New("own"), errors.New("refused")
	type functions struct {
		fresh   func(context.Context) (string, bool, error)
		compute func(context.Context, mortise.Token) (string, error)
	}
	slow := func(context.Context) (string, bool, error) { time.Sleep(time.Second); return "", false, nil }
	answers := func(value string, found bool, err error) func(context.Context) (string, bool, error) {
		return func(context.Context) (string, bool, error) { time.Sleep(time.Second); return value, found, err }
	}
	computes := func(value string, err error) func(context.Context, mortise.Token) (string, error) {
		return func(_ context.Context, token mortise.Token) (string, error) { return fmt.Sprint(value, token), err }
	}
	lost := mortise.ErrLost.Error()
	for name, row := range map[string]struct {
		functions
		refuses error
		loses   bool
		want    string // value, error and panic
	}{
		"found":             {functions{answers("a", true, nil), computes("b", nil)}, nil, false, `"a" <nil> <nil>`},
		"computed":          {functions{slow, computes("b", nil)}, nil, false, `"b1" <nil> <nil>`},
		"fresh fails":       {functions{answers("a", true, own), computes("b", nil)}, nil, false, `"" own <nil>`},
		"compute fails":     {functions{slow, computes("b", own)}, nil, false, `"" own <nil>`},
		"refused":           {functions{slow, computes("b", nil)}, refused, false, `"" refused <nil>`},
		"lost":              {functions{slow, computes("b", nil)}, nil, true, `"" ` + lost + ` <nil>`},
		"lost, and found":   {functions{answers("a", true, nil), computes("b", nil)}, nil, true, `"a" <nil> <nil>`},
		"lost, and it says": {functions{answers("", false, mortise.ErrLost), nil}, nil, true, `"" ` + lost + ` <nil>`},
		"lost, and fails":   {functions{answers("", false, own), nil}, nil, true, `"" ` + lost + `: own <nil>`},
		"panics": {functions{slow, func(context.Context, mortise.Token) (string, error) { panic("bug") }}, nil, false,
			`"" <nil> bug`},
		"ends": {functions{slow, func(context.Context, mortise.Token) (string, error) { runtime.Goexit(); return "", nil }},
			nil, false, `"" flight: the function ended its goroutine (runtime.Goexit) <nil>`},
	} {
		bubble(t, func(t *testing.T) {
			locks := &fakelock.Locks{}
			g := flight.New[string](mayRefuse{locks.Instance(), &row.refuses})
			all := []*result{start(t.Context(), g, row.fresh, row.compute), start(t.Context(), g, row.fresh, row.compute)}
			if row.loses {
				locks.Lose("page")
			}
			var panics []any
			for _, r := range all {
				<-r.done
				value := r.panicked
				if p, is := r.panicked.(*flight.PanicError); is {
					value, panics = p.Value, append(panics, r.panicked)
					if p.Unwrap() != nil || len(p.Stack) == 0 || p.Error() != fmt.Sprintf("bug\n\n%s", p.Stack) {
						t.Errorf("%s: %+v", name, p)
					}
				}
				if got := fmt.Sprintf("%q %v %v", r.value, r.err, value); got != row.want {
					t.Errorf("%s: %s, want %s", name, got, row.want)
				}
			}
			if len(panics) == 2 && panics[0] != panics[1] {
				t.Errorf("%s: the callers get two values", name)
			}
			row.refuses = nil
			again := start(t.Context(), g, nothing, func(context.Context, mortise.Token) (string, error) { return "new", nil })
			if <-again.done; again.value != "new" || again.err != nil {
				t.Errorf("%s: the next call: %q, %v", name, again.value, again.err)
			}
			nothingLeft(t, locks)
		})
	}
}

// mayRefuse is a locker that refuses every request while its error is set.
type mayRefuse struct {
	*fakelock.Instance
	with *error
}

func (m mayRefuse) Do(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
	if *m.with != nil {
		return *m.with
	}
	return m.Instance.Do(ctx, key, fn)
}

// A call that its callers have given up does not end the next call of its key: a third caller joins
// that one.
func TestAnAbandonedCallLeavesTheNextAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		gone := errors.New("gone")
		ctx, giveUp := context.WithCancelCause(t.Context())
		var why error
		first := start(ctx, g, nothing, func(ctx context.Context, _ mortise.Token) (string, error) {
			<-ctx.Done()
			why = context.Cause(ctx)
			time.Sleep(time.Second)
			return "", nil
		})
		giveUp(gone)
		<-first.done
		if first.err == nil || first.err.Error() != `flight: "page": gone` || !errors.Is(first.err, gone) {
			t.Errorf("the first caller gets %v", first.err)
		}
		computed := 0
		compute := func(context.Context, mortise.Token) (string, error) {
			computed++
			time.Sleep(2 * time.Second)
			return "second", nil
		}
		second := start(t.Context(), g, nothing, compute)
		time.Sleep(1500 * time.Millisecond) // the first call has ended, and the second computes
		synctest.Wait()
		third := start(t.Context(), g, nothing, compute)
		<-second.done
		<-third.done
		if second.value != "second" || third.value != "second" || computed != 1 {
			t.Errorf("they get %q and %q, computed %d times", second.value, third.value, computed)
		}
		if why == nil || why.Error() != "flight: every caller has given up" {
			t.Errorf("the context of the call has ended by %v", why)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if value, err := g.Do(ended, "page", nothing, compute); value != "" || err != gone {
			t.Errorf("with a context that has ended: %q, %v", value, err)
		}
		nothingLeft(t, &locks)
	})
}

// Calls of several keys run at the same time, and Close ends all of them.
func TestKeysAreApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		g := flight.New[string](locks.Instance())
		ended := make(chan string, 3)
		for _, key := range []string{"a", "b", "c"} {
			go func() {
				_, err := g.Do(t.Context(), key, nothing, func(ctx context.Context, _ mortise.Token) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				ended <- fmt.Sprint(err)
			}()
		}
		synctest.Wait()
		if keys := fmt.Sprint(locks.Keys()); keys != "[a b c]" {
			t.Errorf("locked are %s", keys)
		}
		g.Close()
		for range 3 {
			if err := <-ended; err != "flight: the group is closed: context canceled" {
				t.Errorf("a caller gets %s", err)
			}
		}
		nothingLeft(t, &locks)
	})
}
