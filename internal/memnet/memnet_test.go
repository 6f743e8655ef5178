package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func connected(t *testing.T, n *Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Listen("b:1")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Dialer("a")(t.Context(), "b:1")
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestBytesArriveInOrderAndThenEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connected(t, New())
		sent := bytes.Repeat([]byte("0123456789"), 100_000) // more than the buffer of a connection
		go func() {
			_, _ = client.Write(sent)
			_ = client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("read %d bytes, %v; want the %d that were sent", len(got), err, len(sent))
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("write to a closed end: %v, want EPIPE", err)
		}
	})
}

func TestAnAddressWithoutListenerRefuses(t *testing.T) {
	if _, err := New().Dialer("a")(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial: %v, want ECONNREFUSED", err)
	}
}

func TestTakenAddressIsRefused(t *testing.T) {
	n := New()
	if _, err := n.Listen("a:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("a:1"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("second listen: %v, want EADDRINUSE", err)
	}
}

func TestDeadlineEndsAWaitingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := connected(t, New())
		start := time.Now()
		_ = client.SetReadDeadline(start.Add(time.Second))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Fatalf("read ended after %v with %v, want a deadline error after 1s", time.Since(start), err)
		}
	})
}

func TestCutIsSilentAndHealDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := connected(t, n)
		n.Cut("a", "b")
		if _, err := client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		_ = server.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := server.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read through a cut: %v, want silence", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer("a")(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dial through a cut: %v, want silence until the deadline", err)
		}
		n.Heal("a", "b")
		_ = server.SetReadDeadline(time.Time{})
		got := make([]byte, 5)
		if _, err := io.ReadFull(server, got); err != nil || string(got) != "hello" {
			t.Fatalf("after healing read %q, %v", got, err)
		}
	})
}

func TestCrashResetsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, _ := connected(t, n)
		n.Crash("b")
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read after the peer's crash: %v, want ECONNRESET", err)
		}
		if _, err := n.Dialer("a")(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial after the peer's crash: %v, want ECONNREFUSED", err)
		}
	})
}

func TestCutInOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := connected(t, n)
		n.CutOneWay("a", "b")
		_, _ = client.Write([]byte("lost for now"))
		_, _ = server.Write([]byte("hello"))
		if got, err := client.Read(make([]byte, 9)); got != 5 || err != nil {
			t.Errorf("the way back: %d bytes, %v", got, err)
		}
		_ = server.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := server.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read through a cut: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer("b")(ctx, "a:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a handshake needs both directions, but: %v", err)
		}
		n.Heal("b", "a")
		_ = server.SetReadDeadline(time.Time{})
		if got, err := server.Read(make([]byte, 99)); got != 12 || err != nil {
			t.Errorf("after the cut: %d bytes, %v", got, err)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := connected(t, n)
		n.SetLatency(time.Millisecond)
		began := time.Now()
		_, _ = client.Write([]byte("one"))
		time.Sleep(time.Millisecond / 2)
		_, _ = client.Write([]byte("three"))
		_ = client.Close()
		for i, want := range []int{3, 5} {
			got, err := server.Read(make([]byte, 99))
			if took := time.Since(began); got != want || err != nil ||
				took != time.Millisecond+time.Duration(i)*time.Millisecond/2 {
				t.Errorf("read %d bytes after %v, %v", got, took, err)
			}
		}
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("behind the last byte: %v", err)
		}
	})
}

func TestHealInOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := connected(t, n)
		n.Cut("a", "b")
		_, _ = client.Write([]byte("late"))
		_, _ = server.Write([]byte("hello"))
		n.HealOneWay("b", "a")
		if got, err := client.Read(make([]byte, 9)); got != 5 || err != nil {
			t.Errorf("the healed direction: %d bytes, %v", got, err)
		}
		_ = server.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := server.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the other direction: %v, want silence", err)
		}
		n.HealOneWay("a", "b")
		_ = server.SetReadDeadline(time.Time{})
		if got, err := server.Read(make([]byte, 9)); got != 4 || err != nil {
			t.Errorf("after both: %d bytes, %v", got, err)
		}
	})
}

// A cut that has found a connection before it was closed does not make its reads wait.
func TestACutOfAClosedConnectionBlocksNoRead(t *testing.T) {
	q := newQueue()
	q.discard(net.ErrClosed, net.ErrClosed)
	q.setStalled(true)
	q.setDeadline(&q.readBy, time.Now().Add(time.Minute)) // so that a failure ends
	if _, err := q.read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of a closed connection: %v", err)
	}
}
