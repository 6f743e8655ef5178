package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// inFakeTime runs a test in a bubble, with a cluster of n real nodes.
func inFakeTime(t *testing.T, n int, test func(t *testing.T, c *mortisetest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, mortisetest.New(t, n)) })
}

// faulty is a node whose next change of data fails in one of two ways.
type faulty struct {
	*mortise.Node
	mu     sync.Mutex // guards the fields below
	before error      // the next Put returns this error and does nothing
	after  error      // the next Put takes effect and returns this error
	puts   int
}

func (f *faulty) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.before, f.after = nil, nil
	f.puts++
	f.mu.Unlock()
	if before != nil {
		return 0, before
	}
	revision, err := f.Node.Put(ctx, key, data, revision)
	return revision, errors.Join(err, after)
}

func (f *faulty) fail(before, after error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

var errUnknown = errors.New("no answer")

// call is a call that may still wait.
type call struct {
	done chan struct{}
	err  error
}

func start(do func() error) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = do()
	}()
	return c
}

// waits fails the test if the call returns within a second.
func (c *call) waits(t *testing.T, what string) {
	t.Helper()
	select {
	case <-c.done:
		t.Fatalf("%s did not wait, and returned %v", what, c.err)
	case <-time.After(time.Second):
	}
}

// end waits for the call and returns its error. In fake time, a minute is enough for everything.
func (c *call) end(t *testing.T, what string) error {
	t.Helper()
	select {
	case <-c.done:
		return c.err
	case <-time.After(time.Minute):
		t.Fatalf("%s still waits", what)
		return nil
	}
}

// nothingLeft fails the test if the key has data.
func nothingLeft(t *testing.T, node *mortise.Node, key string) {
	t.Helper()
	if data, _, err := node.Get(t.Context(), key); err != nil || data != nil {
		t.Errorf("data of %s: %s, %v", key, data, err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
