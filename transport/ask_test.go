package transport

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func TestAsk(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		var from Identity
		b.ask = func(_ context.Context, asker Identity, question []byte) ([]byte, error) {
			from = asker
			if string(question) == "hard" {
				return nil, errors.New("do not know")
			}
			return []byte("re: " + string(question)), nil
		}
		for _, to := range []nodeid.ID{{}, id(2)} {
			answer, answered, err := a.Ask(t.Context(), "b:1", to, []byte("who"))
			if string(answer) != "re: who" || err != nil || from != a.identity || answered != b.identity {
				t.Fatalf("%q of %v, %v, from %v", answer, answered, err, from)
			}
		}
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), []byte("hard")); !errors.Is(err, ErrSilent) ||
			strings.Contains(err.Error(), "do not know") {
			t.Errorf("no answer: %v", err)
		}
		_, _, err := a.Ask(t.Context(), "b:1", id(3), []byte("who"))
		if other, ok := errors.AsType[*OtherError](err); !ok || !errors.Is(err, ErrOther) ||
			other.Answered != id(2) || other.Asked != id(3) {
			t.Errorf("another instance: %v", err)
		}
		if answer, _, err := a.Ask(t.Context(), "a:1", nodeid.ID{}, []byte("me")); string(answer) != "re: me" {
			t.Errorf("asking itself: %q, %v", answer, err)
		}
		if _, _, err := a.Ask(t.Context(), "[fe80::1%eth0]:1", nodeid.ID{}, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("an address with a zone: %v", err)
		}
		w.node("[fe80::1%eth0]", 7)
		if _, _, err := a.Ask(t.Context(), "[fe80::1%eth0]:1", id(7), nil); err != nil {
			t.Errorf("an address with a zone: %v", err)
		}
		if n := a.Counts().Shared; n != 3 {
			t.Errorf("%d connections for three addresses", n)
		}
		time.Sleep(5 * time.Minute)
		if n := a.Counts().Shared; n != 0 {
			t.Errorf("%d connections are kept idle", n)
		}
	})
}

func (w *world) serve(addr string, f func(net.Conn)) {
	ln, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	var conns sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			conns.Go(func() { f(conn) })
		}
	})
	w.t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		conns.Wait()
	})
}

func (w *world) serveGRPC(addr string) {
	ln, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(ln) }()
	w.t.Cleanup(server.Stop)
}

// servePeer runs a gRPC server as instance n. It exchanges hellos correctly, and answers with the
// function answer.
func (w *world) servePeer(addr string, n int, answer func(asked) error) {
	ln, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	f := forge(n)
	f.config.Listener = ln
	f.listener = newListener(&f.config)
	server := grpc.NewServer(append(f.serverOptions(), grpc.Creds(newHandshaker(&f.table)))...)
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Ask", ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error {
				return answer(&grpc.GenericServerStream[wire.Question, wire.Answer]{ServerStream: stream})
			},
		}}}, nil)
	go func() { _ = server.Serve(f.listener) }()
	w.t.Cleanup(server.Stop)
}

// The founding of a group depends on errors that distinguish refusals from silence.
func TestAskTellsNoFromSilence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		w.node("foreign", 2, func(c *Config) { c.Cluster = "theirs" })
		w.serve("silent:1", func(net.Conn) {})
		w.serve("hangs-up:1", func(c net.Conn) { c.Close() })
		w.serve("http:1", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 100))
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		})
		w.serve("ssh:1", func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-x\r\n")) })
		w.serveGRPC("grpc:1")
		newer := forge(5)
		w.serve("newer:1", func(conn net.Conn) { // later version that refuses our version
			newer.accept(conn, func(heard) *wire.Greeting {
				return &wire.Greeting{Refusal: &wire.Refusal{Reason: wire.Refusal_VERSION, Text: "3 here, 2 there"}}
			})
		})
		w.serve("newest:1", func(conn net.Conn) { // later version that does not refuse our version
			newer.accept(conn, func(to heard) *wire.Greeting {
				own := newer.says(func(h *wire.Hello) { h.Version = protocol + 1 })
				return greeting(newer.key, acceptor, to.binding, to.Hello, own)
			})
		})
		cases := []struct {
			addr string
			want error
		}{
			{"nobody:1", ErrRefused}, {"foreign:1", ErrForeign}, {"silent:1", ErrSilent}, {"hangs-up:1", ErrSilent},
			{"http:1", ErrForeign}, {"ssh:1", ErrForeign}, {"grpc:1", ErrForeign}, {"newer:1", ErrVersion},
			{"newest:1", ErrVersion},
		}
		kinds := []error{ErrRefused, ErrForeign, ErrSilent, ErrVersion, ErrOther, ErrClosed}
		for _, c := range cases {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			began := time.Now()
			answer, _, err := a.Ask(ctx, c.addr, nodeid.ID{}, []byte("who"))
			for _, kind := range kinds {
				if errors.Is(err, kind) != (kind == c.want) {
					t.Errorf("%s: got %q, %v; want %v", c.addr, answer, err, c.want)
				}
			}
			if c.addr == "silent:1" != (time.Since(began) == 2*time.Second) || c.addr == "silent:1" &&
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: took %v: %v", c.addr, time.Since(began), err)
			}
			cancel()
		}
		if _, _, err := a.Ask(t.Context(), "newer:1", id(6), nil); !errors.Is(err, ErrVersion) {
			t.Errorf("another version counts more than another instance: %v", err)
		}
		began := time.Now()
		if _, _, err := a.Ask(context.Background(), "silent:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) ||
			time.Since(began) > 6*time.Second {
			t.Errorf("without a deadline: %v after %v", err, time.Since(began))
		}
	})
}

func TestDialOfAnInstanceThatDoesNotCheck(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, careless := w.node("a", 1), forge(5)
		w.serve("careless:1", func(conn net.Conn) { careless.accept(conn, careless.answer) })
		a.sendTo(nodeid.Endpoint{ID: id(6), Addr: "careless:1"})
		synctest.Wait()
		events := a.seen()
		if len(events) != 1 {
			t.Fatalf("got %+v", events)
		}
		if other, ok := errors.AsType[*OtherError](events[0].down); !ok || other.Asked != id(6) ||
			other.Answered != id(5) {
			t.Error(events[0].down)
		}
	})
}

// The dead connection must not delay the next question. After a refused connection, a question
// waits at most half a second, and its result describes the current process at the address.
func TestAskAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		for life := 2; life < 12; life++ {
			b := w.node("b", life)
			for range 3 {
				began := time.Now()
				if _, _, err := a.Ask(t.Context(), "b:1", id(life), nil); err != nil ||
					time.Since(began) > pauseAnswered {
					t.Fatalf("life %d: %v after %v", life, err, time.Since(began))
				}
			}
			if life%2 == 0 {
				b.Close()
			} else {
				w.net.Crash("b")
				b.Close()
			}
			synctest.Wait()
			for range 3 {
				began := time.Now()
				if _, _, err := a.Ask(t.Context(), "b:1", nodeid.ID{}, nil); !errors.Is(err, ErrRefused) ||
					time.Since(began) > pauseAnswered {
					t.Fatalf("incarnation %d is over: %v after %v", life, err, time.Since(began))
				}
			}
		}
		if c := a.Counts(); c.Shared != 0 {
			t.Fatalf("left behind: %+v", c)
		}
	})
}

// An instance vanishes silently and is started again on another machine with the same address.
func TestAskAfterASilence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil {
			t.Fatal(err)
		}
		hang := make(chan struct{})
		b.ask = func(context.Context, Identity, []byte) ([]byte, error) {
			<-hang
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := a.Ask(ctx, "b:1", id(2), nil); !errors.Is(err, ErrSilent) {
			t.Fatal(err)
		}
		close(hang)
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil {
			t.Fatal(err)
		}
		if n := b.Counts().Accepted; n != 2 {
			t.Fatalf("the question after a silence did not get a connection of its own: %d", n)
		}
		time.Sleep(sharedIdle / 2)
		if n := b.Counts().Accepted; n != 1 {
			t.Fatalf("%d connections", n)
		}
	})
}

func TestAskConnectionsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, func(c *Config) { c.AskConns = 2 })
		gate := make(chan struct{})
		for i, name := range []string{"b", "c", "d", "e"} {
			n := w.node(name, i+2)
			n.ask = func(_ context.Context, _ Identity, q []byte) ([]byte, error) {
				if string(q) == "wait" {
					<-gate
				}
				return nil, nil
			}
			if _, _, err := a.Ask(t.Context(), name+":1", nodeid.ID{}, nil); err != nil {
				t.Fatal(err)
			}
			if c := a.Counts().Shared; c > 2 {
				t.Fatalf("%d connections", c)
			}
		}
		var asking sync.WaitGroup
		for _, name := range []string{"b", "c"} {
			asking.Go(func() {
				if _, _, err := a.Ask(t.Context(), name+":1", nodeid.ID{}, []byte("wait")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, _, err := a.Ask(t.Context(), "d:1", nodeid.ID{}, nil); !errors.Is(err, ErrFull) {
			t.Errorf("all connections in use: %v", err)
		}
		close(gate)
		asking.Wait()
	})
}

func TestManyQuestionsShareADial(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		w.net.Cut("a", "b")
		var asking sync.WaitGroup
		for i := range 50 {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Millisecond)
				defer cancel()
				_, _, err := a.Ask(ctx, "b:1", nodeid.ID{}, nil)
				if (i < 10) != (err != nil) {
					t.Errorf("question %d: %v", i, err)
				}
			})
		}
		time.Sleep(connectTime - 50*time.Millisecond)
		w.net.Heal("a", "b")
		asking.Wait()
		if n := b.Counts().Accepted; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestTooManyQuestionsAtOnce asks an instance more questions than it answers at once. The others
// are refused without delay, another instance is still answered, and all places are given back.
func TestTooManyQuestionsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		var conns []*dialed // one connection has fewer calls at once
		for range questionsEach/callsEach + 1 {
			d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			conns = append(conns, d)
		}
		for range 3 {
			done := make(chan struct{})
			b.ask = func(_ context.Context, from Identity, _ []byte) ([]byte, error) {
				if from.Instance == id(1) {
					<-done
				}
				return nil, nil
			}
			var asking sync.WaitGroup
			var answered, refused atomic.Int64
			for i := range questionsEach + 3 {
				asking.Go(func() {
					stream, err := conns[i%len(conns)].Ask(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					sendQuestion(stream, body(nil))
					switch answer, err := stream.Recv(); {
					case err != nil:
						t.Error(err)
					case answer.Refusal == nil:
						answered.Add(1)
					case answer.Refusal.Reason == wire.Refusal_FULL:
						refused.Add(1)
					}
				})
			}
			synctest.Wait()
			if n := refused.Load(); n != 3 {
				t.Errorf("%d questions were refused, want 3", n)
			}
			if _, _, err := c.Ask(t.Context(), "b:1", id(2), nil); err != nil {
				t.Errorf("another instance: %v", err)
			}
			close(done)
			asking.Wait()
			if n := answered.Load(); n != questionsEach {
				t.Errorf("%d questions were answered, want %d", n, questionsEach)
			}
			synctest.Wait()
		}
	})
}
