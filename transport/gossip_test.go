package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func packetsOf(n *node) (got []string) {
	for {
		select {
		case p := <-n.Gossip().Packets():
			got = append(got, p.From+" "+string(p.Data))
		default:
			return got
		}
	}
}

func TestPackets(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		for i := range 3 {
			if err := a.Gossip().WriteTo([]byte(fmt.Sprint(i)), "b:1"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := fmt.Sprint(packetsOf(b)); got != "[a:1 0 a:1 1 a:1 2]" {
			t.Fatal(got)
		}
		if err := a.Gossip().WriteTo([]byte("me"), "a:1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := fmt.Sprint(packetsOf(a)); got != "[a:1 me]" {
			t.Fatal(got)
		}
		a.self.Addr = "elsewhere:1"
		a.identify()
		_ = a.Gossip().WriteTo([]byte("moved"), "b:1")
		synctest.Wait()
		if got := fmt.Sprint(packetsOf(b)); got != "[elsewhere:1 moved]" {
			t.Fatal(got)
		}
		if err := a.Gossip().WriteTo(make([]byte, packetBytes+1), "b:1"); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		if c := a.Counts(); c.Packeters+c.Shared+b.Counts().Accepted != 0 {
			t.Fatalf("idle for five minutes: %+v\n%+v", c, b.Counts())
		}
		_ = a.Gossip().WriteTo([]byte("again"), "b:1")
		synctest.Wait()
		if got := fmt.Sprint(packetsOf(b)); got != "[elsewhere:1 again]" {
			t.Fatal(got)
		}
	})
}

func TestPacketsAreLostNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		w.net.Cut("a", "b")
		began := time.Now()
		for range 10_000 {
			for _, addr := range []string{"nobody:1", "b:1"} {
				if err := a.Gossip().WriteTo(make([]byte, 1000), addr); err != nil {
					t.Fatal(err)
				}
			}
		}
		if time.Since(began) > 0 {
			t.Fatalf("writing waited %v", time.Since(began))
		}
		time.Sleep(20 * time.Second)
		w.net.Heal("a", "b")
		time.Sleep(5 * time.Second)
		packetsOf(b)
		_ = a.Gossip().WriteTo([]byte("new"), "b:1")
		synctest.Wait()
		if got := fmt.Sprint(packetsOf(b)); got != "[a:1 new]" {
			t.Fatal(got)
		}
		for range 10_000 { // b does not read the packets
			_ = a.Gossip().WriteTo(make([]byte, 100), "b:1")
			synctest.Wait()
		}
		if got := len(packetsOf(b)); got != packetsQueued {
			t.Fatalf("%d packets wait", got)
		}
		if c := a.Counts(); c.PacketsDropped < 19_000 {
			t.Errorf("%d dropped packets counted", c.PacketsDropped)
		}
		time.Sleep(5 * time.Minute)
		if c := a.Counts(); c.Packeters != 0 {
			t.Fatalf("left behind: %+v", c)
		}
	})
}

func TestGossipAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		for life := range 5 {
			b := w.node("b", life+2)
			text := fmt.Sprint("life ", life)
			_ = a.Gossip().WriteTo([]byte(text), "b:1")
			synctest.Wait()
			if got := fmt.Sprint(packetsOf(b)); got != "[a:1 "+text+"]" {
				t.Fatal(got)
			}
			b.Close()
			synctest.Wait()
		}
	})
}

func TestGossipOfAnotherCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2, func(c *Config) { c.Cluster = "theirs" })
		for range 90 { // 9 s, because the connection of a stranger is closed after 10 s
			_ = a.Gossip().WriteTo([]byte("hello"), "b:1")
			time.Sleep(100 * time.Millisecond)
		}
		if got := packetsOf(b); len(got) != 0 {
			t.Fatal(got)
		}
		if _, err := a.Gossip().DialStream(t.Context(), "b:1"); !errors.Is(err, ErrForeign) {
			t.Fatal(err)
		}
		if n := strings.Count(b.log.String(), "refused a connection"); n < 1 || n > 4 {
			t.Fatalf("%d log lines:\n%s", n, b.log)
		}
	})
}

func streamPair(t *testing.T, a, b *node) (dialed, accepted net.Conn) {
	t.Helper()
	taken := make(chan net.Conn, 1)
	go func() { taken <- <-b.Gossip().Streams() }()
	dialed, err := a.Gossip().DialStream(t.Context(), b.identity.Addr)
	if err != nil {
		t.Fatal(err)
	}
	accepted = <-taken
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed, accepted
}

func TestStreamCarriesBothWaysAndEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		for _, first := range []string{"dialer", "acceptor"} {
			x, y := streamPair(t, a, b)
			if x.RemoteAddr().String() != "b:1" || y.RemoteAddr().String() != "a:1" || x.LocalAddr().String() != "a:1" {
				t.Fatal(x.RemoteAddr(), y.RemoteAddr(), x.LocalAddr())
			}
			if first == "acceptor" {
				x, y = y, x
			}
			big := bytes.Repeat([]byte("0123456789"), 300_000)
			go func() { _, _ = x.Write(big); x.Close() }() // data written before Close arrives
			got, err := io.ReadAll(y)
			if err != nil || !bytes.Equal(got, big) {
				t.Fatalf("%s: %d bytes, %v", first, len(got), err)
			}
			if _, err := x.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write after Close: %v", err)
			}
			if _, err := x.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("read after Close: %v", err)
			}
			y.Close()
		}
		synctest.Wait()
		time.Sleep(2 * linger)
		if ca, cb := a.Counts(), b.Counts(); ca.Streams+cb.Streams != 0 {
			t.Fatalf("left behind:\n%+v\n%+v", ca, cb)
		}
	})
}

func TestStreamQuestionAndAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		for range 50 {
			x, y := streamPair(t, a, b)
			go func() {
				_ = y.SetDeadline(time.Now().Add(10 * time.Second))
				buf := make([]byte, 8)
				_, _ = io.ReadFull(y, buf)
				_, _ = y.Write(append([]byte("re: "), buf...))
				y.Close()
			}()
			_ = x.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = x.Write([]byte("ques"))
			_, _ = x.Write([]byte("tion"))
			got, err := io.ReadAll(x)
			if string(got) != "re: question" || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
			x.Close()
		}
	})
}

func TestStreamDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		x, y := streamPair(t, a, b)
		buf := make([]byte, 10)
		timeout := func(why string, err error, want, took time.Duration) {
			t.Helper()
			var ne net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() || took != want {
				t.Fatalf("%s: %v after %v", why, err, took)
			}
		}
		read := func(why string, want time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := x.Read(buf)
			timeout(why, err, want, time.Since(began))
		}
		_ = x.SetReadDeadline(time.Now().Add(time.Second))
		read("deadline before", time.Second)
		read("it stays", 0)
		_ = x.SetReadDeadline(time.Now().Add(time.Hour))
		time.AfterFunc(time.Minute, func() { _ = x.SetReadDeadline(time.Now()) })
		read("deadline set while reading", time.Minute)
		_ = x.SetReadDeadline(time.Now().Add(time.Second))
		time.AfterFunc(time.Second/2, func() { _ = x.SetReadDeadline(time.Now().Add(time.Second)) })
		read("deadline put off while reading", time.Second+time.Second/2)
		_ = x.SetReadDeadline(time.Time{})
		_, _ = y.Write([]byte("abc"))
		if n, err := x.Read(buf[:2]); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := x.Read(buf); n != 1 || err != nil {
			t.Fatal("the rest:", n, err)
		}
		// y does not read, so the write must block at some point.
		_ = x.SetWriteDeadline(time.Now().Add(time.Second))
		began := time.Now()
		n, err := x.Write(make([]byte, 64<<20))
		timeout("write", err, time.Second, time.Since(began))
		if n < pieceBytes || n > 4<<20 {
			t.Fatalf("%d bytes fit", n)
		}
		began = time.Now()
		go func() { time.Sleep(time.Second); x.Close() }()
		_ = x.SetDeadline(time.Time{})
		if _, err := x.Read(buf); !errors.Is(err, net.ErrClosed) || time.Since(began) != time.Second {
			t.Fatalf("Close while reading: %v", err)
		}
	})
}

// A timer that fires while its deadline is being moved must have no effect.
func TestDeadlineThatFiresLate(t *testing.T) {
	var d deadline
	old := time.Now().Add(time.Hour)
	d.set(old)
	channel := d.current()
	d.set(old.Add(time.Hour))
	d.expire(old, channel)
	if isClosed(d.passed()) {
		t.Error("the deadline passed")
	}
	d.expire(old.Add(time.Hour), channel)
	if !isClosed(d.passed()) {
		t.Error("the deadline has not passed")
	}
	d.set(time.Time{})
	if isClosed(d.passed()) {
		t.Error("the deadline passed although it was removed")
	}
}

func TestStreamOfACrashedPeer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		x, y := streamPair(t, a, b)
		w.net.Crash("b")
		if _, err := x.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("dialer: %v", err)
		}
		if _, err := y.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("acceptor: %v", err)
		}
		synctest.Wait()
		if _, err := x.Write(make([]byte, 1)); err == nil {
			t.Error("writing to a dead stream")
		}
		if _, err := a.Gossip().DialStream(t.Context(), "b:1"); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
}

func TestStreamThatIsNotTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.node("a", 1)
		w.node("b", 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Gossip().DialStream(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		began := time.Now()
		if _, err := a.Gossip().DialStream(context.Background(), "b:1"); !errors.Is(err, ErrFull) ||
			time.Since(began) > streamsQueued {
			t.Error(err)
		}
	})
}

// TestEachWaitOfAStreamEnds ends the waits of Read and Write by a deadline and by Close, the first
// one and one that waits behind it.
func TestEachWaitOfAStreamEnds(t *testing.T) {
	for _, write := range []bool{false, true} {
		for want, end := range map[error]func(net.Conn){
			net.ErrClosed:          func(c net.Conn) { c.Close() },
			os.ErrDeadlineExceeded: func(c net.Conn) { _ = c.SetDeadline(time.Now()) },
			io.ErrUnexpectedEOF:    nil, // the connection breaks
		} {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.node("a", 1), w.node("b", 2)
				x, _ := streamPair(t, a, b)
				errs := make(chan error, 3)
				for range 3 {
					go func() {
						var err error
						if write {
							_, err = x.Write(make([]byte, 64<<20))
						} else {
							_, err = x.Read(make([]byte, 1))
						}
						errs <- err
					}()
				}
				synctest.Wait()
				if end == nil {
					w.net.Reset("b")
				} else {
					end(x)
				}
				for range 3 {
					if err := <-errs; !errors.Is(err, want) && (end != nil || err == nil) {
						t.Errorf("write %v: %v, want %v", write, err, want)
					}
				}
			})
		}
	}
}
