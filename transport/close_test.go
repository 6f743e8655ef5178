package transport

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"go.etcd.io/raft/v3/raftpb"
)

// linkStates returns functions that bring the links of a into the states in which the test closes
// a.
func linkStates() map[string]func(t *testing.T, w *world, a, b *node) {
	return map[string]func(t *testing.T, w *world, a, b *node){
		"new":     func(*testing.T, *world, *node, *node) {},
		"dialing": func(_ *testing.T, w *world, a, b *node) { w.net.Cut("a", "b"); a.send(b, "x"); synctest.Wait() },
		"greeting": func(t *testing.T, w *world, a, _ *node) {
			ln, err := w.net.Listen("mute:1")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ln.Close() })
			_ = a.Send(nodeid.Endpoint{ID: id(5), Addr: "mute:1"}, Frame{Commands: []byte("x")})
			synctest.Wait()
		},
		"pausing": func(_ *testing.T, _ *world, a, _ *node) {
			_ = a.Send(nodeid.Endpoint{ID: id(5), Addr: "nobody:1"}, Frame{Commands: []byte("x")})
			synctest.Wait()
		},
		"linked":   func(_ *testing.T, _ *world, a, b *node) { a.send(b, "x"); synctest.Wait() },
		"accepted": func(_ *testing.T, _ *world, a, b *node) { b.send(a, "x"); synctest.Wait() },
		"cut off":  func(_ *testing.T, w *world, a, b *node) { a.send(b, "x"); synctest.Wait(); w.net.Cut("a", "b") },
	}
}

// otherStates is like linkStates, but its functions make a peer hang, or start questions, gossip or
// snapshots.
func otherStates() map[string]func(t *testing.T, w *world, a, b *node) {
	return map[string]func(t *testing.T, w *world, a, b *node){
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
			b.ask = func(ctx context.Context, _ Identity, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, nil }
			for _, addr := range []string{"b:1", "a:1", "nobody:1"} {
				go func() { _, _, _ = a.Ask(context.Background(), addr, nodeid.ID{}, nil) }()
				go func() { _, _, _ = b.Ask(context.Background(), addr, nodeid.ID{}, nil) }()
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
			a.self.Key = key(77)
			a.identify()
			_ = a.Send(b.peer(), Frame{Commands: []byte("y")})
		},
	}
}

func TestCloseInEveryState(t *testing.T) {
	states := linkStates()
	maps.Copy(states, otherStates())
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) { closeWhile(t, w, name, prepare) })
		})
	}
}

func closeWhile(t *testing.T, w *world, name string, prepare func(t *testing.T, w *world, a, b *node)) {
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
	wantClosed(t, w, a, b)
}

func wantClosed(t *testing.T, w *world, a, b *node) {
	t.Helper()
	if err := a.Send(b.peer(), Frame{Commands: []byte("x")}); !errors.Is(err, ErrClosed) {
		t.Errorf("Send: %v", err)
	}
	if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrClosed) {
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
	a.Identify(a.self)
	if _, err := w.net.Dialer("x")(t.Context(), "a:1"); err == nil {
		t.Error("the address still listens")
	}
}
