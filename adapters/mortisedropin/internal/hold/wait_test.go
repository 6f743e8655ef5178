package hold

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// asked is a group that grants a lock after a time, or never. It notes what it is asked.
type asked struct {
	after  time.Duration // zero means never
	fails  error         // the answer; nil means a grant, or the error of the context
	leader string
	got    []mortise.Request
	ended  error // of the last context
}

func (a *asked) Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	a.got = append(a.got, r)
	context.AfterFunc(ctx, func() { a.ended = context.Cause(ctx) })
	var granted <-chan time.Time
	if a.after > 0 {
		granted = time.After(a.after)
	}
	if a.fails != nil {
		return nil, a.fails
	}
	select {
	case <-granted:
		return new(mortise.Lock), nil
	case <-ctx.Done():
		err := ctx.Err()
		if cause := context.Cause(ctx); cause != err {
			return nil, fmt.Errorf("mortise: lock %q: %w: %w", r.Key, err, cause)
		}
		return nil, fmt.Errorf("mortise: lock %q: %w", r.Key, err)
	}
}

func (a *asked) Status() mortise.Status { return mortise.Status{Leader: a.leader} }

// session is an asked without a Status.
type session struct{ of *asked }

func (s session) Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	return s.of.Acquire(ctx, r)
}

// TestEachEndOfAWait compares the whole result of Acquire for pauses before retries, for grants and
// errors, and for callers whose context ends.
func TestEachEndOfAWait(t *testing.T) {
	down := errors.New("down")
	const second = time.Second
	for what, c := range map[string]struct {
		pauses  []time.Duration
		group   asked
		session bool
		until   time.Duration // when the context of the caller ends; zero means never
		try     bool
		calls   int // of next
		took    time.Duration
		text    string
		is, not error
	}{
		"no retry":         {pauses: []time.Duration{0}, group: asked{after: second}, try: true, calls: 1, took: second},
		"a negative pause": {pauses: []time.Duration{-1}, group: asked{after: second}, try: true, calls: 1, took: second},
		"no retry, refused": {pauses: []time.Duration{0}, group: asked{fails: down}, try: true, calls: 1, text: "down",
			is: down},
		"the shortest pause": {pauses: []time.Duration{1, 0}, group: asked{after: second, leader: "a"}, calls: 2, took: 1,
			text: `mortise: lock "k": ` + ErrWaited.Error(), is: ErrWaited, not: context.Canceled},
		"granted at once": {pauses: []time.Duration{5 * second, 0}, group: asked{after: second}, calls: 1, took: second},
		"granted before the end": {pauses: []time.Duration{2 * second, second, 0}, group: asked{after: 3*second - 1},
			calls: 2, took: 3*second - 1},
		"all retries": {pauses: []time.Duration{2 * second, second, 3 * second, 0}, group: asked{leader: "a"}, calls: 4,
			took: 6 * second, text: `mortise: lock "k": ` + ErrWaited.Error(), is: ErrWaited, not: context.Canceled},
		"all retries, the last is negative": {pauses: []time.Duration{2 * second, -1}, group: asked{leader: "a"}, calls: 2,
			took: 2 * second, text: `mortise: lock "k": ` + ErrWaited.Error(), is: ErrWaited, not: ErrAway},
		"all retries without a leader": {pauses: []time.Duration{2 * second, 0}, calls: 2, took: 2 * second,
			text: `mortise: lock "k": ` + ErrAway.Error(), is: ErrAway, not: ErrWaited},
		"all retries in a session": {pauses: []time.Duration{2 * second, 0}, session: true, calls: 2, took: 2 * second,
			text: `mortise: lock "k": ` + ErrWaited.Error(), is: ErrWaited, not: ErrAway},
		"refused": {pauses: []time.Duration{second, 0}, group: asked{fails: down}, calls: 1, text: "down", is: down},
		"the caller goes": {pauses: []time.Duration{5 * second, 0}, until: second, calls: 1, took: second,
			text: `mortise: lock "k": context deadline exceeded`, is: context.DeadlineExceeded, not: ErrWaited},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, begin, calls := t.Context(), time.Now(), 0
			if c.until > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.until)
				defer cancel()
			}
			var lock *mortise.Lock
			var err error
			next := func() time.Duration {
				calls++
				return c.pauses[calls-1]
			}
			r := mortise.Request{Key: "k", Value: "v"}
			if c.session {
				lock, err = Acquire(ctx, session{&c.group}, r, next)
			} else {
				lock, err = Acquire(ctx, &c.group, r, next)
			}
			took, counted := time.Since(begin), calls
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != c.text || (lock == nil) != (err != nil) || c.is != nil && !errors.Is(err, c.is) ||
				c.not != nil && errors.Is(err, c.not) {
				t.Errorf("%s: %v, %v, want %s", what, lock, err, c.text)
			}
			r.Try = c.try
			if took != c.took || counted != c.calls || fmt.Sprint(c.group.got) != fmt.Sprint([]mortise.Request{r}) {
				t.Errorf("%s: after %v and %d pauses, asked for %+v, want %v, %d, %+v", what, took, counted, c.group.got,
					c.took, c.calls, r)
			}
			time.Sleep(time.Hour)
			synctest.Wait() // for the function that notes the end of the context
			if calls != counted {
				t.Errorf("%s: next was called after the end", what)
			}
			if !c.try && c.group.ended == nil {
				t.Errorf("%s: the context of the request goes on", what)
			}
		})
	}
}

// TestWhichErrorsEndAHold tries each error of a Hold, and others.
func TestWhichErrorsEndAHold(t *testing.T) {
	for err, want := range map[error]bool{mortise.ErrLost: true, mortise.ErrUnlocked: true, ErrExpired: true,
		mortise.ErrClosed: false, mortise.ErrNotReady: false, context.Canceled: false, ErrWaited: false, nil: false} {
		if got := Ended(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
