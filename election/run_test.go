package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// stage checks that functions do not run concurrently and that tokens increase. It records which
// instances ran.
type stage struct {
	t       *testing.T
	mu      sync.Mutex // guards the fields below
	on      int
	highest mortise.Token
	ran     []string
}

func (s *stage) enter(who string, token mortise.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on++; s.on > 1 {
		s.t.Errorf("%s runs beside another", who)
	}
	if token <= s.highest {
		s.t.Errorf("%s runs with token %d after %d", who, token, s.highest)
	}
	s.highest, s.ran = token, append(s.ran, who)
}

func (s *stage) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on--
}

type told struct {
	mu     sync.Mutex // guards the fields below
	tokens []mortise.Token
	errs   []error
	at     []time.Duration
	began  time.Time
}

func (r *told) report(token mortise.Token, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens, r.errs, r.at = append(r.tokens, token), append(r.errs, err), append(r.at, time.Since(r.began))
}

func TestRunEndsWhenTheWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		err := g.election(Options{}).Run(t.Context(), "a",
			func(ctx context.Context, l *Leadership) error { return l.Err() })
		if err != nil || len(g.queue) != 0 {
			t.Errorf("Run returned %v, and %d are in the queue", err, len(g.queue))
		}
	})
}

// The context of the function must end first. Then the function returns, the leadership ends, and
// the next candidate leads immediately.
func TestShutdownHandsOverWhenTheFunctionHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{}, &stage{t: t}
		ctx, stop := context.WithCancelCause(t.Context())
		deploy := errors.New("deploy")
		first := make(chan error)
		go func() {
			first <- g.election(Options{}).Run(ctx, "a", func(ctx context.Context, l *Leadership) error {
				s.enter("a", l.Token())
				defer s.exit()
				<-ctx.Done()
				time.Sleep(3 * time.Second) // the function cleans up
				if l.Err() != nil {
					t.Errorf("resigned while the function runs: %v", l.Err())
				}
				return ctx.Err()
			})
		}()
		synctest.Wait()
		began := time.Now()
		go stop(deploy)
		err := g.election(Options{}).Run(t.Context(), "b", func(ctx context.Context, l *Leadership) error {
			s.enter("b", l.Token())
			defer s.exit()
			return nil
		})
		if err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("the second Run returned %v after %v", err, time.Since(began))
		}
		if err := <-first; err != deploy {
			t.Errorf("the first Run returned %v", err)
		}
	})
}

func TestRunTellsOfAFailureWhileItShutsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		full := errors.New("disk full")
		err := new(group).election(Options{}).Run(ctx, "a", func(context.Context, *Leadership) error {
			stop()
			return full
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, full) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestRunWaitsForItsFunctionAndLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, r := &group{}, &stage{t: t}, &told{}
		turns, began := 0, time.Now()
		err := g.election(Options{Report: r.report}).Run(t.Context(), "a",
			func(ctx context.Context, l *Leadership) error {
				s.enter("a", l.Token())
				defer s.exit()
				if turns++; turns == 3 {
					return nil
				}
				g.lose()
				<-ctx.Done()
				time.Sleep(time.Hour) // the function ignores the end of its context
				return nil            // must not end Run, because the context has ended
			})
		if err != nil || turns != 3 || time.Since(began) != 2*time.Hour {
			t.Errorf("Run returned %v after %d turns and %v", err, turns, time.Since(began))
		}
		if fmt.Sprint(r.errs) != fmt.Sprint([]error{mortise.ErrLost, mortise.ErrLost}) ||
			!slices.Equal(r.tokens, []mortise.Token{1, 2}) {
			t.Errorf("reported %v of %v", r.errs, r.tokens)
		}
	})
}

func TestADeafFunctionDelaysItsOwnInstanceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		deaf := make(chan struct{})
		go g.election(Options{}).Run(ctx, "a", func(ctx context.Context, l *Leadership) error {
			<-deaf
			return nil
		})
		synctest.Wait()
		g.lose()
		synctest.Wait()
		if len(g.queue) != 0 {
			t.Error("campaigns while its function runs")
		}
		l, err := g.election(Options{}).Campaign(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		close(deaf)
		synctest.Wait()
		if len(g.queue) != 2 {
			t.Errorf("%d are in the queue: want the leader, and the one that was deaf", len(g.queue))
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The pauses must be 1, 2, 4 and 4 s, and 1 s again after a leadership of MaxBackoff.
func TestRunPausesAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := &group{}, &told{began: time.Now()}
		broken, turns := errors.New("broken"), 0
		err := g.election(Options{MaxBackoff: 4 * time.Second, Report: r.report}).Run(t.Context(), "a",
			func(ctx context.Context, l *Leadership) error {
				switch turns++; turns {
				case 5:
					time.Sleep(9 * time.Second)
				case 7:
					return nil
				}
				return broken
			})
		if err != nil {
			t.Error(err)
		}
		want := "[0s 1s 3s 7s 20s 21s]"
		if got := fmt.Sprint(r.at); got != want {
			t.Errorf("failed at %s; want %s", got, want)
		}
		for _, err := range r.errs {
			if err != broken {
				t.Errorf("reported %v", err)
			}
		}
	})
}

func TestAFailureLetsOthersLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go g.election(Options{}).Run(ctx, "a", func(context.Context, *Leadership) error { return errors.New("broken") })
		synctest.Wait()
		began := time.Now()
		l, err := g.election(Options{}).Campaign(t.Context(), "b")
		if err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		stop()
		_ = l.Resign(t.Context())
	})
}

func TestAPanicResignsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		defer func() {
			if p := recover(); p != "bug" || len(g.queue) != 0 {
				t.Errorf("panic %v, and %d in the queue", p, len(g.queue))
			}
		}()
		_ = g.election(Options{}).Run(t.Context(), "a", func(context.Context, *Leadership) error { panic("bug") })
	})
}

func TestRunDoesNotWaitForeverToResign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{unheard: true}
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		err := g.election(Options{}).Run(ctx, "a", func(context.Context, *Leadership) error {
			stop()
			return nil
		})
		if err != context.Canceled || time.Since(began) != resignTime {
			t.Errorf("Run returned %v after %v", err, time.Since(began))
		}
	})
}

func TestWhatEndsRun(t *testing.T) {
	for _, err := range []error{mortise.ErrLeaving, mortise.ErrClosed, mortise.ErrBadKey, mortise.ErrBadRequest,
		errors.New("unknown")} {
		g := &group{refuses: fmt.Errorf("wrapped: %w", err)}
		if got := g.election(Options{}).Run(t.Context(), "a", nil); !errors.Is(got, err) {
			t.Errorf("%v: Run returned %v", err, got)
		}
	}
	for _, err := range []error{mortise.ErrOverloaded, mortise.ErrQueueFull, mortise.ErrNotReady, mortise.ErrLost} {
		synctest.Test(t, func(t *testing.T) {
			g, r, began := &group{refuses: err}, &told{}, time.Now()
			got := g.election(Options{Report: r.report}).Run(t.Context(), "a",
				func(context.Context, *Leadership) error { return nil })
			if got != nil || time.Since(began) != time.Second || len(r.errs) != 1 || r.errs[0] != err ||
				r.tokens[0] != 0 {
				t.Errorf("%v: Run returned %v after %v and reported %v", err, got, time.Since(began), r.errs)
			}
		})
	}
}

func TestRunEndsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		if _, err := g.election(Options{}).Campaign(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		for name, refuses := range map[string]error{"waits": nil, "pauses": mortise.ErrOverloaded} {
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { stop(enough) })
			began := time.Now()
			g.refuse(refuses)
			if err := g.election(Options{}).Run(ctx, "a", nil); err != enough || time.Since(began) != time.Millisecond {
				t.Errorf("%s: Run returned %v after %v", name, err, time.Since(began))
			}
		}
		if len(g.queue) != 1 {
			t.Errorf("%d are in the queue", len(g.queue))
		}
	})
}

func TestSteppingDownGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := &group{}, &stage{t: t}
		var all sync.WaitGroup
		for i := range 10 {
			turns := 0
			all.Go(func() {
				err := g.election(Options{}).Run(t.Context(), "a", func(ctx context.Context, l *Leadership) error {
					s.enter(fmt.Sprint(i), l.Token())
					time.Sleep(time.Second)
					s.exit()
					if turns++; turns == 2 {
						return nil
					}
					return l.Resign(ctx)
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := strings.Join(s.ran, ""); got != "01234567890123456789" {
			t.Errorf("led in the order %s", got)
		}
	})
}

func TestAFunctionIsNotCalledForWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := &group{}, &told{}
		e := g.election(Options{Report: r.report})
		e.acquire = func(ctx context.Context, q mortise.Request) (grant, error) {
			l, err := g.acquire(ctx, q)
			if l.Token() == 1 {
				g.lose()
				l = endedAlready{l}
			}
			return l, err
		}
		err := e.Run(t.Context(), "a", func(ctx context.Context, l *Leadership) error {
			if l.Token() != 2 || ctx.Err() != nil {
				t.Errorf("called for token %d, with %v", l.Token(), ctx.Err())
			}
			return nil
		})
		if err != nil || fmt.Sprint(r.errs) != fmt.Sprint([]error{mortise.ErrLost}) {
			t.Errorf("Run returned %v and reported %v", err, r.errs)
		}
	})
}

// endedAlready is a grant that was lost before Context is called.
type endedAlready struct{ grant }

func (e endedAlready) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(e.Err())
	return ctx
}

func TestAnUnnoticedLossCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := &group{}, 0
		err := g.election(Options{}).Run(t.Context(), "a", func(context.Context, *Leadership) error {
			if turns++; turns == 1 {
				g.mu.Lock()
				first := g.queue[0]
				first.err, g.queue = mortise.ErrLost, nil
				g.mu.Unlock()
				time.AfterFunc(time.Second, func() { close(first.done) })
			}
			return nil
		})
		if err != nil || turns != 2 {
			t.Errorf("Run returned %v after %d turns", err, turns)
		}
		time.Sleep(2 * time.Second)
	})
}
