package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"go.etcd.io/raft/v3/raftpb"
)

func realNode(t *testing.T, n int, change ...func(*Config)) *node {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return startNode(t, ln, dial, instance(n, ln.Addr().String()), change...)
}

// Many callers on both sides send concurrently, and the dials cross. Everything arrives once and in
// few frames, and the data of each caller arrives in order. All goroutines end.
func TestRealSockets(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		a, b := realNode(t, 1), realNode(t, 2)
		const callers, each = 50, 100
		var sending sync.WaitGroup
		for caller := range callers {
			for _, pair := range [][2]*node{{a, b}, {b, a}} {
				sending.Go(func() {
					for i := range each {
						pair[0].send(pair[1], fmt.Sprintf("%d:%d ", caller, i))
					}
				})
			}
		}
		sending.Wait()
		for _, pair := range [][2]*node{{a, b}, {b, a}} {
			next := map[string]int{}
			total := 0
			eventually(t, "not everything arrives", func() bool {
				text, downs := commands(pair[1].seen(), pair[0].identity.Instance)
				for _, word := range strings.Fields(text) {
					caller, number, _ := strings.Cut(word, ":")
					if number != fmt.Sprint(next[caller]) {
						t.Fatalf("caller %s: got %s, want %d", caller, number, next[caller])
					}
					next[caller]++
					total++
				}
				if downs > 0 {
					t.Fatal("a Down")
				}
				return total == callers*each
			})
			if frames := pair[0].Counts().FramesSent; frames == 0 || frames > callers*each/2 {
				t.Errorf("%d frames for %d calls", frames, callers*each)
			}
		}
		if a.Counts().Links != 1 || b.Counts().Links != 1 {
			t.Errorf("links: %d, %d", a.Counts().Links, b.Counts().Links)
		}
		_, _, _ = a.Ask(t.Context(), b.identity.Addr, id(2), nil)
		_ = b.Gossip().WriteTo([]byte("x"), a.identity.Addr)
		a.Close()
		b.Close()
	}
	eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestRealStrangers(t *testing.T) {
	a := realNode(t, 1)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	if _, _, err := a.Ask(t.Context(), strings.TrimPrefix(web.URL, "http://"), nodeid.ID{}, nil); !errors.Is(err,
		ErrForeign) {
		t.Errorf("a web server: %v", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	if _, _, err := a.Ask(t.Context(), free.Addr().String(), nodeid.ID{}, nil); !errors.Is(err, ErrRefused) {
		t.Errorf("no listener: %v", err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	if resp, err := client.Get("http://" + a.identity.Addr + "/"); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("we serve web pages")
		}
	}
	b := realNode(t, 2)
	b.send(a, "x")
	eventually(t, "the port no longer works", func() bool { text, _ := commands(a.seen(), id(2)); return text == "x" })
}

func echo(t testing.TB, n *node, to nodeid.Endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onFrame = func(_ Identity, f Frame) {
		if err := n.Send(to, Frame{Replies: f.Commands}); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	x, y, back := benchPair(b)
	command := []byte("0123456789abc")
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(y.peer(), Frame{Commands: command}); err != nil {
			b.Fatal(err)
		}
		<-back
	}
}

func BenchmarkThroughput(b *testing.B) {
	x, y, back := benchPair(b)
	command := []byte("0123456789abc")
	var inFlight atomic.Int64
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(y.peer(), Frame{Commands: command}); err != nil {
			b.Fatal(err)
		}
		for inFlight.Add(1) > 1024 {
			inFlight.Add(-int64(<-back/len(command)) - 1)
		}
	}
}

func benchPair(b *testing.B) (x, y *node, back chan int) {
	start := func(i int) *node {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		n := &node{self: instance(i, ln.Addr().String())}
		n.identity = n.self.seen(1)
		n.Port, err = New(Config{Cluster: "test", Self: n.self, Listener: ln, Handler: (*benchHandler)(n),
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.Port.Close() })
		return n
	}
	x, y = start(1), start(2)
	back = make(chan int, 4096)
	x.onFrame = func(_ Identity, f Frame) { back <- len(f.Replies) }
	echo(b, y, x.peer())
	return x, y, back
}

type benchHandler node

func (n *benchHandler) Frame(from Identity, f Frame)                    { n.onFrame(from, f) }
func (n *benchHandler) Down(Identity, error)                            {}
func (n *benchHandler) MaySendSnapshot(Identity, *raftpb.Message) error { return nil }
func (n *benchHandler) Snapshot(Identity, *raftpb.Message) error        { return nil }
