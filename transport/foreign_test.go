package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func TestRaftMessagesOfAForeignGroupNeverArrive(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		b := w.node("b", 2, func(c *Config) { c.Self.Group = 8 })
		n := w.node("n", 3, func(c *Config) { c.Self.Group = 0 })
		for _, to := range []*node{b, n} {
			if err := a.Send(to.peer(), Frame{Raft: []*raftpb.Message{raftMessage(a, to, 1)},
				Retired: true}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(b.seen())+len(n.seen())+len(a.seen()) != 0 {
			t.Fatal("a handler was called")
		}
		if b.Counts().FramesForeign != 1 || n.Counts().FramesForeign != 1 || a.Counts().Links != 2 {
			t.Fatalf("%+v\n%+v\n%+v", a.Counts(), b.Counts(), n.Counts())
		}
		n.self.Group = 7
		n.identify()
		if err := a.Send(n.peer(), Frame{Raft: []*raftpb.Message{raftMessage(a, n, 1)}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if events := n.seen(); len(events) != 1 || len(events[0].frame.Raft) != 1 {
			t.Fatalf("after joining the group: %+v", events)
		}
	})
}

// Session data for another group ends the link, because otherwise the sender of the lost data would
// wait for an answer. Both sides get the reason.
func TestWordsOfAForeignGroupEndTheLink(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		b := w.node("b", 2, func(c *Config) { c.Self.Group = 8 })
		a.send(b, "x")
		synctest.Wait()
		ea, eb := a.seen(), b.seen()
		if len(ea) != 1 || !errors.Is(ea[0].down, ErrGroup) || len(eb) != 1 || !errors.Is(eb[0].down, ErrGroup) {
			t.Fatalf("a saw %+v\nb saw %+v", ea, eb)
		}
		if err := a.Send(b.peer(), Frame{Commands: []byte("x")}); !errors.Is(err, ErrNoLink) {
			t.Fatalf("no pause after a link that ended at once: %v", err)
		}
		if a.Counts().Links+b.Counts().Links != 0 {
			t.Fatal("a link is left")
		}
	})
}

func TestRaftMessageWithAForeignSenderIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.node("a", 1), w.node("b", 2), w.node("c", 3)
		err := a.Send(b.peer(), Frame{Raft: []*raftpb.Message{raftMessage(c, b, 1), raftMessage(a, c, 2),
			raftMessage(a, b, 3)}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events := b.seen()
		if len(events) != 1 || len(events[0].frame.Raft) != 1 || events[0].frame.Raft[0].GetIndex() != 3 {
			t.Fatalf("got %+v", events)
		}
		if n := b.Counts().RaftForeign; n != 2 {
			t.Fatalf("%d counted", n)
		}
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(c, b, 10)); !errors.Is(err, ErrGroup) {
			t.Fatalf("snapshot: %v", err)
		}
	})
}

func TestGarbageEndsItsLinkOnly(t *testing.T) {
	garbage := map[string]*wire.Frame{
		"raft bytes":     {Raft: [][]byte{{0xff, 0xff, 0xff}}},
		"absurd address": {Standing: &wire.Standing{Group: 7, Addr: strings.Repeat("x", maxAddr+1)}},
	}
	for why, f := range garbage {
		t.Run(why, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				b.send(a, "x")
				a.wantCommands("link", b, "x")
				evil := w.node("evil", 9)
				stream, _ := evil.link("a:1", id(1), 1)
				defer stream.kill()
				if err := stream.send(f); err != nil {
					t.Fatal(err)
				}
				_ = stream.send(&wire.Frame{Commands: []byte("after")}) // fails if the stream is already closed
				last, err := stream.recv()
				if err != nil || last.refusal.GetReason() != wire.Refusal_MALFORMED {
					t.Fatalf("the peer is not told: %v, %v", last, err)
				}
				time.Sleep(2 * linger)
				events := a.seen()
				if len(events) != 1 || !errors.Is(events[0].down, ErrGarbage) || events[0].from.Instance != id(9) {
					t.Fatalf("got %+v", events)
				}
				b.send(a, "y")
				a.wantCommands("the other link lives", b, "y")
			})
		})
	}
}

func TestStrangersOnThePort(t *testing.T) {
	strangers := map[string]string{
		"silent":        "",
		"garbage":       strings.Repeat("\x13\x37garbage\n", 1000),
		"HTTP/1":        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"preface only":  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"link only":     linkPreface,
		"endless frame": linkPreface + "\x7f\xff\xff\xff" + strings.Repeat("x", 1000),
		"large hello":   linkPreface + "\x00\x0f\xff\xff" + strings.Repeat("x", 1000),
		"link garbage":  linkPreface + "\x00\x00\x00\x05\xff\xff\xff\xff\xff",
		"goodbye":       linkPreface + "\xff\xff\xff\xff",
		"broken frames": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
			"\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x01\x04\x00\x00\x00\x01",
	}
	for name, text := range strangers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				a.send(b, "x")
				conn := w.raw("a:1")
				go func() { _, _ = conn.Write([]byte(text)) }()
				began := time.Now()
				drain(conn)
				if took := time.Since(began); took > 15*time.Minute {
					t.Errorf("the connection was kept for %v", took)
				}
				conn.Close()
				synctest.Wait()
				if a.Counts().Accepted != 0 {
					t.Error("the connection is still accepted")
				}
				a.send(b, "y")
				b.wantCommands("all is well", a, "xy")
			})
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1, func(c *Config) { c.Conns = 3 })
		for range 10 {
			conn := w.raw("a:1")
			defer conn.Close()
		}
		synctest.Wait()
		if n := a.Counts().Accepted; n != 3 {
			t.Fatalf("%d connections accepted, the limit is 3", n)
		}
		time.Sleep(time.Minute)
		if n := a.Counts().Accepted; n != 0 {
			t.Fatalf("%d silent connections are kept", n)
		}
	})
}

func TestConnectionWithoutAHello(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, evil := w.node("a", 1), w.node("evil", 9)
		for _, say := range []bool{false, true} {
			s := evil.begin("a:1")
			if _, err := s.bind(dialer, nil); err != nil {
				t.Fatal(err)
			}
			if say {
				if err := s.send(&wire.Frame{Renewals: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			g, err := s.hearGreeting()
			if say && (err != nil || g.Refusal.GetReason() != wire.Refusal_MALFORMED) {
				t.Fatalf("got %v, %v", g, err)
			}
			if !say && (err == nil || time.Since(began) > 6*time.Second) {
				t.Fatalf("silence was taken for %v: %v", time.Since(began), g)
			}
			s.kill()
		}
		if len(a.seen()) != 0 {
			t.Fatal("the handler was called")
		}
	})
}

// The client answers pings, but makes no call.
func TestIdleConnectionIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, idle := w.node("a", 1), w.node("idle", 9)
		d, err := idle.connect(t.Context(), &idle.self, "a:1", id(1))
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
		if _, err := call.Recv(); err != io.EOF {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		if n := a.Counts().Accepted; n != 0 {
			t.Fatalf("%d connections", n)
		}
	})
}
