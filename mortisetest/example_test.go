package mortisetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/mortisetest"
)

// standIn is a testing.TB for these examples. In a test, pass the test's own t.
type standIn struct {
	testing.TB // nil: the examples need only the methods below
	ctx        context.Context
	cancel     context.CancelFunc
	failed     bool
	cleanups   []func()
}

func newT() *standIn {
	ctx, cancel := context.WithCancel(context.Background())
	return &standIn{ctx: ctx, cancel: cancel}
}

func (t *standIn) end() {
	t.cancel()
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

func (t *standIn) Helper()                  {}
func (t *standIn) Name() string             { return "example" }
func (t *standIn) Context() context.Context { return t.ctx }
func (t *standIn) Output() io.Writer        { return io.Discard }
func (t *standIn) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
func (t *standIn) Failed() bool             { return t.failed }
func (t *standIn) Errorf(format string, args ...any) {
	t.failed = true
	fmt.Printf(format+"\n", args...)
}
func (t *standIn) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// A lock is lost: the holder is notified, and the next waiter is granted the lock.
func Example() {
	t := newT() // a test uses its own t
	defer t.end()
	cluster := mortisetest.New(t, 3)

	mine, err := cluster.Node(0).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatalf("%v", err)
	}
	cluster.Lose(0)
	<-mine.Done()
	fmt.Println("first:", mine.Err())

	theirs, err := cluster.Node(1).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatalf("%v", err)
	}
	fmt.Println("second:", theirs.Err(), theirs.Token() > mine.Token())
	fmt.Println("unlocked:", theirs.Unlock(t.Context()))
	// Output:
	// first: mortise: the lock was lost
	// second: <nil> true
	// unlocked: <nil>
}

// The test may change every field of the configuration except those of the network.
func ExampleNewWith() {
	t := newT()
	defer t.end()
	cluster := mortisetest.NewWith(t, 1, mortisetest.Options{
		Configure: func(i int, c *mortise.Config) {
			c.Name, c.SessionTTL = fmt.Sprintf("orders-%d", i),
				10*time.Second
		},
	})

	lock, err := cluster.Node(0).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatalf("%v", err)
	}
	fmt.Println("held by", cluster.AwaitHolder("orders/42", 0).Queue[0].Holder)
	fmt.Println("unlocked:", lock.Unlock(t.Context()))
	// Output:
	// held by orders-0
	// unlocked: <nil>
}

// A holder is stopped for longer than its lease. It does not notice that another node has been
// granted the lock, so only the token protects the resource.
func ExampleCluster_Pause() {
	t := newT()
	defer t.end()
	cluster := mortisetest.New(t, 3)
	var mark fence.Mark

	mine, err := cluster.Node(0).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatalf("%v", err)
	}
	cluster.Pause(0)
	theirs, err := cluster.Node(1).Lock(t.Context(), "orders/42")
	if err != nil {
		t.Fatalf("%v", err)
	}
	fmt.Println("second writes:", mark.Advance(t.Context(), "orders/42", theirs.Token()))
	fmt.Println("first believes:", mine.Err())
	fmt.Println("first writes, and is refused:", errors.Is(mark.Advance(t.Context(), "orders/42", mine.Token()),
		fence.ErrStale))
	cluster.Resume(0)
	fmt.Println("first knows:", mine.Err())
	fmt.Println("unlocked:", theirs.Unlock(t.Context()))
	// Output:
	// second writes: <nil>
	// first believes: <nil>
	// first writes, and is refused: true
	// first knows: mortise: the lock was lost
	// unlocked: <nil>
}

// The leader is killed, and the other two nodes still grant locks. Then the killed node is
// restarted.
func ExampleCluster_Kill() {
	t := newT()
	defer t.end()
	cluster := mortisetest.New(t, 3)
	work := func(i int) {
		fmt.Println(cluster.Node(i).Do(t.Context(), "orders/42",
			func(context.Context, mortise.Token) error { return nil }))
	}

	leader, other := cluster.Leader(), cluster.Follower()
	cluster.Kill(leader)
	work(other)
	cluster.Start(leader)
	cluster.Ready()
	work(leader)
	// Output:
	// <nil>
	// <nil>
}

// Three callers queue in a known order without a sleep. A cluster of one is enough for this test,
// and is ready within milliseconds.
func ExampleCluster_Await() {
	t := newT()
	defer t.end()
	cluster := mortisetest.New(t, 1)

	done := make(chan struct{})
	for i, name := range []string{"first", "second", "third"} {
		go func() {
			lock, err := cluster.Node(0).Acquire(t.Context(), mortise.Request{Key: "orders/42", Value: name})
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			<-done
			_ = lock.Unlock(context.Background())
		}()
		cluster.Await("orders/42", 1, i) // caller i holds the lock or is in the queue
	}
	for _, standing := range cluster.Await("orders/42", 1, 2).Queue {
		fmt.Println(standing.Value)
	}
	close(done)
	cluster.Await("orders/42", 0, 0)
	// Output:
	// first
	// second
	// third
}
