package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"go.etcd.io/raft/v3/raftpb"
)

func TestFramesArriveInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "1 ")
		a.send(b, "2 ")
		b.wantCommands("queued while dialing", a, "1 2 ")
		a.send(b, "3 ")
		b.wantCommands("on the link", a, "3 ")
		if err := b.Send(nodeid.Endpoint{ID: id(1)}, Frame{Commands: []byte("back")}); err != nil {
			t.Fatal(err)
		}
		a.wantCommands("the other way, without an address", b, "back")
		b.Close()
		synctest.Wait()
		if _, downs := commands(a.seen(), id(2)); downs != 1 {
			t.Fatalf("%d downs", downs)
		}
		if c := a.Counts(); c.Links+c.Dialing+c.Ending != 0 {
			t.Fatalf("left behind: %+v", c)
		}
	})
}

func TestAllKindsTravelInOneFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		m := raftMessage(a, b, 9)
		for _, f := range []Frame{{Commands: []byte("c")}, {Replies: []byte("p")}, {Retired: true},
			{Raft: []*raftpb.Message{m}}, {Renewals: []byte("r")}} {
			if err := a.Send(b.peer(), f); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		events := b.seen()
		if len(events) != 1 {
			t.Fatalf("%d events, want one frame: %+v", len(events), events)
		}
		got, from := events[0].frame, events[0].from
		if string(got.Renewals) != "r" || string(got.Commands) != "c" || string(got.Replies) != "p" || !got.Retired ||
			len(got.Raft) != 1 || got.Raft[0].GetIndex() != 9 || string(got.Raft[0].Entries[0].Data) != "entry 9" {
			t.Fatalf("got %+v", got)
		}
		if from != a.identity {
			t.Fatalf("from %+v, want %+v", from, a.identity)
		}
	})
}

func TestCallersShareAFrame(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		before := a.Counts().FramesSent
		start := make(chan struct{})
		var callers sync.WaitGroup
		for range 2000 {
			callers.Go(func() {
				<-start
				a.send(b, "x")
			})
		}
		synctest.Wait()
		close(start)
		callers.Wait()
		synctest.Wait()
		if n := a.Counts().FramesSent - before; n < 1 || n > 20 {
			t.Fatalf("2,000 callers at once took %d frames", n)
		}
		b.wantCommands("nothing is lost", a, strings.Repeat("x", 2001))
	})
}

func TestDownComesAfterTheLastFrame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for round := range 20 { // each side dials in half of the rounds
			a, b := w.node(fmt.Sprint("a", round), 1), w.node(fmt.Sprint("b", round), 2)
			if a.Linked(id(2)) || b.Linked(id(1)) {
				t.Fatal("linked before either side has dialed")
			}
			if round%2 == 0 {
				b.send(a, "hello ")
				a.wantCommands("link", b, "hello ")
			} else {
				a.send(b, "hello ")
				b.wantCommands("link", a, "hello ")
			}
			if !a.Linked(id(2)) || !b.Linked(id(1)) {
				t.Fatal("not linked")
			}
			b.seen()
			for i := range 100 {
				a.send(b, fmt.Sprint(i, " "))
			}
			if err := a.Send(b.peer(), Frame{Retired: true}); err != nil {
				t.Fatal(err)
			}
			a.Close()
			synctest.Wait()
			events := b.seen()
			last := events[len(events)-1]
			text, downs := commands(events, id(1))
			if downs != 1 || last.down == nil || !strings.HasSuffix(text, "99 ") ||
				!events[len(events)-2].frame.Retired {
				t.Fatalf("round %d: %d downs, last %+v, text %q", round, downs, last, text)
			}
			if b.Linked(id(1)) {
				t.Fatal("linked after the Down")
			}
			b.Close()
		}
	})
}

func TestFailedDialGivesOneDownAndAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, longest)
		nobody := nodeid.Endpoint{ID: id(9), Addr: "nobody:1"}
		a.Prefer([]string{nobody.Addr})
		delays := []time.Duration{50, 100, 200, 400, 500, 500}
		for i, delay := range delays {
			if err := a.Send(nobody, Frame{Commands: []byte("x")}); err != nil {
				t.Fatalf("dial %d: %v", i, err)
			}
			synctest.Wait()
			events := a.seen()
			if len(events) != 1 || !errors.Is(events[0].down, ErrRefused) ||
				events[0].from != (Identity{Instance: id(9), Addr: "nobody:1"}) {
				t.Fatalf("dial %d: %+v", i, events)
			}
			time.Sleep(delay*time.Millisecond - 1)
			if err := a.Send(nobody, Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
				t.Fatalf("in pause %d: %v", i, err)
			}
			time.Sleep(1)
		}
		if err := a.Send(nodeid.Endpoint{ID: id(9), Addr: "elsewhere:1"}, Frame{Commands: []byte("x")}); err != nil {
			t.Fatalf("another address needs no pause: %v", err)
		}
		time.Sleep(time.Minute)
		if c := a.Counts(); c != (Counts{}) {
			t.Fatalf("left behind: %+v", c)
		}
		a.seen()
		if err := a.Send(nodeid.Endpoint{ID: id(9)}, Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
			t.Fatalf("without an address: %v", err)
		}
		to := nodeid.Endpoint{ID: id(1), Addr: "a:1"}
		if err := a.Send(to, Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
			t.Fatalf("to itself: %v", err)
		}
	})
}

func TestDialsOfAnotherInstanceAndAnotherCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		foreign := w.node("f", 3, func(c *Config) { c.Cluster = "theirs" })
		try := func(why string, to nodeid.Endpoint, want error) {
			t.Helper()
			if err := a.Send(to, Frame{Commands: []byte("x")}); err != nil {
				t.Fatal(why, err)
			}
			synctest.Wait()
			events := a.seen()
			if len(events) != 1 || !errors.Is(events[0].down, want) {
				t.Fatalf("%s: %+v, want a Down with %v", why, events, want)
			}
		}
		try("another instance", nodeid.Endpoint{ID: id(7), Addr: "b:1"}, ErrOther)
		try("another cluster", foreign.peer(), ErrForeign)
		time.Sleep(15 * time.Second)
		for i := range 20 {
			_ = foreign.Send(a.peer(), Frame{Commands: []byte("x")})
			time.Sleep(time.Duration(i) * 10 * time.Millisecond)
		}
		synctest.Wait()
		if n := strings.Count(a.log.String(), "refused a connection"); n == 0 || n > 2 {
			t.Fatalf("%d log lines about many refused streams:\n%s", n, a.log)
		}
		if !strings.Contains(a.log.String(), `this is cluster \"test\", the peer belongs to \"theirs\"`) {
			t.Fatalf("the log does not say what is wrong:\n%s", a.log)
		}
		if n := len(a.seen()) + len(b.seen()); n != 0 {
			t.Fatalf("%d events reached the handlers", n)
		}
	})
}

func TestNewStreamReplacesOneThatOnlyThePeerStillSees(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var vanished atomic.Bool
		vanishing := dialsWith(func(conn net.Conn) net.Conn {
			if vanished.Load() {
				return conn
			}
			return &vanishingConn{Conn: conn, vanished: &vanished, closed: make(chan struct{})}
		})
		a, b := w.node("a", 1, vanishing), w.node("b", 2)
		a.send(b, "1")
		b.wantCommands("link", a, "1")
		vanished.Store(true)
		a.Port.mu.Lock()
		old := a.links[id(2)]
		a.Port.mu.Unlock()
		old.stream.kill()
		synctest.Wait()
		if _, downs := commands(a.seen(), id(2)); downs != 1 || b.Counts().Links != 1 {
			t.Fatalf("the test is wrong: a saw %d downs, b has %d links", downs, b.Counts().Links)
		}
		time.Sleep(pauseFirst)
		a.send(b, "2")
		synctest.Wait()
		events := b.seen()
		if len(events) != 2 || events[0].down == nil || string(events[1].frame.Commands) != "2" {
			t.Fatalf("want a Down, then the frame: %+v", events)
		}
	})
}

// vanishingConn is the connection of a machine that loses power. The other side gets no error.
type vanishingConn struct {
	net.Conn
	vanished *atomic.Bool
	once     sync.Once
	closed   chan struct{}
}

func (c *vanishingConn) Write(b []byte) (int, error) {
	if c.vanished.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *vanishingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	if c.vanished.Load() {
		return c.Conn.SetReadDeadline(time.Now())
	}
	return c.Conn.Close()
}

// The order must not depend on the duration of Down or on the side that dialed.
func TestNoFrameBeforeTheDown(t *testing.T) {
	for _, dialer := range []string{"peer", "we"} {
		t.Run(dialer, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				a.send(b, "1")
				b.wantCommands("link", a, "1")
				gate := make(chan struct{})
				b.onDown = func() { <-gate }
				a.Port.mu.Lock()
				old := a.links[id(2)]
				a.Port.mu.Unlock()
				old.stream.kill()
				time.Sleep(2 * pauseFirst)
				if dialer == "peer" {
					a.send(b, "2")
				} else {
					b.send(a, "-")
					time.Sleep(2 * pauseFirst)
					_ = a.Send(nodeid.Endpoint{ID: id(2)}, Frame{Commands: []byte("2")})
				}
				time.Sleep(time.Second)
				if got := b.seen(); len(got) != 0 {
					t.Fatalf("before the Down: %+v", got)
				}
				close(gate)
				if dialer == "we" {
					time.Sleep(time.Second)
					a.send(b, "2")
				}
				synctest.Wait()
				events := b.seen()
				if len(events) != 2 || events[0].down == nil || string(events[1].frame.Commands) != "2" {
					t.Fatalf("want the Down, then the frame: %+v", events)
				}
			})
		})
	}
}

func TestIdentifyTellsPeersBeforeAnythingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		newborn := func(c *Config) { c.Self.Group, c.Self.Raft = 0, 0 }
		a, b := w.node("a", 1, newborn), w.node("b", 2)
		if err := a.Send(b.peer(), Frame{Commands: []byte("x")}); !errors.Is(err, ErrGroup) {
			t.Fatalf("a node without a group sent a frame: %v", err)
		}
		a.self.Group = 7
		a.identify()
		a.send(b, "1")
		b.wantCommands("with a group", a, "1")
		a.self.Raft = 55
		a.identify()
		if err := a.Send(b.peer(), Frame{Raft: []*raftpb.Message{raftMessage(a, b, 1)}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events := b.seen()
		if len(events) != 1 || events[0].from.Raft != 55 || len(events[0].frame.Raft) != 1 {
			t.Fatalf("got %+v", events)
		}
	})
}

func TestAnotherInstanceEndsAllLinks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.send(b, "1")
		c.send(a, "1")
		_ = a.Send(nodeid.Endpoint{ID: id(9), Addr: "nobody:1"}, Frame{Commands: []byte("x")})
		synctest.Wait()
		a.seen()
		b.seen()
		a.self.Key = key(100)
		a.identify()
		_ = c.Send(nodeid.Endpoint{ID: id(1)}, Frame{Commands: []byte("for the old incarnation")})
		if err := a.Send(b.peer(), Frame{Commands: []byte("new")}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events := a.seen()
		if text, _ := commands(events, id(3)); text != "" {
			t.Fatalf("the new incarnation got %q", text)
		}
		downs := map[nodeid.ID]int{}
		for _, e := range events {
			downs[e.from.Instance]++
		}
		if len(events) != 2 || downs[id(2)] != 1 || downs[id(3)] != 1 {
			t.Fatalf("want one Down each: %+v", events)
		}
		events = b.seen()
		if len(events) != 2 || events[0].down == nil && events[1].down == nil {
			t.Fatalf("b saw %+v", events)
		}
		if text, _ := commands(events, id(100)); text != "new" {
			t.Fatalf("b got %q from the new incarnation", text)
		}
		time.Sleep(time.Minute)
		if err := c.Send(nodeid.Endpoint{ID: id(1), Addr: "a:1"}, Frame{Commands: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		c.seen()
		synctest.Wait()
		other, ok := errors.AsType[*OtherError](c.seen()[0].down)
		if !ok || other.Answered != id(100) || other.Asked != id(1) {
			t.Fatalf("got %v", other)
		}
	})
}

func TestNewLifeHearsNothingOfTheOld(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		gate := make(chan struct{})
		a.onFrame = func(Identity, Frame) { <-gate }
		for _, text := range []string{"1", "2", "3"} {
			b.send(a, text)
			synctest.Wait()
		}
		a.self.Key = key(100)
		a.identify()
		close(gate)
		synctest.Wait()
		if text, downs := commands(a.seen(), id(2)); text != "1" || downs != 1 {
			t.Fatalf("got %q and %d downs, want only what had begun", text, downs)
		}
	})
}
