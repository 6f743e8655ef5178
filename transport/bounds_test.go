package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cutAfter drops every write that brings the total above `most` bytes. The connection stays open.
type cutAfter struct {
	net.Conn
	most    int64
	written *atomic.Int64
}

func (c cutAfter) Write(b []byte) (int, error) {
	if c.written.Add(int64(len(b))) > c.most {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func TestUnfinishedQuestionsHoldNoMemory(t *testing.T) {
	authority := newAuthority(t)
	use := func(c *Config) { authority.use(c) }
	const calls, each = 60, 4 << 20
	for name, piece := range map[string]int{"one message": each, "pieces": pieceBytes} {
		t.Run(name, func(t *testing.T) {
			a := realTLS(t, 1, use)
			var written atomic.Int64
			attacker := realTLS(t, 2, use,
				dialsWith(func(c net.Conn) net.Conn { return cutAfter{c, calls * each * 9 / 10, &written} }))
			d, err := attacker.connect(t.Context(), &attacker.self, a.identity.Addr, id(1))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			question, err := proto.Marshal(&wire.Question{Body: bytes.Repeat([]byte("x"), piece)})
			if err != nil {
				t.Fatal(err)
			}
			r := ready{question}
			before := heap()
			ctx, cancel := context.WithCancel(t.Context())
			var flood sync.WaitGroup
			for range calls {
				flood.Go(func() {
					// A call with streams in both directions can call every kind of server method.
					desc := &grpc.StreamDesc{StreamName: "Ask", ClientStreams: true, ServerStreams: true}
					stream, err := d.cc.NewStream(ctx, desc, echoMethod, grpc.MaxCallSendMsgSize(1<<30),
						grpc.ForceCodecV2(r))
					for n := 0; err == nil && n < each; n += piece {
						err = stream.SendMsg(r)
					}
					if err == nil {
						_ = stream.RecvMsg(r)
					}
				})
			}
			most := uint64(0)
			for began := time.Now(); time.Since(began) < time.Second; time.Sleep(50 * time.Millisecond) {
				most = max(most, heap())
			}
			cancel()
			flood.Wait()
			held := int64(most) - int64(before)
			t.Logf("%d KiB written, %d KiB held", written.Load()>>10, held>>10)
			if held > 64<<20 {
				t.Errorf("%d MiB are held", held>>20)
			}
			b := realTLS(t, 3, use)
			if _, _, err := b.Ask(t.Context(), a.identity.Addr, id(1), []byte("still there?")); err != nil {
				t.Errorf("another instance's question: %v", err)
			}
		})
	}
}

// ready is a codec that sends the given message without copying it for each call.
type ready struct{ message []byte }

func (r ready) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(r.message)}, nil
}
func (r ready) Unmarshal(mem.BufferSlice, any) error { return nil }
func (r ready) Name() string                         { return "proto" }

// realTLS is like realNode, with certificates that are valid for loopback addresses.
func realTLS(t *testing.T, n int, change ...func(*Config)) *node {
	t.Helper()
	return realNode(t, n, append(change, func(c *Config) {
		s := c.TLS.(static)
		s.config.ServerName = "a"
		c.TLS = s
	})...)
}

func TestAQuestionHasADeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		d, err := b.connect(t.Context(), &b.self, "a:1", id(1))
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		var calls []grpc.BidiStreamingClient[wire.Question, wire.Answer]
		for range 10 {
			call, err := d.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = call.Send(&wire.Question{Body: []byte("to be continued")})
			calls = append(calls, call)
		}
		synctest.Wait()
		if held := a.holds.held.Total(); held != 10*len("to be continued") {
			t.Errorf("%d bytes are held", held)
		}
		began := time.Now()
		for time.Since(began) < time.Minute && a.Counts().Accepted > 0 {
			for _, call := range calls {
				_ = call.Send(&wire.Question{Body: []byte("x")})
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the connection was closed after %v", took)
		}
		synctest.Wait()
		if held, n := a.holds.held.Total(), a.holds.arriving.count(); held != 0 || n != 0 {
			t.Errorf("%d bytes of %d questions are still held", held, n)
		}
	})
}

func TestQuestionsAndAnswersAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		b.ask = func(_ context.Context, _ Identity, q []byte) ([]byte, error) {
			if string(q) == "much" {
				return make([]byte, answerBytes+1), nil
			}
			return q, nil
		}
		const full = questionBytes - 4 // without the tag and the length
		for _, n := range []int{0, 1, pieceBytes, pieceBytes + 1, full} {
			q := bytes.Repeat([]byte("q"), n)
			if answer, _, err := a.Ask(t.Context(), "b:1", id(2), q); err != nil || !bytes.Equal(answer, q) {
				t.Errorf("%d bytes: %d, %v", n, len(answer), err)
			}
		}
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), make([]byte, full+1)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		if _, _, err := a.Ask(t.Context(), "b:1", id(2), []byte("much")); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		call, err := d.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sendQuestion(call, make([]byte, questionBytes+1)) // no correct instance sends this
		if answer, err := call.Recv(); err != nil || answer.Refusal.GetReason() != wire.Refusal_FULL {
			t.Error(answer, err)
		}
		synctest.Wait()
		for _, n := range []*node{a, b} {
			h := &n.holds
			if h.held.Total()+h.told.Total()+h.heard.Total()+h.questions.Total()+h.arriving.count() != 0 {
				t.Errorf("something is held: %+v", h)
			}
		}
	})
}

func TestAnAnswerThatIsNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		b.ask = func(context.Context, Identity, []byte) ([]byte, error) { return make([]byte, answerBytes/4), nil }
		d, err := a.connect(t.Context(), &a.self, "b:1", id(2))
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		for range 10 {
			call, err := d.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sendQuestion(call, body([]byte("q")))
		}
		synctest.Wait()
		if told := b.holds.told.Total(); told == 0 || told > toldEach {
			t.Errorf("%d bytes wait", told)
		}
		time.Sleep(time.Minute)
		if told := b.holds.told.Total(); told != 0 || b.Counts().Accepted != 0 {
			t.Errorf("%d bytes wait after a minute", told)
		}
		w.servePeer("endless:1", 5, endless)
		if answer, _, err := a.Ask(t.Context(), "endless:1", nodeid.ID{}, nil); !errors.Is(err, ErrFull) {
			t.Errorf("%d bytes, %v", len(answer), err)
		}
	})
}

func endless(s asked) error {
	for {
		if err := s.Send(&wire.Answer{Body: make([]byte, pieceBytes)}); err != nil {
			return err
		}
	}
}

func TestGossipStreamsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		var refusals atomic.Int64
		open := func(n *node) *dialed {
			d, err := n.connect(t.Context(), &n.self, "a:1", id(1))
			if err != nil {
				t.Fatal(err)
			}
			for range packetCallsEach {
				packets, err := d.Packets(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = packets.Send(&wire.Parcel{})
			}
			for range byteCallsEach {
				conn, err := d.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Send(&wire.Bytes{})
				go func() {
					if first, err := conn.Recv(); err == nil && strings.Contains(first.GetRefusal().GetText(),
						"too many") {
						refusals.Add(1)
					}
				}()
			}
			return d
		}
		var all []*dialed
		for range connsEach {
			all = append(all, open(b))
		}
		synctest.Wait()
		if n := a.holds.packets.Total(); n != packetCallsEach {
			t.Errorf("%d streams of packets", n)
		}
		if n := a.holds.conns.Total(); n != byteCallsEach || refusals.Load() != (connsEach-1)*byteCallsEach {
			t.Errorf("%d byte streams, %d refused", n, refusals.Load())
		}
		all = append(all, open(c))
		synctest.Wait()
		if n, m := a.holds.packets.Total(), a.holds.conns.Total(); n != 2*packetCallsEach || m != 2*byteCallsEach {
			t.Errorf("with another instance: %d streams of packets, %d byte streams", n, m)
		}
		for _, d := range all {
			d.close()
		}
		time.Sleep(time.Minute)
		if n := a.holds.conns.Total() + a.holds.packets.Total(); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// An instance must not make the receiver hold more bytes by sending answers from many addresses.
func TestAnswersAreBoundedForEachInstance(t *testing.T) {
	slow.UnderRace(t)
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		const addrs = 2 * maxTold / toldEach
		for i := range addrs {
			w.servePeer(fmt.Sprintf("stalls:%d", i+1), 5, stalls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for i := range addrs {
			asking.Go(func() { _, _, _ = a.Ask(ctx, fmt.Sprintf("stalls:%d", i+1), id(5), nil) })
			synctest.Wait() // if two answers arrived together, both could be refused
		}
		if heard := a.holds.heard.Total(); heard == 0 || heard > toldEach {
			t.Errorf("%d bytes of one instance's answers are held", heard)
		}
		b.ask = func(context.Context, Identity, []byte) ([]byte, error) { return make([]byte, toldEach/2), nil }
		if answer, _, err := a.Ask(t.Context(), "b:1", id(2), nil); err != nil || len(answer) != toldEach/2 {
			t.Errorf("another instance's answer: %d bytes, %v", len(answer), err)
		}
		cancel()
		asking.Wait()
		if heard := a.holds.heard.Total(); heard != 0 {
			t.Errorf("%d bytes are left", heard)
		}
	})
}

// The handler stalls sends almost the maximum number of bytes for one instance, and then waits.
func stalls(s asked) error {
	for range toldEach/pieceBytes - 1 {
		if err := s.Send(&wire.Answer{Body: make([]byte, pieceBytes)}); err != nil {
			return err
		}
	}
	<-s.Context().Done()
	return nil
}

func TestCallsThatArriveDisplaceThoseThatDoNot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		a.holds.arriving.limit = 20
		for range 10 {
			attacker := w.node("x", 9)
			d, err := attacker.connect(t.Context(), &attacker.self, "a:1", id(1))
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if _, err := d.Ask(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if n := a.holds.arriving.count(); n > 20 {
				t.Fatalf("%d are arriving", n)
			}
			if _, _, err := b.Ask(t.Context(), "a:1", id(1), []byte("q")); err != nil {
				t.Error(err)
			}
			attacker.Close()
			d.close()
		}
	})
}

func TestCallsOfOneInstanceDisplaceItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, attacker := w.node("a", 1), w.node("b", 2), w.node("x", 9)
		slow, err := b.connect(t.Context(), &b.self, "a:1", id(1))
		if err != nil {
			t.Fatal(err)
		}
		defer slow.close()
		call, err := slow.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 * connsEach {
			d, err := attacker.connect(t.Context(), &attacker.self, "a:1", id(1))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			for range callsEach {
				if _, err := d.Ask(t.Context()); err != nil {
					break // the limit has closed the connection
				}
			}
			synctest.Wait()
			if n := a.holds.arriving.count(); n > maxArrivals {
				t.Fatalf("%d are arriving", n)
			}
		}
		sendQuestion(call, body([]byte("late")))
		if answer, err := call.Recv(); err != nil || string(answer.Body) != string(body([]byte("re: late"))) {
			t.Errorf("another instance's question: %v, %v", answer, err)
		}
	})
}

func TestABrokenAnswerIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		w.servePeer("breaks:1", 5, breaks)
		if answer, _, err := a.Ask(t.Context(), "breaks:1", nodeid.ID{}, nil); !errors.Is(err, ErrSilent) ||
			len(answer) > 0 {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

func breaks(s asked) error {
	_ = s.Send(&wire.Answer{Body: []byte("the first half")})
	return io.ErrUnexpectedEOF
}

func TestConnectionsOfOneInstanceAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		if _, _, err := c.Ask(t.Context(), "a:1", id(1), nil); err != nil {
			t.Fatal(err)
		}
		c.send(a, "x")
		for range 5 * connsEach {
			d, err := b.connect(t.Context(), &b.self, "a:1", id(1))
			if err != nil {
				t.Fatal(err)
			}
			defer d.close()
			call, err := d.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sendQuestion(call, nil)
			if _, err := call.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := a.Counts(); n.Accepted != connsEach+2 || n.Links != 1 {
			t.Errorf("%+v", n)
		}
		if _, _, err := c.Ask(t.Context(), "a:1", id(1), nil); err != nil {
			t.Error(err)
		}
		for i := range 500 {
			gone := &accepted{gone: make(chan struct{})}
			a.holds.owners.own(nodeidtest.ID(uint64(i)+1), gone)
			close(gone.gone)
		}
		if n := len(a.holds.owners.conns); n > 100 {
			t.Errorf("%d instances are remembered", n)
		}
	})
}
