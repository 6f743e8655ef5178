package limits_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/shard"
	"github.com/mortise-lock/mortise/tick"
)

var errFails = errors.New("the function fails")

// loop calls fails under a lock or a leadership of the node, again and again until ctx ends.
type loop func(ctx context.Context, n *mortise.Node, fails func() error) error

// repeats runs a loop whose function fails each time. run must return soon after ctx has ended. The
// result is the pauses before the calls of the function within ten minutes.
func repeats(t *testing.T, run loop) (pauses []time.Duration) {
	t.Helper()
	n := ready(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	last := time.Now()
	err := run(ctx, n, func() error {
		pauses, last = append(pauses, time.Since(last)), time.Now()
		return errFails
	})
	if ctx.Err() == nil || errors.Is(err, errFails) {
		t.Errorf("it ended early: %v", err)
	}
	if late := time.Since(last); len(pauses) == 0 || late > 11*time.Minute {
		t.Errorf("%d calls; it ended %v after the last", len(pauses), late)
	}
	return pauses
}

// once is the trial of the first pause: the function is not called again within ten minutes.
func once(run func(d time.Duration) loop) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			if pauses := repeats(t, run(d)); len(pauses) != 1 {
				t.Errorf("with %v the function was called %d times", d, len(pauses))
			}
		})
	}
}

// doubles is the trial of the longest pause: the pauses begin with a millisecond and double.
func doubles(run func(d time.Duration) loop) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			pauses := repeats(t, run(d))
			if len(pauses) < 10 || len(pauses) > 30 {
				t.Errorf("with %v the function was called %d times", d, len(pauses))
			}
			for i := 2; i < len(pauses); i++ {
				if pauses[i] < pauses[i-1] {
					t.Errorf("with %v the pauses are %v", d, pauses)
				}
			}
		})
	}
}

func elects(o election.Options) loop {
	return func(ctx context.Context, n *mortise.Node, fails func() error) error {
		return election.New(n, "e", o).Run(ctx, "", func(context.Context, *election.Leadership) error { return fails() })
	}
}

func keeps(o keep.Options) loop {
	return func(ctx context.Context, n *mortise.Node, fails func() error) error {
		return keep.Run(ctx, n, mortise.Request{Key: "k"}, o, func(context.Context, *mortise.Lock) error { return fails() })
	}
}

var runDurations = map[string]func(*testing.T, time.Duration){
	"election.Options.Backoff": once(func(d time.Duration) loop {
		return elects(election.Options{Backoff: d})
	}),
	"election.Options.MaxBackoff": doubles(func(d time.Duration) loop {
		return elects(election.Options{Backoff: time.Millisecond, MaxBackoff: d})
	}),
	"keep.Options.Backoff": once(func(d time.Duration) loop {
		return keeps(keep.Options{Backoff: d})
	}),
	"keep.Options.MaxBackoff": doubles(func(d time.Duration) loop {
		return keeps(keep.Options{Backoff: time.Millisecond, MaxBackoff: d})
	}),
	"shard.Work.Backoff": once(func(d time.Duration) loop {
		return func(ctx context.Context, n *mortise.Node, fails func() error) error {
			return shard.Run(ctx, n, shard.Work{Name: "s", Count: 1, Backoff: d,
				Run: func(context.Context, shard.Shard) error { return fails() }})
		}
	}),
	"election.Options.MaxIdle": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			ended, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := election.New(ready(t), "e", election.Options{MaxIdle: d}).Campaign(ended, "")
			if err != nil {
				limits.Refused(t, err, "MaxIdle")
				return
			}
			time.Sleep(time.Minute)
			if err := l.Resign(t.Context()); (err == nil) != (d == 0 || d > 50*time.Second) {
				t.Error(err)
			}
		})
	},
	"shard.Work.MaxIdle": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			runs := make(chan bool, 1000)
			err := shard.Run(ctx, ready(t), shard.Work{Name: "s", Count: 1, MaxIdle: d,
				Run: func(ctx context.Context, _ shard.Shard) error { runs <- true; <-ctx.Done(); return nil }})
			if !errors.Is(err, context.DeadlineExceeded) {
				limits.Refused(t, err, "MaxIdle")
			} else if n := len(runs); (n == 1) != (d == 0 || d > 50*time.Second) {
				t.Errorf("with %v the function ran %d times in a minute", d, n)
			}
		})
	},
	"tick.Job.MaxIdle": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 115*time.Second)
			defer cancel()
			runs, ended := 0, false // the context of the first job, which does not beat
			err := tick.Run(ctx, ready(t), tick.Job{Name: "job", Schedule: tick.Every(time.Minute), MaxIdle: d,
				Run: func(ctx context.Context, _ tick.Tick) error {
					if runs++; runs > 1 {
						return nil
					}
					select {
					case <-ctx.Done():
						ended = true
					case <-time.After(50 * time.Second):
					}
					return nil
				}})
			if !errors.Is(err, context.DeadlineExceeded) {
				limits.Refused(t, err, "MaxIdle")
			} else if ended != (d > 0 && d < 50*time.Second) {
				t.Errorf("with %v the context of a job that does not beat has ended: %v", d, ended)
			}
		})
	},
	"election.Options.JeopardyGrace": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			_, err := election.New(ready(t), "e", election.Options{JeopardyGrace: d}).Campaign(t.Context(), "")
			limits.Refused(t, err, "JeopardyGrace")
		})
	},
	"tick.Job.Late": ticks(func(j *tick.Job, d time.Duration) { j.Late = d }),
	"tick.Job.Skew": ticks(func(j *tick.Job, d time.Duration) { j.Skew = d }),
	"console.Options.Long": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			n := ready(t)
			lock, err := n.Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			waiting, end := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { _, err := n.Lock(waiting, "k"); done <- err }()
			time.Sleep(time.Minute)
			answer, request := httptest.NewRecorder(), httptest.NewRequest("GET", "/status.json", nil)
			request.Host = "localhost"
			console.New(n, console.Options{Long: d}).ServeHTTP(answer, request)
			if text := answer.Body.String(); answer.Code != 200 || !strings.Contains(text, `"k"`) ||
				strings.Contains(strings.ReplaceAll(text, " ", ""), `"long":true`) {
				t.Errorf("with %v: %d %s", d, answer.Code, text)
			}
			end()
			<-done
			if err := lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	},
	"mortisetest.Cluster.Leap(d)": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			c := mortisetest.New(t, 1)
			lock, err := c.Node(0).Lock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			c.Leap(0, d)
			if err := lock.Err(); !errors.Is(err, mortise.ErrLost) {
				t.Errorf("after a leap by %v: %v", d, err)
			}
			c.Ready(0)
		})
	},
	"mortisetest.Options.Patience": func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			c := mortisetest.NewWith(t, 1, mortisetest.Options{Patience: d})
			began := time.Now()
			c.Until("an hour has passed", func() bool { return time.Since(began) >= time.Minute })
		})
	},
}

// ticks is the trial of a field of a Job, with a tick every second.
func ticks(set func(j *tick.Job, d time.Duration)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		bubble(t, func(t *testing.T) {
			ran := 0
			job := tick.Job{Name: "job", Schedule: tick.Every(time.Second),
				Run: func(context.Context, tick.Tick) error { ran++; return nil }}
			set(&job, d)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+500*time.Millisecond)
			defer cancel()
			err := tick.Run(ctx, ready(t), job)
			if ran < 9 || ran > 11 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v: %d runs in 10 s: %v", d, ran, err)
			}
		})
	}
}
