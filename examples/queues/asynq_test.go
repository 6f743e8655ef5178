package queues

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/mortisetest"
)

// onePerOrder is a middleware. While a task of an order is processed on any instance, other tasks
// of this order are tried again later. They do not occupy a worker.
func onePerOrder(node *mortise.Node) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) (err error) {
			lock, err := node.TryLock(ctx, "orders/"+string(task.Payload()))
			if err != nil {
				return err // with mortise.ErrHeld, asynq tries again
			}
			defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
			return next.ProcessTask(lock.Context(ctx), task)
		})
	}
}

// workers returns the configuration of a server with this middleware.
func workers() asynq.Config {
	return asynq.Config{
		IsFailure: func(err error) bool { return !errors.Is(err, mortise.ErrHeld) }, // so it counts no retry
		RetryDelayFunc: func(n int, err error, task *asynq.Task) time.Duration {
			if errors.Is(err, mortise.ErrHeld) {
				return time.Second
			}
			return asynq.DefaultRetryDelayFunc(n, err, task)
		},
	}
}

// schedule runs on every instance. One of them has the scheduler, until it stops or dies.
func schedule(ctx context.Context, node *mortise.Node, redis asynq.RedisConnOpt, o *asynq.SchedulerOpts) error {
	e := election.New(node, "asynq/scheduler", election.Options{})
	return e.Run(ctx, "", func(ctx context.Context, _ *election.Leadership) error {
		scheduler := asynq.NewScheduler(redis, o)
		if _, err := scheduler.Register("@every 1s", asynq.NewTask("report", nil)); err != nil {
			return err
		}
		if err := scheduler.Start(); err != nil {
			return err
		}
		defer scheduler.Shutdown()
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

func TestAsynqOneTaskPerOrder(t *testing.T) {
	redis := asynq.RedisClientOpt{Addr: miniredis.RunT(t).Addr()}
	cluster := mortisetest.New(t, 2)
	var now, most atomic.Int64
	done := make(chan bool, 2)
	for i := range 2 {
		config := workers()
		config.LogLevel, config.DelayedTaskCheckInterval = asynq.FatalLevel, 100*time.Millisecond
		mux := asynq.NewServeMux()
		mux.Use(onePerOrder(cluster.Node(i)))
		mux.HandleFunc("charge", func(ctx context.Context, _ *asynq.Task) error {
			if token, locked := mortise.TokenFrom(ctx); !locked || token == 0 {
				t.Error("no token")
			}
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(2500 * time.Millisecond) // more than two retries of the other task
			done <- true
			return nil
		})
		server := asynq.NewServer(redis, config)
		if err := server.Start(mux); err != nil {
			t.Fatal(err)
		}
		defer server.Shutdown()
	}
	client := asynq.NewClient(redis)
	defer func() { _ = client.Close() }()
	for range 2 {
		// If the retries counted, the second one would archive the task.
		if _, err := client.Enqueue(asynq.NewTask("charge", []byte("42")), asynq.MaxRetry(1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("a task was not processed within 30 s, want 6 s")
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d tasks of one order at a time", most.Load())
	}
}

func TestAsynqOneScheduler(t *testing.T) {
	redis := asynq.RedisClientOpt{Addr: miniredis.RunT(t).Addr()}
	cluster := mortisetest.New(t, 3)
	inspector := asynq.NewInspector(redis)
	defer func() { _ = inspector.Close() }()
	schedulers := func() int {
		entries, err := inspector.SchedulerEntries()
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for i := range 3 {
		o := &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel, HeartbeatInterval: 200 * time.Millisecond}
		go func() { ended <- schedule(ctx, cluster.Node(i), redis, o) }()
	}
	cluster.Await("asynq/scheduler", 1, 2)
	await(t, "one scheduler", func() bool { return schedulers() == 1 })
	cancel()
	for range 3 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// await waits until is returns true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s, want 4 s", what)
		}
	}
}
