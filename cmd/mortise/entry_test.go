package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One client alone has half of the places, and each client that takes all it can get leaves a part
// to the next one. All places come back.
func TestShares(t *testing.T) {
	s := newShares(1000)
	got := map[int]int{}
	for client := range 4 {
		for s.take(client, 1) {
			got[client]++
		}
		if want := 1000 >> (client + 1); got[client] < want || got[client] > want+1 {
			t.Errorf("client %d has %d places, want %d", client, got[client], want)
		}
	}
	if s.take("late", 1000) || !s.take("late", 10) {
		t.Error("the last client must get a few places, and not all")
	}
	for client, n := range got {
		s.give(client, n)
	}
	s.give("late", 10)
	if s.taken != 0 || len(s.each) != 0 {
		t.Errorf("%d places of %d clients are left", s.taken, len(s.each))
	}
}

// pipes is a listener whose connections are pipes. A test sends on it what Accept returns.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// served serves a handler behind a gate for a few connections, in fake time.
func served(t *testing.T, limit int, handler http.HandlerFunc) (dial func() net.Conn, g *gate) {
	t.Helper()
	p := make(pipes)
	g = newGate(p, limit)
	server := newServer(handler)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(g) })
	t.Cleanup(func() {
		close(p)
		_ = server.Close()
		running.Wait()
		synctest.Wait()
		if g.open != 0 || g.waiting[0].Len()+g.waiting[1].Len() != 0 {
			t.Errorf("%d connections are left, %d and %d wait", g.open, g.waiting[0].Len(), g.waiting[1].Len())
		}
	})
	return func() net.Conn {
		mine, theirs := net.Pipe()
		p <- theirs
		return mine
	}, g
}

func isOpen(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

func asksOn(t *testing.T, conn net.Conn, request string) (answer string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, request); err != nil {
		return err.Error()
	}
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		return err.Error()
	}
	return string(b[:n])
}

const plainGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// Every wait for a client ends: for its first byte, its header, its body, its next request, and for
// the bytes of an answer that it does not read. A request that waits for a lock has no limit.
func TestEveryWaitForAClientEnds(t *testing.T) {
	e := newEntry(100)
	handler := func(w http.ResponseWriter, r *http.Request) {
		e.admit(w, r, userOfConn(r), func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/body":
				_, err := io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "read: "+http.StatusText(http.StatusOK))
				if err != nil {
					panic(http.ErrAbortHandler)
				}
			case "/flood":
				for r.Context().Err() == nil {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			case "/lock":
				_, _ = io.Copy(io.Discard, r.Body)
				select {
				case <-time.After(time.Hour):
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "granted")
			}
		})
	}
	const post = "POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
	for name, c := range map[string]struct {
		sent  string
		reads bool // the client reads the answer
		after time.Duration
	}{
		"nothing":          {"", true, headerWithin},
		"half a header":    {"GET / HTTP/1.1\r\nHost:", true, headerWithin},
		"half a body":      {strings.Replace(post, "%s", "body", 1) + "12", true, bodyWithin},
		"between requests": {plainGet, true, idleWithin},
		"reads no answer":  {strings.Replace(plainGet, "/", "/flood", 1), false, writeWithin},
	} {
		synctest.Test(t, func(t *testing.T) {
			dial, g := served(t, 10, handler)
			conn := dial()
			defer conn.Close()
			if c.reads {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
			_, _ = io.WriteString(conn, c.sent)
			time.Sleep(c.after - time.Second)
			synctest.Wait()
			if g.open != 1 {
				t.Errorf("%s: closed before %v", name, c.after)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if g.open != 0 {
				t.Errorf("%s: open after %v", name, c.after)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		dial, _ := served(t, 10, handler)
		conn := dial()
		defer conn.Close()
		_, _ = io.WriteString(conn, strings.Replace(post, "%s", "lock", 1)+"12345")
		time.Sleep(time.Hour + time.Second)
		b := make([]byte, 4096)
		if n, err := conn.Read(b); err != nil || !strings.HasSuffix(string(b[:n]), "granted") {
			t.Errorf("a request that waits for an hour: %q, %v", b[:n], err)
		}
	})
	if e.requests.taken != 0 || e.bodies.taken != 0 || len(e.turns.of) != 0 {
		t.Errorf("%d requests, %d bytes, %d clients in line are left", e.requests.taken, e.bodies.taken, len(e.turns.of))
	}
}

// Connections that wait do not keep out new ones. Each new one displaces the oldest of those on
// which nothing was admitted, then of the others. Connections on which a request runs stay.
func TestWaitingConnectionsAreDisplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, block := newEntry(100), make(chan struct{})
		dial, _ := served(t, 4, func(w http.ResponseWriter, r *http.Request) {
			e.admit(w, r, userOfConn(r), func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/lock" {
					<-block
				}
				_, _ = io.WriteString(w, "done")
			})
		})
		var busy []net.Conn
		for range 2 {
			conn := dial()
			_, _ = io.WriteString(conn, strings.Replace(plainGet, "/", "/lock", 1))
			busy = append(busy, conn)
		}
		program := dial() // keeps its connection between its requests
		if got := asksOn(t, program, plainGet); !strings.HasSuffix(got, "done") {
			t.Fatal(got)
		}
		var silent []net.Conn
		for range 50 {
			silent = append(silent, dial())
			synctest.Wait()
			if got := asksOn(t, program, plainGet); !strings.HasSuffix(got, "done") {
				t.Fatalf("after %d silent connections: %s", len(silent), got)
			}
		}
		for i, conn := range silent {
			if isOpen(conn) != (i == len(silent)-1) {
				t.Errorf("silent connection %d of %d is open: %v", i, len(silent), i != len(silent)-1)
			}
		}
		for _, conn := range busy {
			if !isOpen(conn) {
				t.Error("a connection on which a request runs was closed")
			}
		}
		more := dial() // displaces the last silent one
		_, _ = io.WriteString(more, strings.Replace(plainGet, "/", "/lock", 1))
		synctest.Wait()
		last := dial() // displaces the program, which waits
		_, _ = io.WriteString(last, strings.Replace(plainGet, "/", "/lock", 1))
		synctest.Wait()
		if isOpen(silent[len(silent)-1]) || isOpen(program) || !isOpen(more) || !isOpen(last) {
			t.Error("the wrong connection was displaced")
		}
		if isOpen(dial()) {
			t.Error("a fifth connection, beside four on which requests run")
		}
		close(block)
		for _, conn := range append(busy, more, last) {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				t.Error(err)
			}
			conn.Close()
		}
		for _, conn := range append(silent, program) {
			conn.Close()
		}
	})
}

// A client with many requests leaves requests, bytes and turns to others, and all come back.
func TestRequestsAreBoundedForEachClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, end := newEntry(100), make(chan struct{})
		var began [2]int
		var mu sync.Mutex
		var all sync.WaitGroup
		codes := map[int]int{}
		request := func(client, size int) {
			all.Go(func() {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
				e.admit(w, r, client, func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					began[client]++
					mu.Unlock()
					<-end
					w.WriteHeader(http.StatusOK)
				})
				mu.Lock()
				defer mu.Unlock()
				codes[w.Code]++
			})
		}
		for range 500 {
			request(0, 10)
		}
		synctest.Wait()
		if began[0] != turnsEach {
			t.Errorf("%d requests have begun at once, want %d", began[0], turnsEach)
		}
		request(1, 10)
		synctest.Wait()
		if began[1] != 1 {
			t.Error("a request waits for the turns of another client")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if began[0] != 50 || codes[http.StatusServiceUnavailable] != 450 {
			t.Errorf("%d requests run, of a limit of 100, and %d were refused", began[0], codes[503])
		}
		for range 40 {
			request(1, maxBody)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most := bodiesBytes / 2 / maxBody; began[1] < most-1 || began[1] > most+1 {
			t.Errorf("%d requests with large bodies run, want %d", began[1], most)
		}
		close(end)
		all.Wait()
		if e.requests.taken != 0 || e.bodies.taken != 0 || len(e.turns.of) != 0 {
			t.Errorf("%d requests, %d bytes, %d clients in line are left", e.requests.taken, e.bodies.taken,
				len(e.turns.of))
		}
	})
}

// Refused requests are answered at a limited rate, and when the line is long the connection ends.
func TestRefusalsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{every: refusalEvery, most: refusalLine}
		ctx, cancel := context.WithCancel(t.Context())
		began, passed, refused := time.Now(), 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() {
				ok := p.wait(ctx)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					passed++
				} else {
					refused++
				}
			})
		}
		all.Wait()
		if want := int(refusalLine/refusalEvery) + 1; passed != want || refused != 10_000-want ||
			time.Since(began) != refusalLine {
			t.Errorf("%d passed and %d did not, in %v; want %d in %v", passed, refused, time.Since(began), want, refusalLine)
		}
		cancel()
		p.next = time.Now().Add(time.Second)
		if p.wait(ctx) {
			t.Error("after the end of its request")
		}
	})
}
