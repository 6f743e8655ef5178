//go:build unix

package transport

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// Strangers open connections that are silent, send one byte a second or stop reading. Their number
// is bounded, and each is closed soon. They do not disturb linked instances or fill the log.
func TestTenThousandSilentConnections(t *testing.T) {
	slow.UnderRace(t)
	want := 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	// For up to 1,024 connections, this process has both ends open.
	if most := int(min(files.Cur, 1<<20)) - 2000; most < want {
		want = most
		t.Logf("only %d files may be open: the test makes %d connections", files.Cur, want)
	}
	if want < 100 {
		t.Skip("SKIPPED: too few files may be open")
	}
	a, b := realNode(t, 1, func(c *Config) { c.DialTimeout = time.Second }), realNode(t, 2)
	a.log.text.Reset()
	var answered, worst atomic.Int64
	arrived := make(chan struct{}, 1)
	a.mu.Lock()
	a.onFrame = func(Identity, Frame) { arrived <- struct{}{} }
	a.mu.Unlock()
	stop := make(chan struct{})
	var talking sync.WaitGroup
	talking.Go(func() {
		for !isClosed(stop) {
			began := time.Now()
			b.send(a, "x")
			<-arrived
			answered.Add(1)
			worst.Store(max(worst.Load(), int64(time.Since(began))))
			time.Sleep(time.Millisecond)
		}
	})
	began := time.Now()
	flood := openSilent(t, a.identity.Addr, want)
	opened := time.Since(began)
	if c := a.Counts(); c.Strangers > 1024 {
		t.Errorf("%d strangers at once", c.Strangers)
	}
	eventually(t, "the silent connections are not gone", func() bool { return a.Counts().Strangers == 0 })
	gone := time.Since(began)
	newcomer := realNode(t, 3)
	eventually(t, "a new instance gets no answer after the flood", func() bool {
		_, _, err := newcomer.Ask(t.Context(), a.identity.Addr, id(1), nil)
		return err == nil
	})
	close(stop)
	talking.Wait()
	for _, conn := range flood {
		conn.Close()
	}
	t.Logf("%d connections opened in %v, all gone after %v; meanwhile %d frames arrived, the slowest in %v",
		len(flood), opened, gone, answered.Load(), time.Duration(worst.Load()))
	if answered.Load() < 20 || time.Duration(worst.Load()) > 5*time.Second {
		t.Errorf("the flood held up others: %d frames, the slowest took %v", answered.Load(),
			time.Duration(worst.Load()))
	}
	if n := strings.Count(a.log.String(), "\n"); n > 10 {
		t.Errorf("%d lines in the log:\n%s", n, a.log)
	}
}

// openSilent opens n connections. Most are silent, some send a byte now and then, and some never
// read.
func openSilent(t *testing.T, addr string, n int) []net.Conn {
	var all []net.Conn
	for i := range n {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			t.Logf("connection %d: %v", i, err)
			break
		}
		all = append(all, conn)
		switch i % 100 {
		case 0:
			go func() {
				for _, b := range []byte(preface) {
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			}()
		case 1:
			_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = io.WriteString(conn, preface+noSettings+strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 1000))
		}
	}
	return all
}
