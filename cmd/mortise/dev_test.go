//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestKeysOfDev(t *testing.T) {
	type act struct {
		action byte
		number int
	}
	for keys, want := range map[string][]act{
		"2":        {{devKill, 2}},
		"c3p1":     {{devCut, 3}, {devPause, 1}},
		"c p2 1":   {{devPause, 2}, {devKill, 1}},
		"c\n1":     {{devKill, 1}}, // a line ends what was begun
		"?q":       {{devHelp, 0}, {devQuit, 0}},
		"c?1":      {{devHelp, 0}, {devKill, 1}},
		"x0\x03":   {{'x', 0}, {'0', 0}, {devQuit, 0}},
		"\r\n\t 9": {{devKill, 9}},
	} {
		var k devKeys
		var got []act
		for _, key := range []byte(keys) {
			if action, number := k.next(key); action != 0 {
				got = append(got, act{action, number})
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: %v, want %v", keys, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: %v, want %v", keys, got, want)
			}
		}
	}
}

// cutPair returns the two ends of a connection. The network n can cut off the first one.
func cutPair(t *testing.T, n *cutNetwork) (inside, outside net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if inside, err = n.dial(t.Context(), l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if outside, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = inside.Close(), outside.Close() })
	for _, c := range []net.Conn{inside, outside} {
		_ = c.SetDeadline(time.Now().Add(patience))
	}
	return inside, outside
}

func wantBytes(t *testing.T, from net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
}

// nothing checks that a connection gets neither bytes nor its end for a while.
func nothing(t *testing.T, from net.Conn) {
	t.Helper()
	_ = from.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := from.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes, %v, want none and a deadline", n, err)
	}
	_ = from.SetReadDeadline(time.Now().Add(patience))
}

// TestACutHoldsBackEveryByte checks that neither a byte nor an end passes during a cut, and that
// they pass after it.
func TestACutHoldsBackEveryByte(t *testing.T) {
	n := newCutNetwork()
	inside, outside := cutPair(t, n)
	if inside.RemoteAddr().String() != outside.LocalAddr().String() ||
		inside.LocalAddr().String() != outside.RemoteAddr().String() {
		t.Errorf("the addresses are %v and %v", inside.LocalAddr(), inside.RemoteAddr())
	}
	_, _ = inside.Write([]byte("a"))
	wantBytes(t, outside, "a")
	_, _ = outside.Write([]byte("b"))
	wantBytes(t, inside, "b")
	n.set(true)
	n.set(true) // twice is once
	_, _ = inside.Write([]byte("c"))
	_, _ = outside.Write([]byte("d"))
	nothing(t, outside)
	nothing(t, inside)
	n.set(false)
	wantBytes(t, outside, "c")
	wantBytes(t, inside, "d")
	n.set(true)
	_ = inside.Close()
	nothing(t, outside)
	n.set(false)
	if _, err := outside.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the cut: %v, want the end", err)
	}
}

// TestNoConnectionBeginsInACut checks both directions, and that an attempt ends with its context.
func TestNoConnectionBeginsInACut(t *testing.T) {
	n := newCutNetwork()
	l, err := n.listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n.set(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := n.dial(ctx, l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dial in a cut: %v", err)
	}
	outside, err := net.Dial("tcp", l.Addr().String()) // the kernel accepts it, and the instance gets no byte
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	inside, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	_, _ = outside.Write([]byte("a"))
	nothing(t, inside)
	n.set(false)
	wantBytes(t, inside, "a")
	_ = outside.SetReadDeadline(time.Now().Add(patience))
}

// TestDevThatCannotStart checks that no directory is left, and that the error says what to do.
func TestDevThatCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	t.Run("the address of the page is taken", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"dev", "-listen", taken.Addr().String()}, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), "-listen: ") || out.Len() > 0 {
			t.Errorf("%d, %s%s", code, out.String(), errs.String())
		}
		isEmpty(t, dir)
	})
	t.Run("the simulation is not there", func(t *testing.T) {
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"dev", "-try", t.TempDir()}, &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), "scripts/try -o ") || out.Len() > 0 {
			t.Errorf("%d, %s%s", code, out.String(), errs.String())
		}
	})
	t.Run("there is no place for directories", func(t *testing.T) {
		t.Setenv("TMPDIR", "/nowhere/at/all")
		var out, errs bytes.Buffer
		code := Main(t.Context(), []string{"dev"}, &out, &errs)
		if code != exitFailed || !strings.Contains(errs.String(), "set TMPDIR to a directory") || out.Len() > 0 {
			t.Errorf("%d, %s%s", code, out.String(), errs.String())
		}
	})
	t.Run("the port of an instance is taken", func(t *testing.T) {
		instances, err := devOptions{n: 1}.instances(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		instances[0].Bind = taken.Addr().String()
		s := newDevShow(&call{out: io.Discard}, false, instances)
		defer s.end()
		if err := s.group.parts[0].start(s.news); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			select {
			case <-s.wake:
				err = s.takeNews()
			case <-time.After(patience):
				t.Fatalf("no error within %v", patience)
			}
		}
		if !strings.Contains(err.Error(), "dev-1 could not start: ") ||
			!strings.Contains(err.Error(), taken.Addr().String()) {
			t.Error(err)
		}
	})
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left in %s, %v", left, dir, err)
	}
}
