package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

func TestConfigNamesEveryMistake(t *testing.T) {
	_, err := New(Config{})
	for _, want := range []string{"Identity.Cluster", "Identity.Instance", "Listener", "Dial", "Handler"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named: %v", want, err)
		}
	}
}

// gRPC's server cuts off clients that ping more often than its policy allows, after some pings. An hour of silence must not cost a link.
func TestAnHourOfSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.send(b, "x")
		c.send(a, "x")
		x, y := streamPair(t, a, b)
		synctest.Wait()
		a.seen()
		b.seen()
		time.Sleep(time.Hour)
		a.send(b, "y")
		b.wantCommands("after an hour", a, "y")
		for _, n := range []*node{a, b, c} {
			if got := n.seen(); len(got) != 0 {
				t.Errorf("events: %+v", got)
			}
		}
		if got := a.Counts(); got.Links != 2 || got.Accepted != 1 {
			t.Errorf("%+v", got)
		}
		_, _ = x.Write([]byte("z"))
		buf := make([]byte, 1)
		if _, err := io.ReadFull(y, buf); err != nil || buf[0] != 'z' {
			t.Errorf("the byte stream: %v", err)
		}
	})
}

// A peer that falls silent (its machine lost power, or the network swallows everything) is found out by keepalive, on both sides.
func TestSilentPeerIsFoundOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.send(b, "x")
		synctest.Wait()
		b.seen()
		w.net.Cut("a", "b")
		time.Sleep(2*keepaliveTime + keepaliveTimeout)
		if ea, eb := a.seen(), b.seen(); len(ea) != 1 || len(eb) != 1 || ea[0].down == nil || eb[0].down == nil {
			t.Fatalf("a saw %+v\nb saw %+v", ea, eb)
		}
	})
}

func TestCloseInEveryState(t *testing.T) {
	states := map[string]func(t *testing.T, w *world, a, b *node){
		"new":     func(*testing.T, *world, *node, *node) {},
		"dialing": func(_ *testing.T, w *world, a, b *node) { w.net.Cut("a", "b"); a.send(b, "x"); synctest.Wait() },
		"greeting": func(t *testing.T, w *world, a, _ *node) {
			ln, err := w.net.Listen("mute:1")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ln.Close() })
			_ = a.Send(Peer{Instance: 5, Addr: "mute:1"}, Frame{Commands: []byte("x")})
			synctest.Wait()
		},
		"pausing": func(_ *testing.T, _ *world, a, _ *node) {
			_ = a.Send(Peer{Instance: 5, Addr: "nobody:1"}, Frame{Commands: []byte("x")})
			synctest.Wait()
		},
		"linked":   func(_ *testing.T, _ *world, a, b *node) { a.send(b, "x"); synctest.Wait() },
		"accepted": func(_ *testing.T, _ *world, a, b *node) { b.send(a, "x"); synctest.Wait() },
		"cut off":  func(_ *testing.T, w *world, a, b *node) { a.send(b, "x"); synctest.Wait(); w.net.Cut("a", "b") },
		"peer hangs": func(t *testing.T, _ *world, a, b *node) {
			gate := make(chan struct{})
			b.onFrame = func(Identity, Frame) { <-gate }
			t.Cleanup(func() { close(gate) })
			for a.Send(b.peer(), Frame{Commands: make([]byte, 1<<20)}) == nil {
				synctest.Wait()
			}
		},
		"accepted peer hangs": func(t *testing.T, _ *world, a, b *node) {
			gate := make(chan struct{})
			b.onFrame = func(Identity, Frame) { <-gate }
			t.Cleanup(func() { close(gate) })
			b.send(a, "x")
			synctest.Wait()
			for a.Send(b.peer(), Frame{Commands: make([]byte, 1<<20)}) == nil {
				synctest.Wait()
			}
		},
		"asking": func(t *testing.T, w *world, a, b *node) {
			b.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }
			for _, addr := range []string{"b:1", "a:1", "nobody:1"} {
				go func() { _, _ = a.Ask(context.Background(), addr, 0, nil) }()
				go func() { _, _ = b.Ask(context.Background(), addr, 0, nil) }()
			}
			synctest.Wait()
		},
		"gossiping": func(t *testing.T, _ *world, a, b *node) {
			_ = a.Gossip().WriteTo([]byte("x"), "b:1")
			_ = b.Gossip().WriteTo([]byte("x"), "a:1")
			_ = a.Gossip().WriteTo([]byte("x"), "nobody:1")
			streamPair(t, a, b)
			streamPair(t, b, a)
			go func() { _, _ = a.Gossip().DialStream(context.Background(), "b:1") }()
			go func() { _, _ = b.Gossip().DialStream(context.Background(), "a:1") }()
			synctest.Wait()
		},
		"sending a snapshot": func(_ *testing.T, w *world, a, b *node) {
			w.net.Cut("a", "b")
			go func() { _ = a.SendSnapshot(context.Background(), b.peer(), snapshotMessage(a, b, 1<<20)) }()
			synctest.Wait()
		},
		"identified anew": func(_ *testing.T, _ *world, a, b *node) {
			a.send(b, "x")
			synctest.Wait()
			again := a.identity
			again.Instance = 77
			a.Identify(again)
			_ = a.Send(b.peer(), Frame{Commands: []byte("y")})
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				prepare(t, w, a, b)
				linked := a.Counts().Links + a.Counts().Dialing
				a.seen()
				began := time.Now()
				var closing sync.WaitGroup
				for range 3 {
					closing.Go(func() { a.Close() })
				}
				closing.Wait()
				if took := time.Since(began); took > linger+time.Second/10 {
					t.Errorf("Close took %v", took)
				}
				downs := 0
				for _, e := range a.seen() {
					if e.down != nil {
						downs++
					}
				}
				if name != "identified anew" && downs != linked {
					t.Errorf("%d downs for %d links", downs, linked)
				}
				if c := a.Counts(); c.Links+c.Dialing+c.Ending+c.BackingOff+c.Shared+c.Packeters+c.Streams+c.Accepted != 0 {
					t.Errorf("left behind: %+v", c)
				}
				if err := a.Send(b.peer(), Frame{Commands: []byte("x")}); !errors.Is(err, ErrClosed) {
					t.Errorf("Send: %v", err)
				}
				if _, err := a.Ask(t.Context(), "b:1", 0, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("Ask: %v", err)
				}
				if err := a.SendSnapshot(t.Context(), b.peer(), &raftpb.Message{}); !errors.Is(err, ErrClosed) {
					t.Errorf("SendSnapshot: %v", err)
				}
				if err := a.Gossip().WriteTo(nil, "b:1"); !errors.Is(err, ErrClosed) {
					t.Errorf("WriteTo: %v", err)
				}
				if _, err := a.Gossip().DialStream(t.Context(), "b:1"); !errors.Is(err, ErrClosed) {
					t.Errorf("DialStream: %v", err)
				}
				a.Identify(a.identity)
				if _, err := w.net.Dialer("x")(t.Context(), "a:1"); err == nil {
					t.Error("the address still listens")
				}
			})
		})
	}
}

// Close does not wait out its second when the peers read.
func TestCloseIsQuickAndFlushes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		a.send(b, "x")
		c.send(a, "x")
		synctest.Wait()
		for range 100 {
			a.send(b, strings.Repeat("y", 10_000))
			a.send(c, strings.Repeat("z", 10_000))
		}
		began := time.Now()
		a.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		for _, n := range []*node{b, c} {
			text, downs := commands(n.seen(), 1)
			if len(text) < 1_000_000 || downs != 1 {
				t.Errorf("%d bytes, %d downs", len(text), downs)
			}
		}
	})
}

// A listener that fails does not take the port down with it.
func TestListenerThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.config.Listener.(net.Listener).Close()
		synctest.Wait()
		if !strings.Contains(a.log.String(), "the listener failed") {
			t.Errorf("the log says %q", a.log)
		}
		a.send(b, "x")
		b.wantCommands("dialing still works", a, "x")
	})
}
