package transport

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	preface    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	noSettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

func TestStrangersHaveATimeLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		b.send(a, "x")
		synctest.Wait()
		conn := w.raw("a:1")
		began := time.Now()
		go func() { // hello of 4 KiB, one byte at a time
			for _, b := range []byte(linkPreface + strings.Repeat("n", bindingBytes) + "\x00\x00\x10\x00" +
				strings.Repeat("x", helloBytes)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		time.Sleep(4 * time.Second)
		if c := a.Counts(); c.Strangers != 1 || c.Accepted != 2 {
			t.Fatalf("%+v", c)
		}
		time.Sleep(2 * time.Second)
		if c := a.Counts(); c.Strangers != 0 || c.Accepted != 1 {
			t.Fatalf("after %v: %+v", time.Since(began), c)
		}
		conn.Close()
		time.Sleep(time.Minute)
		b.send(a, "y") // an instance that has proved its key is not a stranger
		a.wantCommands("after a minute", b, "xy")
	})
}

func TestStrangersAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, func(c *Config) { c.Strangers = 5 })
		var flood []net.Conn
		for range 50 {
			flood = append(flood, w.raw("a:1"))
			synctest.Wait()
			if c := a.Counts(); c.Strangers > 5 {
				t.Fatalf("%+v", c)
			}
		}
		b := w.node("b", 2)
		b.send(a, "x")
		a.wantCommands("in a flood", b, "x")
		for range 50 {
			flood = append(flood, w.raw("a:1"))
		}
		synctest.Wait()
		b.send(a, "y")
		a.wantCommands("after a flood", b, "y")
		if n := len(a.listener.waiting); n > 100 {
			t.Errorf("%d are remembered", n)
		}
		for _, conn := range flood {
			conn.Close()
		}
	})
}

// The queue limits the number of packets, so the receiver must limit their size.
func TestOversizedPacketsAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		s, err := b.borrow(t.Context(), "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer b.release(s)
		stream, err := s.d.Packets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		big := &wire.Parcel{Packets: [][]byte{make([]byte, packetBytes+1), []byte("small")}}
		if err := stream.Send(big); err != nil {
			t.Fatal(err)
		}
		for range 3 { // flood of small packets
			if err := stream.Send(&wire.Parcel{Packets: make([][]byte, 10_000)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		got := packetsOf(a)
		if len(got) != packetsQueued || got[0] != "b:1 small" {
			t.Errorf("%d packets wait, the first is %q", len(got), got[0])
		}
	})
}

// False lengths must not make the receiver allocate memory for data that has not arrived.
func TestAnnouncedSizesReserveNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		lie := []byte{0x1a, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'} // field 3, 2 GiB long
		for _, m := range []proto.Message{&wire.Frame{}, &wire.Parcel{}, &wire.Chunk{}, &wire.Question{},
			&wire.Bytes{}} {
			if n := testing.AllocsPerRun(10, func() {
				if proto.Unmarshal(lie, m) == nil {
					t.Fatalf("%T was read", m)
				}
			}); n > 20 {
				t.Errorf("%T: %v allocations", m, n)
			}
		}
		s, err := b.borrow(t.Context(), "a:1")
		if err != nil {
			t.Fatal(err)
		}
		defer b.release(s)
		for size, want := range map[uint64]string{1 << 40: "the limit here", 1 << 29: "checksum or size"} {
			stream, err := s.d.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			head, _ := proto.Marshal(withoutData(snapshotMessage(b, a, 0)))
			_ = stream.Send(&wire.Chunk{Message: head, Size: size, Data: []byte("x"), Last: true})
			if ack, err := stream.CloseAndRecv(); err != nil || !strings.Contains(ack.GetRefusal().GetText(), want) {
				t.Errorf("%d bytes announced: %v, %v", size, ack, err)
			}
		}
	})
}

func TestOversizedFrameEndsTheLink(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, c := w.node("a", 1, func(c *Config) { c.MessageBytes = 1 << 20 }), w.node("c", 3)
		b := w.node("b", 2)
		c.send(a, "before")
		b.send(a, strings.Repeat("x", 2<<20))
		synctest.Wait()
		text, downs := commands(a.seen(), id(2))
		if text != "" || downs != 1 {
			t.Errorf("%d bytes, %d downs", len(text), downs)
		}
		c.send(a, "after")
		a.wantCommands("another peer", c, "after")
	})
}

// If connections whose handshakes wait for a turn were closed, no handshake would finish after a
// failover.
func TestHandshakesInLineAreNotDisplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, func(c *Config) { c.Strangers = 2 })
		hold := &turn{of: a.listener.turns}
		for range a.listener.turns.atOnce {
			hold.held = false
			if err := hold.take(); err != nil {
				t.Fatal(err)
			}
		}
		open := func(conn net.Conn) bool {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.Read(make([]byte, 1))
			timeout, ok := errors.AsType[net.Error](err)
			return ok && timeout.Timeout()
		}
		var line []net.Conn
		for range 3 {
			conn := w.raw("a:1")
			t.Cleanup(func() { conn.Close() })
			_, _ = conn.Write([]byte(linkPreface))
			synctest.Wait()
			line = append(line, conn)
		}
		if !open(line[0]) || !open(line[1]) || open(line[2]) {
			t.Errorf("open: %v, %v, and the last one %v", open(line[0]), open(line[1]), open(line[2]))
		}
		for range a.listener.turns.atOnce {
			hold.held = true
			hold.end()
		}
		time.Sleep(11 * time.Second)
	})
}

func TestSpareLinks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var voters []nodeid.Endpoint
		for i := range 5 {
			voters = append(voters, w.node(fmt.Sprint("v", i), i+1).peer())
		}
		n := w.node("n", 9)
		links := func() (up int) {
			for _, v := range voters[1:] {
				if n.Linked(v.ID) {
					up++
				}
			}
			return up
		}
		for range 3 {
			n.Spare(voters[0].ID, voters, 2)
			time.Sleep(time.Second)
			if links() != 2 || n.Linked(voters[0].ID) {
				t.Fatalf("%d links, to the leader: %v", links(), n.Linked(voters[0].ID))
			}
		}
	})
}
