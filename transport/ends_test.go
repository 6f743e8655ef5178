package transport

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fill sends more bytes than the network can buffer, so that the sender blocks in the middle of a
// frame.
func fill(t *testing.T, from *node, to nodeid.Endpoint) {
	t.Helper()
	for range 5 {
		if err := from.Send(to, Frame{Commands: make([]byte, 1<<20)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
}

// A slow peer closes normally and then loses power. It counts as lost, although this side's sender
// is blocked because the peer has not read everything.
func TestGoodbyeThenPowerLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var vanished atomic.Bool
		a, b := w.node("a", 1, dialsWith(func(conn net.Conn) net.Conn {
			return &vanishingConn{Conn: conn, vanished: &vanished, closed: make(chan struct{})}
		})), w.node("b", 2)
		a.send(b, "x")
		b.wantCommands("link", a, "x")
		gate := make(chan struct{})
		a.onFrame = func(Identity, Frame) { <-gate }
		fill(t, b, a.peer())
		go a.Close()
		synctest.Wait() // the close frame has arrived
		vanished.Store(true)
		time.Sleep(10 * time.Minute)
		if _, downs := commands(b.seen(), id(1)); downs != 1 || b.Linked(id(1)) {
			t.Errorf("%d downs, linked: %v", downs, b.Linked(id(1)))
		}
		close(gate)
		b.Close()
	})
}

// A peer that never reads counts as lost after its last frame, whether that frame is correct or
// not.
func TestLastWordOfAPeerThatDoesNotRead(t *testing.T) {
	for name, length := range map[string]uint32{"goodbye": kindClose, "garbage": 100 << 20} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				s, _ := a.link("b:1", id(2), 1)
				synctest.Wait()
				fill(t, b, nodeid.Endpoint{ID: id(1)})
				if err := s.mark(length); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * linger)
				if _, downs := commands(b.seen(), id(1)); downs != 1 || b.Linked(id(1)) {
					t.Errorf("%d downs, %+v", downs, b.Counts())
				}
				s.kill()
			})
		})
	}
}

// If a write fails because the peer has closed the connection, the data that the peer sent before
// closing is still delivered.
func TestWhatHasArrivedIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "0 ")
		b.wantCommands("link", a, "0 ")
		b.onFrame = func(Identity, Frame) {
			time.Sleep(3 * maxLinger)
			_ = b.Send(nodeid.Endpoint{ID: id(1)}, Frame{Replies: []byte("ok")})
		}
		for range 6 {
			a.send(b, strings.Repeat("w", 20_000)+" ")
			synctest.Wait()
		}
		a.Close()
		time.Sleep(time.Minute)
		text, downs := commands(b.seen(), id(1))
		if n := strings.Count(text, " "); n != 6 || downs != 1 {
			t.Errorf("%d of 6 frames, %d downs", n, downs)
		}
	})
}

func TestUnencodableFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		b.wantCommands("link", a, "x")
		a.self.Addr = "\xff:1" // not UTF-8
		a.identify()
		synctest.Wait()
		_, ours := commands(a.seen(), id(2))
		if _, theirs := commands(b.seen(), id(1)); ours != 1 || theirs != 1 || a.Linked(id(2)) {
			t.Errorf("%d and %d downs, linked: %v", ours, theirs, a.Linked(id(2)))
		}
	})
}

// After a failed write a link ends as soon as all arrived data is read, even if its next read would
// block forever.
func TestFailedWriteBesideASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var now atomic.Bool
		a, b := w.node("a", 1, dialsWith(func(conn net.Conn) net.Conn { return mute{conn, &now} })), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		a.onFrame = func(Identity, Frame) { time.Sleep(3 * maxLinger) }
		b.send(a, "y")
		synctest.Wait()
		now.Store(true)
		a.send(b, "z")
		time.Sleep(5 * maxLinger)
		if text, downs := commands(a.seen(), id(2)); text != "y" || downs != 1 {
			t.Errorf("%q arrived, %d downs", text, downs)
		}
	})
}

// lateListener returns another silent connection when the first one is closed.
type lateListener struct {
	net.Listener
	once sync.Once
	all  chan net.Conn
	over chan error
}

func newLateListener(l net.Listener) *lateListener {
	late := &lateListener{Listener: l, all: make(chan net.Conn, 1), over: make(chan error, 1)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				late.over <- err
				return
			}
			late.all <- lateConn{conn, late}
		}
	}()
	return late
}

func (l *lateListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.all:
		return conn, nil
	case err := <-l.over:
		return nil, err
	}
}

type lateConn struct {
	net.Conn
	listener *lateListener
}

func (c lateConn) Close() error {
	c.listener.once.Do(func() {
		late, _ := net.Pipe()
		c.listener.all <- late
		time.Sleep(time.Millisecond) // fake time, until the connection is accepted
	})
	return c.Conn.Close()
}

func TestCloseBesideALateStranger(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, func(c *Config) { c.Listener = newLateListener(c.Listener) })
		stranger := w.raw("a:1")
		synctest.Wait()
		began := time.Now()
		a.Close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		stranger.Close()
	})
}
