package transport

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// mute is a connection whose writes fail after some time, while its reads block forever.
type mute struct {
	net.Conn
	now *atomic.Bool
}

func (c mute) Write(b []byte) (int, error) {
	if c.now.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// If the connection stayed open, gRPC would retry every new call without a pause. In a bubble, time
// would not advance during the retries, so this test uses real time.
func TestFailedWriteEndsTheConnection(t *testing.T) {
	w := newWorld(t)
	var now atomic.Bool
	a := w.node("a", 1, dialsWith(func(conn net.Conn) net.Conn { return mute{conn, &now} }))
	w.node("b", 2)
	if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil {
		t.Fatal(err)
	}
	now.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	began := time.Now()
	for try := range 2 { // the first call may end by itself, the second does not
		_, _, err := a.Ask(ctx, "b:1", id(2), nil)
		if !errors.Is(err, ErrSilent) || ctx.Err() != nil {
			t.Fatalf("question %d, over a connection that cannot write, took %v: %v", try, time.Since(began), err)
		}
	}
	now.Store(false)
	if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil {
		t.Fatal(err)
	}
}
