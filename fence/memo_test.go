package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

func TestMemoDoesAStepOnce(t *testing.T) {
	var memo fence.Memo
	runs := 0
	do := func(token mortise.Token, id string) (string, error) {
		result, err := memo.Do(t.Context(), fence.Step{Resource: "a", Token: token, ID: id},
			func(ctx context.Context) ([]byte, error) {
				runs++
				if seen, _ := mortise.TokenFrom(ctx); seen != token {
					t.Errorf("fn finds the token %d, want %d", seen, token)
				}
				return fmt.Append(nil, "result ", runs), nil
			})
		if len(result) > 0 {
			defer func() { result[0] = 'X' }() // the caller may change the returned copy
		}
		return string(result), err
	}
	for _, c := range []struct {
		token mortise.Token
		id    string
		want  string
		stale bool
	}{
		{5, "", "result 1", false}, {5, "", "result 1", false}, {5, "5", "result 1", false},
		{5, "pay", "result 2", false}, {6, "pay", "result 2", false},
		{6, "", "result 3", false}, {5, "pay", "", true}, {5, "new", "", true},
	} {
		got, err := do(c.token, c.id)
		if got != c.want || errors.Is(err, fence.ErrStale) != c.stale || !c.stale && err != nil {
			t.Errorf("token %d ID %q: %q, %v, want %q", c.token, c.id, got, err, c.want)
		}
	}
	for _, step := range []fence.Step{{Resource: "a"}, {Token: 9}, {Resource: "a", Token: 9, ID: "a\n"}} {
		if _, err := memo.Do(t.Context(), step, nil); !errors.Is(err, fence.ErrBadToken) &&
			!errors.Is(err, fence.ErrBadResource) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

func TestMemoTogether(t *testing.T) {
	var memo fence.Memo
	var runs atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			result, err := memo.Do(t.Context(), fence.Step{Resource: "a", Token: 5, ID: fmt.Sprint(i % 4)},
				func(context.Context) ([]byte, error) {
					return fmt.Append(nil, "done ", i%4, " ", runs.Add(1) > 0), nil
				})
			if err != nil || string(result) != fmt.Sprint("done ", i%4, " ", true) {
				t.Errorf("%q, %v", result, err)
			}
		})
	}
	all.Wait()
	if runs.Load() != 4 {
		t.Errorf("4 steps ran %d times", runs.Load())
	}
}

func TestMemoTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memo fence.Memo
		step := fence.Step{Resource: "a", Token: 5, ID: "pay"}
		let := make(chan bool)
		go func() {
			defer func() { recover() }()
			memo.Do(t.Context(), step, func(context.Context) ([]byte, error) { <-let; panic("fn") })
		}()
		synctest.Wait()
		waiting := make(chan string, 1)
		go func() {
			result, err := memo.Do(t.Context(), step, func(context.Context) ([]byte, error) {
				return []byte("second"),
					nil
			})
			waiting <- fmt.Sprint(string(result), err)
		}()
		ctx, cancel := context.WithCancel(t.Context())
		synctest.Wait()
		cancel()
		if _, err := memo.Do(ctx, step, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(let)
		if got := <-waiting; got != "second<nil>" {
			t.Error(got)
		}
		if _, err := memo.Do(t.Context(), fence.Step{Resource: "a", Token: 5, ID: "x"},
			func(context.Context) ([]byte, error) { return nil, errors.New("no") }); err == nil {
			t.Error("the error of fn is gone")
		}
	})
}

func TestMemoForgetsTheOldest(t *testing.T) {
	memo := fence.Memo{Limit: 2, Marks: &fence.Mark{}}
	ran := ""
	for _, id := range []string{"a", "b", "c", "c", "b", "a", "c", "a", "b"} {
		_, _ = memo.Do(t.Context(), fence.Step{Resource: "r", Token: 5, ID: id},
			func(context.Context) ([]byte, error) { ran += id; return nil, nil })
	}
	if ran != "abcab" {
		t.Errorf("%q have run, want each once, and again when it was the oldest", ran)
	}
}

// A caller that waits for the step of another returns when its context ends, with the cause.
func TestMemoWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memo fence.Memo
		step := fence.Step{Resource: "a", Token: 5, ID: "pay"}
		let, done := make(chan bool), make(chan error, 2)
		go func() {
			_, err := memo.Do(t.Context(), step, func(context.Context) ([]byte, error) { <-let; return nil, nil })
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			result, err := memo.Do(ctx, step, func(context.Context) ([]byte, error) { return nil, errors.New("ran") })
			if result != nil {
				t.Errorf("the result is %q", result)
			}
			done <- err
		}()
		synctest.Wait()
		cancel(errOwn)
		if err := <-done; err != errOwn {
			t.Errorf("the one that waits: %v", err)
		}
		close(let)
		if err := <-done; err != nil {
			t.Errorf("the one that works: %v", err)
		}
	})
}

// The marks are those of the caller, if there are any.
func TestMemoUsesTheMarksOfTheCaller(t *testing.T) {
	mark := &fence.Mark{}
	if err := mark.Advance(t.Context(), "a", 9); err != nil {
		t.Fatal(err)
	}
	for _, token := range []mortise.Token{8, 9, 10} {
		_, err := (&fence.Memo{Marks: mark}).Do(t.Context(), fence.Step{Resource: "a", Token: token},
			func(context.Context) ([]byte, error) { return nil, nil })
		top, _ := mark.Highest("a")
		if errors.Is(err, fence.ErrStale) != (token < 9) || token >= 9 && err != nil || top != max(9, token) {
			t.Errorf("token %d: %v, and the mark is at %d", token, err, top)
		}
	}
}
